// A person's approval or rejection of the document as they see it, its release, and its validation.

import { useRef, useState } from "preact/hooks";
import { post } from "../../api.js";
import { Action, Dialog, Failure, Field, say, useAction } from "../../components/index.js";
import { device } from "../../devices.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { draftOf, store } from "./editor/drafts.js";
import { nextOf } from "./steps.jsx";

const T = TEXTS.review, W = TEXTS.workflow;
const SHOWN = ["approve", "reject", "validate", "release"];
const OF_SAVED = ["approve", "validate", "release"]; // these act on the saved text, and ask first where another is written
const UNRUN = ["never-validated", "outdated"]; // what an approver may decide to do without
const WAITS = "no-worker"; // a validation may be asked for before there is a worker

// ``asked`` is called with the job of a validation; the children stand in the fold, with the note. ``told`` is true where the
// tab has the failure itself.
export function Verdict({ found, sheet, asked, told, children }) {
  const { me, again } = useView(), { name } = found;
  const note = useRef(null), fold = useRef(null), act = useAction();
  const [invalid, setInvalid] = useState(false), [asking, ask] = useState(null);
  const sent = (path, more) => {
    const text = note.current.value.trim();
    return post(["configs", name, path], { body: { digest: sheet.digest, ...(text ? { note: text } : {}), ...more }, match: found.etag });
  };
  const noted = (why) => {
    if (note.current.value.trim()) return;
    setInvalid(true);
    fold.current.open = true;
    note.current.focus();
    throw new Error(why);
  };
  const shown = async (words) => {
    await again();
    setInvalid(false);
    if (note.current) note.current.value = ""; // null where one has left meanwhile
    say(words);
  };
  const word = (action) => async () => {
    if (action === "reject") noted(T.needsNote);
    const now = await sent(action);
    await shown(T.state(name, now.state, now.reason));
  };
  const acts = {
    approve: word("approve"), reject: word("reject"),
    release: async () => shown(T.served((await sent("release")).release, name)),
    unvalidated: async () => {
      noted(T.needsReason);
      await shown(T.served((await sent("release", { unvalidated: true })).release, name));
    },
    validate: async () => { asked(await post(["configs", name, "validate"], { body: {} })); say(T.asked); },
  };
  const failed = found.validation === "failed";
  const begun = (action) => ((OF_SAVED.includes(action) && draftOf(name)) || (action === "approve" && failed) ? () => ask(action) : acts[action]);
  const possible = sheet.actions.filter((one) => SHOWN.includes(one.action) && (one.action !== "release" || apart(one, "wrong-scope").length === 0));
  const refused = possible.filter((one) => one.blocked.length && !(one.action === "reject" && one.blocked.some(({ kind }) => kind === "already")));
  const entry = sheet.listed, open = possible.find(({ action }) => action === "approve")?.allowed;
  const publishes = open && found.validation === "passed" && entry;
  const unrun = sheet.actions.some(({ action, blocked }) => action === "release" && blocked.length === 1 && UNRUN.includes(blocked[0].kind));
  const approver = me.scopes.includes("approve");
  const labels = { ...T, approve: publishes ? W.both : T.approve };
  return (
    <section class="way" aria-label={W.label}>
      <div class="onward">
        {told ? null : <p class={sheet.next.kind === "failed" ? "next failed break" : "next break"}>{nextOf(sheet)}</p>}
        <p class="buttons">{possible.map((one) => (
          <Action key={one.action} act={act} name={one.action} label={labels[one.action]} main={one.primary && !sheet.next.fields.fix?.change} disabled={apart(one, WAITS).length > 0} onAct={() => begun(one.action)()} />
        ))}</p>
      </div>
      {asking ? <Asked as={draftOf(name) ? Unsaved : Failed} found={found} sheet={sheet} label={T[asking]} onGo={acts[asking]} onClose={() => ask(null)} /> : <Failure of={act} />}
      <details class="fold small" ref={fold}><summary>{W.details}<span class="soft">{[found.model, found.backend, found.device && device(found.device)].filter(Boolean).join(" · ")}</span></summary>
        {children}
        <Field id="note" label={T.note}><textarea id="note" rows={2} maxlength={4000} ref={note} aria-invalid={invalid ? "true" : undefined} /></Field>
        {unrun && approver ? <p class="buttons"><Action act={act} name="unvalidated" label={T.unvalidated} onAct={acts.unvalidated} /></p> : null}
        {open && !entry ? <p class="soft">{W.endless}</p> : null}
        {refused.length ? <ul class="plain soft">{refused.flatMap((one) => one.blocked.map((why) => (
          <li class="break" key={`${one.action} ${why.kind}`}>{W.needs(T[one.action], W.obstacle(why))}</li>
        )))}</ul> : null}
      </details>
    </section>
  );
}

const Asked = ({ as: Which, ...rest }) => <Which {...rest} />;

// A validation of these data has failed: an approval says that a person knows it.
function Failed({ sheet, label, onGo, onClose }) {
  const act = useAction();
  const go = async () => { await onGo(); onClose(); };
  return (
    <Dialog title={T.failed.title} onClose={onClose}>
      <p class="break">{nextOf(sheet)}</p>
      <p>{T.failed.what}</p>
      <p class="buttons"><Action act={act} name="go" label={label} onAct={go} /></p>
      <Failure of={act} />
    </Dialog>
  );
}

// The text of the editor is not saved: save it and look at it, or go on with the saved one.
function Unsaved({ found: { name, version }, label, onGo, onClose }) {
  const { again } = useView(), act = useAction(), U = T.unsaved;
  const save = async () => {
    await store(name, draftOf(name));
    await again();
    onClose();
    say(U.saved(name, label));
  };
  const go = async () => { await onGo(); onClose(); };
  return (
    <Dialog title={U.title} onClose={onClose}>
      <p>{U.what(label, version)}</p>
      <p class="buttons"><Action act={act} name="save" main label={U.save} onAct={save} />
        <Action act={act} name="go" label={U.go(label, version)} onAct={go} /></p>
      <Failure of={act} />
    </Dialog>
  );
}

const apart = ({ blocked }, kind) => blocked.filter((one) => one.kind !== kind);
