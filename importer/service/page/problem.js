// A failure in the server's words: what happened, the fields it is about, and the next step.

import { el } from "./dom.js";

// Without its next step where the page itself offers that.
export function problem(error, next = true) {
  const said = error.said ?? { detail: String(error.message ?? error) };
  const fields = (said.errors ?? []).filter((e) => e.detail && !said.detail?.includes(e.detail));
  return el("div", { class: "trouble", role: "alert" },
    el("p", { class: "break" }, said.detail ?? error.message),
    fields.length ? el("ul", {}, fields.map((e) => el("li", {}, e.line ? `line ${e.line}: ` : "", e.detail))) : null,
    said.hint && next ? el("p", { class: "remedy" }, said.hint) : null);
}

// Runs what a button does: once at a time, and a failure is told beside it.
export async function run(button, place, action) {
  if (button.getAttribute("aria-disabled") === "true" || button.disabled) return;
  button.disabled = true;
  place.replaceChildren();
  try {
    await action();
  } catch (error) {
    if (error.name !== "AbortError") place.replaceChildren(problem(error));
  } finally {
    button.disabled = false;
  }
}
