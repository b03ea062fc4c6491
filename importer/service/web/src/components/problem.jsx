// A failure in the server's words: what happened, the fields it is about, and the next step.

import { TEXTS } from "../text.js";

// Without its next step where the page itself offers that; one that only ``asks`` for a choice has no colour of a failure.
export function Problem({ error, next = true, asks = false }) {
  const said = error.said ?? { detail: String(error.message ?? error) };
  const fields = (said.errors ?? []).filter((e) => e.detail && !said.detail?.includes(e.detail));
  return (
    <div class={asks ? "trouble asks" : "trouble"} role="alert">
      <p class="break">{said.detail ?? error.message}</p>
      {fields.length ? <ul>{fields.map((e, at) => <li key={at}>{e.line ? TEXTS.common.line(e.line) : ""}{e.detail}</li>)}</ul> : null}
      {said.hint && next ? <p class="remedy">{said.hint}</p> : null}
    </div>
  );
}
