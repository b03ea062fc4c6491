// The frame of every view: navigation, what is shown, what was said; and the focus when one arrives.

import { useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Problem as Failed, get, key } from "./api.js";
import { Link, Palette, Problem, Title, Toast, Working } from "./components/index.js";
import { here, tookTab } from "./router.js";
import { PAGES, matched } from "./routes.js";
import { allowHub, plain } from "./safe.js";
import { PRODUCT, TEXTS } from "./text.js";
import { KeyForm } from "./views/keys.jsx";
import { Here } from "./view.js";

const T = TEXTS.shell;

// Loads the data of a view; what is shown stays until they are there.
async function loaded(signal) {
  const { parts, query } = here();
  const found = matched(parts);
  const route = { parts, query, pattern: found?.pattern, params: found?.params ?? {} };
  let me = null;
  try {
    me = await get(["me"], { signal });
    allowHub(me.hub ?? null);
    if (me.name === null && parts[0] !== "key") throw new Failed({ kind: "no-key" }, 401);
    if (!found) throw new Failed({ detail: T.noPage, hint: T.choose }, 404);
    const data = found.view.load ? await found.view.load({ route, me, signal }) : null;
    return { route, me, data, found };
  } catch (error) {
    return { route, me, error };
  }
}

export function App() {
  const [shown, set] = useState({ turn: 0, route: { parts: here().parts } });
  const main = useRef(null), state = useRef({ turn: 0, path: null, leaving: new AbortController() });
  const show = async () => {
    const now = state.current;
    now.leaving.abort();
    now.leaving = new AbortController();
    const { signal } = now.leaving, from = document.activeElement;
    main.current.setAttribute("aria-busy", "true"); // no drawing: what is written in a form stays
    const made = await loaded(signal);
    if (signal.aborted) return;
    now.turn += 1;
    now.moved = document.activeElement !== from;
    await new Promise((done) => {
      now.drawn = done;
      set({ ...made, turn: now.turn });
    });
  };
  useEffect(() => {
    addEventListener("hashchange", show);
    show();
    return () => removeEventListener("hashchange", show);
  }, []);
  useLayoutEffect(() => {
    if (!shown.turn) return;
    const path = shown.route.parts.join("/"), before = state.current.path;
    main.current.setAttribute("aria-busy", "false");
    arrived(main.current, before !== null, before !== null && before !== path, state.current.moved);
    state.current.path = path;
    state.current.drawn?.();
  }, [shown.turn]);
  return [
    <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current.focus(); }}>{T.skip}</a>,
    <header class="top">
      <Pages current={shown.route.parts[0]} keyed={key.get() !== null} />
      <div class="strip">{shown.me?.name ? [<Palette key="go" pages={named(key.get() !== null)} />, <Working key={shown.me.name} />] : null}</div>
    </header>,
    <main id="main" tabindex={-1} ref={main}>{shown.turn ? <Shown key={shown.found?.ident ?? shown.turn} shown={shown} again={show} /> : null}</main>,
    <Toast />,
    <Foot me={shown.me} />,
  ];
}

function Shown({ shown: { route, me, data, found, error, turn }, again }) {
  const [broken] = useErrorBoundary();
  const failed = broken ?? error;
  if (failed?.kind === "no-key") return <KeyForm done={again} wrong={key.get() !== null} />;
  if (failed) return [<Title>{T.failed}</Title>, <Problem error={failed} />];
  const { View } = found.view;
  return <Here.Provider value={{ route, me, again, turn }}><View data={data} /></Here.Provider>;
}

// A reader of another view begins at its top; who only filters, or went on before it came, stays at what they were using,
// while that is there.
function arrived(main, again, elsewhere, moved) {
  const head = main.querySelector("h1"), tabbed = tookTab();
  document.title = head?.textContent ? plain(T.title(head.textContent)) : PRODUCT;
  if (!elsewhere || (moved && document.activeElement !== document.body)) {
    if (again && document.activeElement === document.body) head?.focus();
    return;
  }
  const tab = main.querySelector("nav [aria-current]");
  (tabbed ? tab : head)?.focus();
  if (!tab || document.activeElement === head) scrollTo(0, 0);
}

// The view of the key is named only where there is one.
function named(keyed) {
  return PAGES.filter((name) => name !== "key" || keyed);
}

function Pages({ current, keyed }) {
  const mine = named(keyed), names = PAGES.filter((name) => mine.includes(name) || current === name);
  return (
    <nav aria-label={T.pages}>
      <strong class="brand">{PRODUCT}</strong>
      <ul>{names.map((name) => (
        <li key={name}><Link to={[name]} aria-current={name === current ? "page" : undefined}>{T.nav[name]}</Link></li>
      ))}</ul>
    </nav>
  );
}

function Foot({ me }) {
  if (!me) return <footer />;
  const scopes = me.scopes.join(", ");
  return <footer>{T.you(me.version)}<strong>{me.name}</strong>{scopes ? T.scopes(scopes) : null}</footer>;
}
