// The document's text: checked by the server as it is written, kept under the version it was read at.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, may, post, whole } from "../../api.js";
import { Action, Changes, Difference, Failure, Field, Problem, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const T = TEXTS.editor;
const PAUSE = 350; // milliseconds without a key until a text is checked
const drafts = new Map(); // what was written and not kept, by name: it outlasts a look at another page

export function View({ found }) {
  const { me, again } = useView(), { name } = found;
  const draft = drafts.get(name);
  const [text, setText] = useState(draft?.text ?? found.text), [base, setBase] = useState(draft?.base ?? found);
  const [theirs, setTheirs] = useState(draft && draft.base.etag !== found.etag ? found : null);
  const [judged, judge] = useChecked(name, text, base);
  const area = useRef(null), why = useRef(null), act = useAction();
  const dirty = text !== base.text, allowed = may(me, "import");
  const write = (value, from = base) => {
    if (value !== from.text) drafts.set(name, { text: value, base: from });
    else drafts.delete(name);
    setText(value);
  };
  const discard = () => { drafts.delete(name); return again(); };
  const stored = async () => {
    if (!dirty) return;
    try {
      await ask("PUT", ["configs", name], { text, match: base.etag, query: { why: why.current.value.trim() } });
    } catch (error) {
      if (error.status === 412) { setTheirs(await whole(name)); return; }
      if (error.said?.errors?.some((e) => e.line)) judge({ text, errors: error.said.errors, changes: [] });
      throw error;
    }
    drafts.delete(name);
    say(T.saved(name));
    await again();
  };
  const keys = (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); act.run("save", stored); }
  };
  const mine = () => { setBase(theirs); write(text, theirs); setTheirs(null); area.current.focus(); };
  const errors = (judged?.text === text && judged.errors) || [];
  return [
    <Field id="text" label={T.yaml}>
      <Text area={area} text={text} errors={errors} disabled={!allowed} onInput={(event) => write(event.currentTarget.value)} onKeyDown={keys} />
    </Field>,
    <div id="mistakes" aria-live="polite"><Judged judged={judged} jump={(error) => jump(area.current, error)} /></div>,
    <div><Failure of={act} />{theirs ? <Conflict theirs={theirs} text={text} mine={mine} discard={discard} /> : null}</div>,
    <div class="line"><label for="why">{T.why}</label><input id="why" maxlength={4000} disabled={!allowed} ref={why} />
      <Action act={act} name="save" main label={T.save} disabled={!dirty || errors.length > 0} onAct={stored} />
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

// A text with the numbers of its lines.
function Text({ area, text, errors, ...rest }) {
  const gutter = useRef(null), bad = new Set(errors.map((e) => e.line)), count = text.split("\n").length;
  return (
    <div class="editor">
      <div class="gutter" aria-hidden="true" ref={gutter}>{Array.from({ length: count }, (_, at) => <div key={at} class={bad.has(at + 1) ? "bad" : undefined}>{at + 1}</div>)}</div>
      <textarea id="text" spellcheck="false" autocomplete="off" autocapitalize="off" autocorrect="off" wrap="off" aria-describedby="mistakes" ref={area} value={text}
        rows={Math.min(Math.max(count + 1, 12), 26)} aria-invalid={errors.length ? "true" : undefined}
        onScroll={(event) => { gutter.current.scrollTop = event.currentTarget.scrollTop; }} {...rest} />
    </div>
  );
}

function Judged({ judged, jump: to }) {
  if (!judged) return null;
  if (judged.problem) return <Problem error={judged.problem} />;
  if (judged.errors.length) {
    return <ul class="mistakes plain">{judged.errors.map((e, at) => (
      <li key={at}>{e.line ? <button type="button" class="inline" onClick={() => to(e)}>{T.line(e.line)}</button> : T.somewhere}{T.colon}{e.detail}</li>
    ))}</ul>;
  }
  return [<p class="soft">{T.allowed}{judged.changes.length ? T.changes : T.same}</p>, <Changes found={judged.changes} />];
}

// Puts the caret where a mistake is.
function jump(area, { line, column }) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  area.focus();
  area.setSelectionRange(start + Math.max(0, (column ?? 1) - 1), start + (lines[line - 1]?.length ?? 0));
  area.scrollTop = (area.scrollHeight / lines.length) * Math.max(0, line - 4);
}

// Somebody was quicker: what they changed, and whose text is to count.
function Conflict({ theirs, text, mine, discard }) {
  return (
    <div class="trouble inconclusive" role="alert">
      <h3>{T.changed(theirs.version)}</h3>
      <p>{T.toYours}</p>
      <Difference before={theirs.text} after={text} />
      <p class="buttons"><button type="button" onClick={mine}>{T.mine}</button><button type="button" onClick={discard}>{T.theirs}</button></p>
    </div>
  );
}

addEventListener("beforeunload", (event) => { if (drafts.size) event.preventDefault(); });
