// The way of a document to its release: its steps, the one that comes next, and what keeps it.

import { Mark } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.workflow;
const SIGNS = { done: "✓", now: "▸", blocked: "✗", later: "·" };

// ``sheet`` is the answer of /v1/configs/{name}/review.
export function Steps({ sheet, found }) {
  const open = sheet.steps.find(({ state }) => state === "now" || state === "blocked"), { kind, fields } = sheet.next;
  const [what, how] = T.next[kind](fields, sheet.served?.number), blocked = kind === open?.step && open.state === "blocked";
  return (
    <section class="way" aria-label={T.label}>
      <ol>{sheet.steps.map((one) => (
        <li key={one.step} class={one.state} aria-current={one === open ? "step" : undefined}>
          <span class="dot" aria-hidden="true">{SIGNS[one.state]}</span>
          <strong>{T.steps[one.step]}</strong>
          <span class="word">{T.states[one.state]}{word(one, found)}</span>
        </li>
      ))}</ol>
      <p class={kind === "failed" ? "next failed break" : "small next break"}>{blocked ? T.blocked(T.steps[open.step]) : what}</p>
      {how ? <p class="small break">{how}</p> : null}
      {blocked ? <ul class="small">{open.blocked.map((why) => <li class="break" key={why.kind}>{T.obstacle(why)}</li>)}</ul> : null}
    </section>
  );
}

// A review that was a rejection, or a validation of other data, is more than a step that is not done.
function word({ step, state }, found) {
  const known = T.words[step]?.[found[step === "review" ? "review" : "validation"]];
  return known && state !== "done" ? [", ", <Mark word={found[step]}>{known}</Mark>] : null;
}
