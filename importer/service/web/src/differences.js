// What differs between two texts.

const LARGEST = 4_000_000; // cells of the table that finds the fewest changes

// [sign, line] for every line of either, by the longest common subsequence.
export function compared(a, b) {
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const same = (lines) => lines.map((line) => [" ", line]);
  return [...same(a.slice(0, head)), ...middle(x, y), ...same(a.slice(a.length - tail))];
}

function middle(x, y) {
  const all = [...x.map((line) => ["-", line]), ...y.map((line) => ["+", line])];
  if (!x.length || !y.length || x.length * y.length > LARGEST) return all;
  const wide = y.length + 1, long = new Uint32Array((x.length + 1) * wide);
  for (let i = x.length - 1; i >= 0; i -= 1) {
    for (let j = y.length - 1; j >= 0; j -= 1) {
      const here = i * wide + j;
      long[here] = x[i] === y[j] ? long[here + wide + 1] + 1 : Math.max(long[here + wide], long[here + 1]);
    }
  }
  const found = [];
  let i = 0, j = 0;
  while (i < x.length && j < y.length) {
    if (x[i] === y[j]) { found.push([" ", x[i]]); i += 1; j += 1; }
    else if (long[(i + 1) * wide + j] >= long[i * wide + j + 1]) { found.push(["-", x[i]]); i += 1; }
    else { found.push(["+", y[j]]); j += 1; }
  }
  return [...found, ...x.slice(i).map((l) => ["-", l]), ...y.slice(j).map((l) => ["+", l])];
}
