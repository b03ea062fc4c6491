// The document's text: checked by the server as it is written, kept under the version it was read at.

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { get, may, post, whole } from "../../api.js";
import { Action, Difference, Failure, Link, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { draftOf, drop, keep, store } from "./editor/drafts.js";
import { Text } from "./editor/field.jsx";
import { Judged } from "./editor/mistakes.jsx";

const T = TEXTS.editor;
const PAUSE = 350; // milliseconds without a key until a text is checked
const known = new Map(); // what an editor completes, by engine and version

// The editor with colours is a module of its own; where it cannot be had, a plain field does.
export async function load({ found, signal }) {
  const [module, data] = await Promise.all([import("../../editor/codemirror.js").catch(() => null), completed(found, signal)]);
  return { module, data };
}

async function completed({ backend, data }, signal) {
  const version = data?.importer?.engine?.version ?? null, ident = JSON.stringify([backend, version]);
  if (!backend) return null;
  try {
    if (!known.has(ident)) known.set(ident, await get(["editor", backend], { query: { version }, signal }));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return null; // an engine that the server does not know: nothing is completed
  }
  return known.get(ident);
}

export const lasting = true; // the field stays, with its caret, while its document is loaded anew

export function View({ found: loaded, data: { module, data } }) {
  const { me, again, turn } = useView(), { name } = loaded;
  const [newer, setNewer] = useState(null); // a document that was seen since the page loaded its own
  const [, draw] = useReducer((times) => times + 1, 0);
  const found = newer?.turn === turn ? newer.document : loaded, draft = draftOf(name), text = draft?.text ?? found.text;
  const theirs = draft && draft.base.text !== found.text ? found : null; // a review alone leaves the text, and nothing to choose
  const base = theirs ? draft.base : found;
  const [judged, judge] = useChecked(name, text, base);
  const field = useRef(null), why = useRef(null), act = useAction();
  const dirty = text !== base.text, allowed = may(me, "import");
  const write = (value, from = base) => {
    keep(name, value, from);
    if (act.error && act.error.status !== 401) act.clear(); // it was said of another text
    draw();
  };
  const discard = () => { drop(name); return again(); };
  const save = async (on) => {
    try {
      setNewer({ turn, document: await store(name, { text, base: on }, why.current.value.trim()) });
    } catch (error) {
      if (error.said?.errors?.some((e) => e.line)) judge({ text, errors: error.said.errors, changes: [] });
      if (error.status !== 412) throw error;
      const now = await whole(name);
      if (now.text === on.text) return save(now);
      setNewer({ turn, document: now }); // another person's: they choose what remains
      return null;
    }
    why.current.value = "";
    await again();
    return say(T.saved(name));
  };
  const stored = () => (dirty ? save(base) : null);
  const mine = () => { write(text, found); field.current.focus(); };
  const current = judged?.text === text ? judged : null, wrong = Boolean(current?.errors?.length);
  return [
    <Text module={module} data={data} handle={field} text={text} judged={judged} current={current} locked={!allowed} written={write} save={() => act.run("save", stored)} />,
    <div id="mistakes" aria-live="polite"><Judged judged={judged} field={field} /></div>,
    <div>
      <Failure of={act} />
      {[act.error, judged?.problem].some((one) => one?.status === 401) ? <p>{T.keyGone}<Link to={["key"]}>{T.newKey}</Link></p> : null}
      {theirs ? <Conflict base={base} theirs={theirs} text={text} mine={mine} discard={discard} /> : null}
    </div>,
    dirty && !theirs ? <details class="differences" open><summary>{T.differences(base.version)}</summary><Difference before={base.text} after={text} /></details> : null,
    <div class="line"><label for="why">{T.why}</label><input id="why" maxlength={4000} disabled={!allowed} ref={why} />
      <Action act={act} name="save" main label={T.save} disabled={!dirty || wrong} onAct={stored} />
      <Action act={act} name="discard" label={T.discard} disabled={!dirty} onAct={discard} /></div>,
    <p class="soft small">{allowed ? T.hint : T.mayNot}</p>,
  ];
}

// What the server says of the text that stands there now: {text, errors, changes} or {text, problem}.
function useChecked(name, text, base) {
  const [judged, judge] = useState(null), first = useRef(true);
  useEffect(() => {
    if (text === base.text) { judge(null); return undefined; }
    const leaving = new AbortController();
    const check = async () => {
      try {
        judge({ text, ...await post(["configs", name, "check"], { text, signal: leaving.signal }) });
      } catch (problem) {
        if (problem.name !== "AbortError") judge({ text, problem });
      }
    };
    const timer = setTimeout(check, first.current ? 0 : PAUSE);
    first.current = false;
    return () => { clearTimeout(timer); leaving.abort(); };
  }, [text, base]);
  return [judged, judge];
}

// Another person was quicker: what they changed, what keeping one's own text would change, and the choice.
function Conflict({ base, theirs, text, mine, discard }) {
  const C = T.conflict;
  return (
    <div class="trouble inconclusive" role="alert">
      <h3>{C.changed(theirs.version)}</h3>
      <p>{C.theirs}</p>
      <Difference before={base.text} after={theirs.text} />
      <p>{C.toYours}</p>
      <Difference before={theirs.text} after={text} />
      <p class="buttons"><button type="button" onClick={mine}>{C.mine}</button><button type="button" onClick={discard}>{C.theirsTaken}</button></p>
    </div>
  );
}
