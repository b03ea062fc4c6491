// The way of a document to its release: its steps, the one that comes next, and what keeps it.

import { Mark } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.workflow;
const SIGNS = { done: "✓", now: "▸", blocked: "✗", later: "·" };

// ``sheet`` is the answer of /v1/configs/{name}/review.
export function Steps({ sheet, found }) {
  const next = sheet.steps.find(({ state }) => state === "now" || state === "blocked");
  return (
    <section class="way" aria-label={T.label}>
      <ol>{sheet.steps.map((one) => (
        <li key={one.step} class={one.state} aria-current={one === next ? "step" : undefined}>
          <span class="dot" aria-hidden="true">{SIGNS[one.state]}</span>
          <strong>{T.steps[one.step]}</strong>
          <span class="word">{T.states[one.state]}{word(one, found)}</span>
        </li>
      ))}</ol>
      {next ? <Next one={next} /> : <p class="small">{T.all}</p>}
    </section>
  );
}

// A review that was a rejection, or a validation of other data, is more than a step that is not done.
function word({ step, state }, found) {
  const known = T.words[step]?.[found[step === "review" ? "review" : "validation"]];
  return known && state !== "done" ? [", ", <Mark word={found[step]}>{known}</Mark>] : null;
}

function Next({ one }) {
  return [
    <p class="small">{one.state === "blocked" ? T.blocked(T.steps[one.step]) : T.next[one.step]}</p>,
    one.blocked.length ? <ul class="small">{one.blocked.map((why) => <li class="break" key={why.kind}>{T.obstacle(why)}</li>)}</ul> : null,
  ];
}
