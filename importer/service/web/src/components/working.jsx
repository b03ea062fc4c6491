// All jobs in figures, on every page: what waits for an answer, runs, is queued, or failed within a day.

import { useEffect, useState } from "preact/hooks";
import { streamed } from "../stream.js";
import { TEXTS } from "../text.js";
import { Link } from "./link.jsx";
import { Mark } from "./text.jsx";

const T = TEXTS.shell;
const STATES = ["waiting", "running", "queued", "failed"];

// A page that nobody sees holds no connection: a browser has six to a server.
export function Working() {
  const [now, set] = useState(null);
  useEffect(() => {
    let leaving = new AbortController();
    const begin = () => {
      leaving.abort();
      leaving = new AbortController();
      if (!document.hidden) heard(leaving.signal, set).catch(() => { if (!leaving.signal.aborted) set(null); });
    };
    begin();
    document.addEventListener("visibilitychange", begin);
    return () => { leaving.abort(); document.removeEventListener("visibilitychange", begin); };
  }, []);
  const there = STATES.filter((state) => now?.[state]);
  if (!there.length) return null;
  const told = there.map((state) => T.jobs(now[state], state));
  return (
    <Link to={["jobs"]} query={{ state: there }} class="working" aria-label={T.working(told.join(", "))}>
      {there.map((state, at) => <Mark key={state} word={state}>{told[at]}</Mark>)}
    </Link>
  );
}

async function heard(signal, set) {
  for await (const event of streamed(["jobs", "summary", "events"], signal)) if (event.type === "summary") set(event.data);
}
