// The field of a text: CodeMirror, or a plain one where that is not to be had. Both give their parent a handle with
// focus, show, step and replace.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Field } from "../../../components/index.js";
import { TEXTS } from "../../../text.js";

const T = TEXTS.editor;

export function Text({ module, ...rest }) {
  if (module) return <Rich module={module} {...rest} />;
  return [<p class="remedy" role="status">{T.plain}</p>, <Field id="text" label={T.yaml}><Plain {...rest} /></Field>];
}

function Rich({ module, data, handle, text, judged, locked, written, save }) {
  const node = useRef(null), now = useRef(null);
  now.current = { written, save };
  useLayoutEffect(() => {
    const made = module.mount(node.current, {
      text, locked, data, label: T.yaml, told: T.keys, written: (value) => now.current.written(value), save: () => now.current.save(),
    });
    handle.current = made;
    return () => made.end();
  }, []);
  useLayoutEffect(() => handle.current.put(text), [text]); // at once: nothing can be written in between
  useEffect(() => handle.current.mark(judged?.errors ?? [], T.kind), [judged]);
  return (
    <div class="field">
      <span class="label" aria-hidden="true">{T.yaml}</span>
      <div class="editor rich" ref={node} />
      <p class="soft small">{T.keys}</p>
    </div>
  );
}

// A text with the numbers of its lines.
function Plain({ handle, text, current, locked, written, save }) {
  const area = useRef(null), gutter = useRef(null), errors = current?.errors ?? [];
  const bad = new Set(errors.map((e) => e.line)), count = text.split("\n").length;
  useLayoutEffect(() => { handle.current = handleOf(area, written, () => errors); });
  const keys = (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); save(); }
    if (event.key === "F8") { event.preventDefault(); handle.current.step(event.shiftKey); }
  };
  return (
    <div class="editor">
      <div class="gutter" aria-hidden="true" ref={gutter}>{Array.from({ length: count }, (_, at) => <div key={at} class={bad.has(at + 1) ? "bad" : undefined}>{at + 1}</div>)}</div>
      <textarea id="text" spellcheck="false" autocomplete="off" autocapitalize="off" autocorrect="off" wrap="off" aria-describedby="mistakes" ref={area} value={text}
        rows={Math.min(Math.max(count + 1, 12), 26)} aria-invalid={errors.length ? "true" : undefined} disabled={locked}
        onScroll={(event) => { gutter.current.scrollTop = event.currentTarget.scrollTop; }}
        onInput={(event) => written(event.currentTarget.value)} onKeyDown={keys} />
    </div>
  );
}

function handleOf(area, written, errors) {
  const show = (error) => jump(area.current, error);
  return {
    show,
    focus: () => area.current.focus(),
    replace: (error, word) => {
      const { value } = area.current, [from, to] = place(value, error);
      written(value.slice(0, from) + word + value.slice(to));
      area.current.focus();
    },
    step: (back) => {
      const line = area.current.value.slice(0, area.current.selectionStart).split("\n").length, sorted = back ? [...errors()].reverse() : errors();
      const next = sorted.find((one) => (back ? one.line < line : one.line > line)) ?? sorted[0];
      if (next) show(next);
    },
  };
}

// The offsets of an error; a column counts characters, not UTF-16.
function place(text, { line, column, length }) {
  const lines = text.split("\n"), start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const letters = [...(lines[line - 1] ?? "")], first = Math.max(0, (column ?? 1) - 1);
  const from = start + letters.slice(0, first).join("").length;
  return [from, from + letters.slice(first, first + (length ?? 1)).join("").length];
}

// Puts the caret where an error is.
function jump(area, error) {
  area.focus();
  area.setSelectionRange(...place(area.value, error));
  area.scrollTop = (area.scrollHeight / area.value.split("\n").length) * Math.max(0, error.line - 4);
}
