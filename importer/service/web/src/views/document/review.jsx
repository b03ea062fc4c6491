// A person's word on the document as they see it, its release, and its validation.

import { useRef, useState } from "preact/hooks";
import { may, post } from "../../api.js";
import { Action, Code, Failure, Field, say, useAction } from "../../components/index.js";
import { moment } from "../../format.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const T = TEXTS.review;

// ``asked`` is called with the job of a validation.
export function Review({ found, asked }) {
  const { me, again } = useView(), { name } = found;
  const note = useRef(null), act = useAction();
  const [invalid, setInvalid] = useState(false);
  const sent = (path) => {
    const text = note.current.value.trim();
    return post(["configs", name, path], { body: { digest: found.digest, ...(text ? { note: text } : {}) }, match: found.etag });
  };
  const word = (action) => async () => {
    if (action === "reject" && !note.current.value.trim()) {
      setInvalid(true);
      note.current.focus();
      throw new Error(T.needsNote);
    }
    const now = await sent(action);
    say(T.state(name, now.state, now.reason));
    await again();
  };
  const release = async () => {
    const now = await sent("releases");
    say(T.served(now.release.release, name));
    await again();
  };
  const validate = async () => {
    asked(await post(["configs", name, "validate"], { body: {} }));
    say(T.asked);
  };
  const button = (label, scope, action, main = false) => <Action act={act} name={label} label={label} main={main} disabled={!may(me, scope)} onAct={action} />;
  const ready = found.state === "ready";
  const blocked = ["approve", "import", ...(ready ? ["publish"] : [])].filter((scope) => !may(me, scope));
  return (
    <section class="review" aria-label={T.label}>
      <Field id="note" label={T.note}><textarea id="note" rows={2} maxlength={4000} ref={note} aria-invalid={invalid ? "true" : undefined} /></Field>
      <p class="buttons">
        {button(T.approve, "approve", word("approve"), true)}{button(T.reject, "approve", word("reject"))}{button(T.validate, "import", validate)}
        {ready ? button(T.release, "publish", release, true) : null}
      </p>
      {blocked.length ? <p class="soft small">{T.mayNot(blocked)}</p> : null}
      <Failure of={act} />
    </section>
  );
}

// Every word that was said, the newest first.
export const Words = ({ said }) => (
  <ul class="plain">{[...said].reverse().map((w, at) => (
    <li class="break" key={at}><strong>{w.state}</strong>{T.by(w.by, moment(w.at))}{w.note ? T.said(w.note) : ""}
      {w.digest ? <div class="soft small">{T.of}<Code>{w.digest}</Code></div> : null}</li>
  ))}</ul>
);
