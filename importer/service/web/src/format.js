// Values as texts: JSON, moments, numbers of bytes.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

// A value as JSON, but a plain word as itself.
export function shown(value) {
  if (value === undefined) return "absent";
  return typeof value === "string" && /^[\w./@:<>+-]+$/.test(value) ? value : JSON.stringify(value);
}

export function moment(text) {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(text ?? "");
  return found ? `${found[1]} ${found[2]} UTC` : text ?? "";
}

export function bytes(number) {
  let rest = number, unit = 0;
  while (rest >= 1024 && unit < UNITS.length - 1) { rest /= 1024; unit += 1; }
  return `${rest < 10 && unit ? rest.toFixed(1) : Math.round(rest)} ${UNITS[unit]}`;
}
