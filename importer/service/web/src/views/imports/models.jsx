// The field of the models: while a line is written, the Hub is searched for it, and a click puts the whole name there.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../../api.js";
import { Area } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.imports;
const PAUSE = 400; // milliseconds without a key before the Hub is asked
const LEAST = 3; // characters that are worth a search
const NAME = /^[\w.-]+(\/[\w.-]*)?$/; // no address, no folder, no revision

// The line that the caret stands in, and its place in the text.
function line({ value, selectionEnd }) {
  const from = value.lastIndexOf("\n", selectionEnd - 1) + 1, end = value.indexOf("\n", selectionEnd);
  const to = end < 0 ? value.length : end;
  return { from, to, text: value.slice(from, to).trim() };
}

export function Models() {
  const around = useRef(null), timer = useRef(0), asking = useRef(null);
  const [found, set] = useState(null); // {items} or {failed}
  const field = () => around.current.querySelector("textarea");
  const stop = () => {
    clearTimeout(timer.current);
    asking.current?.abort();
    set(null);
  };
  useEffect(() => stop, []);
  const search = async (q) => {
    const leaving = asking.current = new AbortController();
    try {
      const { items } = await get(["hub", "models"], { query: { q }, signal: leaving.signal });
      if (!leaving.signal.aborted) set(items.some(({ repo }) => repo === q) ? null : { items });
    } catch (error) {
      if (!leaving.signal.aborted) set({ failed: error.message });
    }
  };
  const typed = () => {
    stop();
    const { text } = line(field());
    if (text.length >= LEAST && NAME.test(text)) timer.current = setTimeout(() => search(text), PAUSE);
  };
  const take = (repo) => () => {
    const one = field(), { from, to } = line(one);
    one.setRangeText(repo, from, to, "end");
    stop();
    one.focus();
  };
  const left = ({ relatedTarget }) => { if (!around.current?.contains(relatedTarget)) stop(); };
  return (
    <div class="suggests" ref={around} onFocusOut={left} onKeyDown={({ key }) => { if (key === "Escape") stop(); }}>
      <Area id="references" label={T.references} rows={2} placeholder="Qwen/Qwen3-8B" required onInput={typed} />
      <p class="soft small" role="status">{found ? found.failed ?? T.hits(found.items.length) : T.searches}</p>
      {found?.items?.length ? <ul class="plain hits" aria-label={T.onHub}>{found.items.map(({ repo, downloads, gated, task }) => (
        <li key={repo}><button type="button" class="inline" onMouseDown={(event) => event.preventDefault()} onClick={take(repo)}>{repo}</button>
          <span class="soft small">{T.hit(downloads, gated, task)}</span></li>
      ))}</ul> : null}
    </div>
  );
}
