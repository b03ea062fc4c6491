// Texts of a review: the steps to a release, what is shown side by side, and conflicts.

const number = (n, one, many) => `${n} ${n === 1 ? one : many}`;

// What keeps a step or an action; the kinds are those of the service, the fields are theirs.
const OBSTACLES = {
  invalid: ({ number: n }) => `The document has ${number(n, "error", "errors")}: correct the text first.`,
  "no-receipt": () => "It has no receipt: import the model again.",
  already: () => "Already done.",
  "code-not-approved": () => "The model has code of its own: read it and approve the document first.",
  "no-worker": ({ engine }) => `No worker can run ${engine} with enough memory now; the validation will be queued.`,
  "open-job": () => "A validation of these data waits or runs already.",
  "nothing-served": () => "The gallery serves no version of it.",
  "not-runnable": ({ problem }) => `No engine here can run it: ${problem}.`,
  "wrong-scope": ({ scope }) => `Your key may not ${scope}.`,
  "not-approved": () => "It is not approved.",
  rejected: () => "It is rejected.",
  edited: () => "It was edited since it was approved.",
  outdated: () => "Its validation is of other data.",
  "never-validated": () => "It was never validated.",
  failed: () => "Its validation has failures.",
  "no-commit": () => "It pins no commit of the model.",
  "not-released": () => "It is not released.",
};

export const WORKFLOW = {
  label: "Steps to a release",
  steps: { import: "Import", review: "Review", validation: "Validation", release: "Release" },
  states: { done: "done", now: "next", later: "later", blocked: "blocked" },
  words: {
    review: { approved: "approved", rejected: "rejected", stale: "edited since", draft: "not yet" },
    validation: { passed: "passed", failed: "failed", stale: "outdated", never: "never run", partial: "in part" },
  },
  next: {
    failed: ({ probe, reason, more }) => `Validation failed at ${probe}${more ? ` and ${number(more, "other probe", "other probes")}` : ""}: ${reason}.`,
    rejected: ({ by, note }) => `Rejected by ${by}${note ? `: ${note.replace(/\.$/, "")}` : ""}. Edit it or import it again, or approve it after all.`,
    "rolled-back": ({ left }, served) => `The gallery serves version ${served} again. This text is version ${left}, rolled back. Edit it to release a new one.`,
    import: () => "Next: import the model again.",
    review: () => "Next: review the values below, then approve or reject them.",
    validation: () => "Next: validate it on a real engine.",
    release: () => "Next: release it.",
    done: () => "Published. The gallery serves this version.",
  },
  blocked: (step, obstacles) => `${step} is blocked: ${obstacles.join(" ")}`,
  details: "Details and note ",
  obstacle: ({ kind, fields, message }) => (OBSTACLES[kind] ? OBSTACLES[kind](fields ?? {}) : message ?? kind),
  needs: (label, why) => `${label}: ${why}`,
  both: "Approve and release",
  endless: "An approval leads to no release: LocalAI can have no entry of it.",
};

// A parser with the engine that proved it; ``none`` where the document names no parser.
function parserOf(settings, key, label, none, engine) {
  const one = settings.find((setting) => setting.key === key);
  if (!one?.value) return none;
  return `${label}: ${one.value}${one.status === "proved" && engine ? `, proved on ${engine}` : one.status === "proved" ? "" : `, ${one.status}`}`;
}

export const REVIEW = {
  label: "Review",
  note: "Note",
  approve: "Approve",
  reject: "Reject",
  validate: "Validate",
  release: "Release",
  unvalidated: "Release without a validation",
  needsReason: "A release without a validation says why: write a note first.",
  needsNote: "A rejection says why: write a note first.",
  state: (name, state, reason) => `${name} is ${reason?.startsWith(state) ? reason : [state, reason].filter(Boolean).join(": ")}.`,
  served: (release, name) => `The gallery serves version ${release} of ${name}.`,
  asked: "The validation is asked for.",
  failed: {
    title: "The validation of this document failed",
    what: "An approval accepts the document all the same. The gallery does not serve it before a validation passes.",
  },
  unsaved: {
    title: "The text in the editor is not saved",
    what: (label, version) => `${label} acts on the saved text, that is version ${version}. The text in the editor is not part of it.`,
    save: "Save the text first",
    go: (label, version) => `${label} version ${version}`,
    saved: (name, label) => `${name} is saved. ${label} now acts on this text.`,
  },
  correct: "Correct the document, then validate it again.",
  noReceipt: "It has no receipt, so there is nothing to review. ",
  again: "Import the model again",
  recheck: {
    differs: "An import would differ",
    refused: "An import would be refused",
    about: (version) => `Found by the last recheck${version ? `, for version ${version} of the engine` : ""}. `,
    outdated: "The document has changed since then. ",
    weights: (paths) => `Other weights: ${paths.join(", ")}.`,
    unproved: "The parsers of this version are not here, so they were not asked.",
    again: "Import again",
  },
  changes: "Changes",
  since: {
    served: (release) => `Since version ${release}, that the gallery serves`,
    approved: () => "since its approval",
    imported: () => "since its import",
  },
  together: (titles) => { const text = titles.join(", and "); return text.charAt(0).toUpperCase() + text.slice(1); },
  summary: ({ context, weights }, settings, engine, size) => [
    parserOf(settings, "tool_parser", "Tools", "no tools", engine), parserOf(settings, "reasoning_parser", "thinking", null),
    context ? `${context.toLocaleString("en")} tokens` : null, weights ? size(weights) : null,
  ].filter(Boolean).join(" · "),
  cards: "Differs or is doubtful",
  none: "No value differs from what its import wrote, and none is doubtful.",
  rest: (n) => `${number(n, "setting", "settings")} as vendor, proof and engine have them`,
  maps: "Proof of the parsers",
  apply: "Apply this fix",
  applied: (name) => `${name} is changed. Validate it again.`,
  command: "command",
  settings: "Settings",
  heads: ["setting", "in the document", "from"],
  side: (text) => `${text}: `,
  sides: { vendor: "vendor", table: "table", engine_default: "engine", imported: "imported", served: "release" },
  edited: "edited",
  isNew: "new",
  attention: "look at it",
  from: (source, key) => `, ${key === "backend" ? "for" : "from"} ${source}`, // a backend is chosen for a machine
  editor: (by) => `by ${by}, `,
  reasons: (n) => number(n, "reason", "reasons"),
  long: (n) => `… all ${n.toLocaleString("en")} characters`,
  losses: "Differences of LocalAI's entry",
  noEntry: "LocalAI can have no entry of it.",
};

export const CONFLICTS = {
  label: "Conflicts",
  heads: ["value", "before", "mine", "theirs"],
  mine: "Keep mine",
  theirs: "Take theirs",
  side: (side, path, value) => `${side} ${path}: ${value}`,
  sides: { mine: "mine,", theirs: "theirs," },
  left: (n) => `${number(n, "value has", "values have")} no choice yet.`,
  ready: "Every value has a choice.",
  go: "Go on with these",
};
