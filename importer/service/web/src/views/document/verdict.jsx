// A person's approval or rejection of the document as they see it, its release, and its validation.

import { useRef, useState } from "preact/hooks";
import { post } from "../../api.js";
import { Action, Failure, Field, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const T = TEXTS.review, W = TEXTS.workflow;
const SHOWN = ["approve", "reject", "validate", "release"];
const WAITS = "no-worker"; // a validation may be asked for before there is a worker

// ``asked`` is called with the job of a validation.
export function Verdict({ found, sheet, asked }) {
  const { me, again } = useView(), { name } = found;
  const note = useRef(null), act = useAction();
  const [invalid, setInvalid] = useState(false);
  const sent = (path) => {
    const text = note.current.value.trim();
    return post(["configs", name, path], { body: { digest: sheet.digest, ...(text ? { note: text } : {}) }, match: found.etag });
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
  const acts = {
    approve: word("approve"), reject: word("reject"),
    release: async () => { say(T.served((await sent("releases")).release.release, name)); await again(); },
    validate: async () => { asked(await post(["configs", name, "validate"], { body: {} })); say(T.asked); },
  };
  const possible = sheet.actions.filter((one) => SHOWN.includes(one.action) && (one.action !== "release" || apart(one, "wrong-scope").length === 0));
  const refused = possible.filter((one) => one.blocked.length && !(one.action === "reject" && one.blocked.some(({ kind }) => kind === "already")));
  const entry = sheet.steps.find(({ step }) => step === "entry").state === "done", open = possible.find(({ action }) => action === "approve")?.allowed;
  return (
    <section class="review" aria-label={T.label}>
      <Field id="note" label={T.note}><textarea id="note" rows={2} maxlength={4000} ref={note} aria-invalid={invalid ? "true" : undefined} /></Field>
      <p class="buttons">{possible.map((one) => (
        <Action key={one.action} act={act} name={one.action} label={T[one.action]} main={one.primary} disabled={apart(one, WAITS).length > 0} onAct={acts[one.action]} />
      ))}</p>
      {open && found.validation === "passed" && entry && me.scopes.some((one) => one === "publish" || one === "admin") ? <p class="soft small">{W.releases}</p> : null}
      {open && !entry ? <p class="soft small">{W.endless}</p> : null}
      {refused.length ? <ul class="plain soft small">{refused.flatMap((one) => one.blocked.map((why) => (
        <li class="break" key={`${one.action} ${why.kind}`}>{W.needs(T[one.action], W.obstacle(why))}</li>
      )))}</ul> : null}
      <Failure of={act} />
    </section>
  );
}

const apart = ({ blocked }, kind) => blocked.filter((one) => one.kind !== kind);
