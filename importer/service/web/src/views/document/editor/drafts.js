// Texts that were written and not saved, by the name of their document: they outlast a look at another part.

import { ask, tagged } from "../../../api.js";

const drafts = new Map(); // {text, base}: the text, and the document that it was written on

export const draftOf = (name) => drafts.get(name);
export const drop = (name) => drafts.delete(name);

// Keeps the text, or forgets it where it is that of its document.
export function keep(name, text, base) {
  if (text === base.text) drop(name);
  else drafts.set(name, { text, base });
}

// Saves the text under the version that it was written on; returns the document that it made. A failure leaves
// it unsaved. What was written meanwhile is a text on that document.
export async function store(name, { text, base }, why = "") {
  const saved = await tagged(await ask("PUT", ["configs", name], { text, match: base.etag, query: { why } }));
  const now = draftOf(name)?.text ?? text;
  keep(name, now === text ? saved.text : now, saved);
  return saved;
}

addEventListener("beforeunload", (event) => { if (drafts.size) event.preventDefault(); });
