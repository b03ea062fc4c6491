// The way of a document to its release: its steps, and in one sentence the one that comes next.

import { Mark } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.workflow;
const SIGNS = { done: "✓", now: "▸", blocked: "✗", later: "·" };

const current = ({ steps }) => steps.find(({ state }) => state === "now" || state === "blocked");

// What comes next, in one sentence. ``sheet`` is the answer of /v1/configs/{name}/review.
export function nextOf(sheet) {
  const { kind, fields } = sheet.next, open = current(sheet);
  if (kind === open?.step && open.state === "blocked") return T.blocked(T.steps[kind], open.blocked.map(T.obstacle));
  return T.next[kind](fields, sheet.served?.version);
}

export function Steps({ sheet, found }) {
  const open = current(sheet);
  return (
    <ol>{sheet.steps.map((one) => (
      <li key={one.step} class={one.state} aria-current={one === open ? "step" : undefined}>
        <span class="dot" aria-hidden="true">{SIGNS[one.state]}</span>
        <strong>{T.steps[one.step]}</strong>
        <span class="word">{T.states[one.state]}{word(one, found)}</span>
      </li>
    ))}</ol>
  );
}

// A review that was a rejection, or a validation of other data, is more than a step that is not done.
function word({ step, state }, found) {
  const known = T.words[step]?.[found[step === "review" ? "review" : "validation"]];
  return known && state !== "done" ? [", ", <Mark word={found[step]}>{known}</Mark>] : null;
}
