// Goes to a view, a document or a list by a part of its name: Ctrl or Cmd and K. The key ? lists the keys of the page.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api.js";
import { go } from "../router.js";
import { TEXTS } from "../text.js";
import { Dialog } from "./dialog.jsx";
import { Facts } from "./text.jsx";

const T = TEXTS.palette;
const PAUSE = 200; // milliseconds without a key before documents are asked for
const DOCUMENTS = 6; // that are shown
const PLACES = {
  attention: [["documents"], { attention: "any" }], ready: [["documents"], { state: "ready" }], waiting: [["jobs"], { state: "waiting" }],
  failed: [["jobs"], { state: "failed" }], deleted: [["deleted"]],
};

const typing = ({ target }) => /^(input|textarea|select)$/i.test(target.tagName) || target.isContentEditable;

// ``pages`` are the views that this caller may see.
export function Palette({ pages }) {
  const [open, set] = useState(null); // "go" or "keys"
  useEffect(() => {
    const pressed = (event) => {
      const command = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      const asks = event.key === "?" && !event.ctrlKey && !event.metaKey && !typing(event);
      if (event.defaultPrevented || document.querySelector("dialog[open]") || !(command || asks)) return;
      event.preventDefault();
      set(command ? "go" : "keys");
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return [
    <button type="button" aria-keyshortcuts="Control+K Meta+K" onClick={() => set("go")}>{T.button}<span class="soft small" aria-hidden="true">{T.shortcut}</span></button>,
    open === "go" ? <Dialog key="go" title={T.title} onClose={() => set(null)}><Places pages={pages} done={() => set(null)} /></Dialog> : null,
    open === "keys" ? <Dialog key="keys" title={T.keys} onClose={() => set(null)}><Facts told={T.keyList} /></Dialog> : null,
  ];
}

function Places({ pages, done }) {
  const [q, write] = useState(""), [found, set] = useState([]), [at, mark] = useState(0), field = useRef(null);
  useEffect(() => field.current.focus(), []);
  useEffect(() => {
    const leaving = new AbortController(), timer = setTimeout(() => {
      get(["configs"], { query: { q, limit: DOCUMENTS }, signal: leaving.signal }).then(({ items }) => set(items.map((one) => one.name)), () => {});
    }, PAUSE);
    return () => { clearTimeout(timer); leaving.abort(); };
  }, [q]);
  const words = q.toLowerCase().split(/\s+/).filter(Boolean), has = ([, text]) => words.every((word) => text.toLowerCase().includes(word));
  const places = [
    ...pages.map((name) => [T.view, TEXTS.shell.nav[name], [name]]), ...Object.entries(PLACES).map(([name, to]) => [T.list, T.places[name], ...to]),
  ].filter(has);
  const all = [...(words.length ? [] : places), ...(q ? found : []).map((name) => [T.document, name, ["documents", name]]), ...(words.length ? places : [])];
  const chosen = Math.min(at, all.length - 1);
  const leave = ([, , to, query]) => { done(); go(to, query); };
  const pressed = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && all.length) mark((chosen + step + all.length) % all.length);
    else if (event.key === "Enter" && all[chosen]) leave(all[chosen]);
    else return;
    event.preventDefault();
  };
  return [
    <input ref={field} role="combobox" aria-label={T.title} aria-expanded="true" aria-controls="places" autocomplete="off" spellcheck={false} maxlength={200}
      aria-activedescendant={all.length ? `place-${chosen}` : undefined} placeholder={T.placeholder} value={q}
      onInput={(event) => { write(event.currentTarget.value.trimStart()); mark(0); }} onKeyDown={pressed} />,
    <ul id="places" class="plain places" role="listbox" aria-label={T.title}>{all.map((one, place) => (
      <li key={one.slice(0, 2).join(" ")} id={`place-${place}`} role="option" aria-selected={String(place === chosen)} onClick={() => leave(one)}>
        <span class="break">{one[1]}</span><span class="soft small">{one[0]}</span></li>
    ))}</ul>,
    <p class="soft small" role="status">{all.length ? "" : T.none}</p>,
  ];
}
