// What the check says of a text: each error at its line with near names to choose, or what saving changes.

import { Changes, Code, Problem } from "../../../components/index.js";
import { TEXTS } from "../../../text.js";
import { Attention } from "../decisions.jsx";

const T = TEXTS.editor;
const NEAR = new Set(["unknown", "unknown-key", "unknown-parser"]); // another name can replace the place

export function Judged({ judged, field }) {
  if (!judged) return null;
  if (judged.problem) return <Problem error={judged.problem} />;
  if (!judged.errors.length) {
    return [judged.warnings.length ? <Attention texts={judged.warnings} /> : null,
      <p class="soft">{judged.warnings.length ? null : T.allowed}{judged.changes.length ? T.changes : T.same}</p>, <Changes found={judged.changes} />];
  }
  return [
    <p class="buttons"><strong>{T.errors(judged.errors.length)}</strong>
      <button type="button" onClick={() => field.current.step(true)}>{T.previous}</button>
      <button type="button" onClick={() => field.current.step(false)}>{T.next}</button></p>,
    <ul class="mistakes plain">{judged.errors.map((e, at) => <Mistake key={at} e={e} field={field} />)}</ul>,
  ];
}

const Mistake = ({ e, field }) => (
  <li class="break">
    {e.line ? <button type="button" class="inline" onClick={() => field.current.show(e)}>{T.line(e.line)}</button> : T.somewhere}{T.colon}
    {e.pointer && T.own(e) ? [<Code>{named(e.pointer)}</Code>, T.colon] : null}{T.kind(e)}
    {NEAR.has(e.kind) ? [e.fields?.near ?? []].flat().map((name) => [" ", <button type="button" class="near" key={name} onClick={() => field.current.replace(e, name)}>{T.use(name)}</button>]) : null}
  </li>
);

// A JSON pointer with dots, as keys are named elsewhere.
const named = (pointer) => pointer.slice(1).split("/").map((one) => one.replace(/~1/g, "/").replace(/~0/g, "~")).join(".");
