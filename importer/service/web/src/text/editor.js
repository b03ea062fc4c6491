// Texts of the editor: its field, errors by their kinds, differences, and an edit by another person.

const number = (n, one, many) => `${n} ${n === 1 ? one : many}`;
const list = (values) => [values ?? []].flat().map((one) => (one === "" ? "''" : String(one))).join(", ");
const value = (one) => (typeof one === "string" ? `'${one}'` : JSON.stringify(one));
const nearNames = (near) => (list(near) ? ` Near names: ${list(near)}.` : "");

// Errors of the check, by kind; the others come with a sentence of the service.
const KINDS = {
  unknown: ({ of, near }) => `${of} has no argument of this name.${nearNames(near)}`,
  "unknown-key": ({ near }) => `No document has this key.${nearNames(near)}`,
  "under-parameters": () => "This key belongs under parameters.",
  "not-one-of": (fields) => `${value(fields.value)} is none of ${list(fields.known)}.`,
  "not-one-of-many": (fields) => `${value(fields.value)} is none of its ${fields.count} values, such as ${list(fields.near)}.`,
  "other-name": () => "The name of a document cannot be changed here.",
  "too-wide": () => "The number does not fit in 64 bits.",
  "too-long": () => "A document has at most 64,000 characters.",
  "not-a-map": () => "This is not a map of keys.",
  code: () => "This argument loads code by name: no document sets it.",
  launcher: () => "This argument belongs to the command that starts the server: no document sets it.",
  secret: () => "This argument is a secret: no document sets it.",
};

export const EDITOR = {
  yaml: "YAML",
  why: "Why",
  save: "Save",
  discard: "Discard",
  hint: "Ctrl+S saves. Saving an edit resets review and validation.",
  keys: "Ctrl+Space completes. F8 and Shift+F8 go to the next and the previous error. Tab indents; Escape, then Tab leaves the field.",
  plain: "The editor with colours and completion could not be loaded; this plain field does the same work. Load the page again to try once more.",
  mayNot: "Your key may not edit.",
  line: (at) => `line ${at}`,
  somewhere: "somewhere",
  colon: ": ",
  errors: (n) => `${number(n, "error", "errors")}. `,
  next: "Next error",
  previous: "Previous error",
  use: (name) => `Use ${name}`,
  own: ({ kind }) => Object.hasOwn(KINDS, kind ?? ""),
  kind: ({ kind, fields, detail }) => (Object.hasOwn(KINDS, kind ?? "") ? KINDS[kind](fields ?? {}) : detail),
  allowed: "The schema allows it. ",
  changes: "Saving changes:",
  same: "The data stay the same.",
  differences: (version) => `What differs from version ${version}`,
  saved: (name) => `${name} is saved.`,
  keyGone: "Your text is kept on this page. ",
  newKey: "Enter another key",
  conflict: {
    changed: (version) => `Somebody changed it: it is version ${version} by now`,
    theirs: "What they changed:",
    toYours: "From that version to your text:",
    mine: "Keep my text",
    theirsTaken: "Take theirs",
  },
  complete: {
    type: (type) => `Type: ${type}.`,
    flag: (flag) => `Flag: ${flag}.`,
    limits: (limits) => `Limits: ${limits}.`,
    least: "at least", above: "above", most: "at most", below: "below",
    choices: (values) => `Values: ${list(values)}.`,
    default: (one) => `Default: ${value(one)}.`,
    variable: "A variable of the engine's environment.",
  },
};
