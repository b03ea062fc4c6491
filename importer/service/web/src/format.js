// Values as texts: words, moments, numbers of bytes.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

// A value in words: a list and what has parts by their members, a plain word as itself, any other text in quotes.
export function shown(value) {
  if (value === undefined) return "absent";
  if (value === null) return "none";
  if (typeof value === "object") return members(value) || "none";
  return typeof value === "string" && /^[\w./@:<>|+-]+$/.test(value) ? value : JSON.stringify(value);
}

const members = (value) => (Array.isArray(value) ? value.map(shown) : Object.entries(value).map(([name, inner]) => (
  inner === null ? name : typeof inner === "object" && !Array.isArray(inner) ? `${name} (${members(inner)})` : `${name}: ${shown(inner)}`
))).join(", ");

// A moment in the reader's zone, with the name of the zone.
export function local(text) {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toLocaleString(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
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
