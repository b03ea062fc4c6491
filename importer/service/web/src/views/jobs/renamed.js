// The form of an import whose name is taken by another model: the same request, under another name.

const FIELDS = ["reference", "backend", "revision", "device", "per_device", "memory", "goal", "concurrency", "context", "engine_version", "template", "set", "note", "name"];

// Values for the address of the form, or null: where the name is not at fault, or the form has no field for a part.
export function renamed({ kind, state, error, request }) {
  if (kind !== "import" || state !== "failed" || error?.kind !== "exists") return null;
  const parts = Object.entries(request).filter(([, value]) => value !== null);
  if (!parts.every(([name]) => FIELDS.includes(name))) return null;
  const { reference, set, name, ...rest } = Object.fromEntries(parts);
  return { ...rest, references: reference, set: lines(set ?? {}), name: other(name, reference) };
}

const lines = (set) => Object.entries(set).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join("\n");

// The next number of a name; where the repository made the name, that with its owner.
function other(name, reference) {
  if (!name) return reference.replace(/^\w+:\/\//, "").split("@")[0].split("/").filter(Boolean).slice(-2).join("-").toLowerCase();
  const [, stem, number] = /^(.*?)(?:-(\d+))?$/.exec(name);
  return `${stem}-${Number(number ?? 1) + 1}`;
}
