// What an entry for LocalAI makes of a document: parts that it drops, changes, adds or does not pin.

import { el, mark } from "./dom.js";

export const TEXTS = {
  losses: "Entry for LocalAI", none: "nothing differs",
  effects: { added: "added", changed: "changed", dropped: "dropped", "not-pinned": "not pinned" },
};

export function losses(found) {
  return el("ul", { class: "plain small" }, found.map((one) =>
    el("li", { class: "break" }, one.effect ? [mark("inconclusive", TEXTS.effects[one.effect]), " "] : null, one.message)));
}
