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

// Seconds as text: under 0.1 s, 0.4 s, 12 s, 3 min 5 s.
export function span(seconds) {
  if (seconds < 0.05) return "under 0.1 s";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function bytes(number) {
  let rest = number, unit = 0;
  while (rest >= 1024 && unit < UNITS.length - 1) { rest /= 1024; unit += 1; }
  return `${rest < 10 && unit ? rest.toFixed(1) : Math.round(rest)} ${UNITS[unit]}`;
}
