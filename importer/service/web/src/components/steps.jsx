// The steps of a job: which runs, what it has done so far, what is next, and how long each took before.

import { useEffect, useState } from "preact/hooks";
import { bytes, span } from "../format.js";
import { TEXTS } from "../text.js";
import { Bar } from "./bar.jsx";
import { Soft } from "./text.jsx";

const T = TEXTS.progress;
const SECOND = 1000; // milliseconds

export function Steps({ state: { job, step } }) {
  const known = Object.fromEntries((job.progress?.steps ?? []).map((one) => [one.step, one]));
  const names = [...new Set([...Object.keys(T.steps[job.kind] ?? {}), ...Object.keys(known)])];
  const at = names.indexOf(step), over = job.state === "succeeded";
  return <ol class="steps">{names.map((name, number) => {
    const stands = over || number < at ? "done" : number === at && job.state !== "queued" ? job.state : "ahead";
    return (
      <li key={name} class={stands} aria-current={stands === "running" ? "step" : undefined}>
        <strong>{name}</strong>{" "}<Soft>{T.steps[job.kind]?.[name] ?? ""}{times(known[name], stands)}</Soft>
      </li>
    );
  })}</ol>;
}

// The seconds that a step took.
const times = (one, stands) => (one?.seconds == null || stands === "ahead" || stands === "running" ? "" : T.took(span(one.seconds)));

// What the present step has done of what it has to do.
export function Figures({ state: { job, figures } }) {
  if (job.state !== "running") return null;
  const { done, total, unit, passed, failed, running } = figures ?? job.progress ?? {};
  if (!total) return null;
  const far = unit === "bytes" ? T.amount(bytes(done), bytes(total)) : T.amount(done, total);
  const results = [passed == null ? null : T.passed(passed), failed ? T.failed(failed) : null].filter(Boolean);
  return (
    <div class="far">
      <Bar label={far} value={done} max={total} />
      <p class="small">{[far, ...results].join(", ")}{running?.length ? <Soft>{T.at(running.join(", "))}</Soft> : null}</p>
    </div>
  );
}

// The number of the step, and the time so far.
export function Ahead({ state: { job, looked } }) {
  const running = job.state === "running", now = useClock(running), progress = job.progress;
  if (!progress || progress.seconds == null) return null;
  if (!running) return job.state === "queued" ? null : <p class="soft small">{T.inAll(span(progress.seconds))}</p>;
  const since = Math.max(0, (now - looked) / SECOND);
  return <p class="soft small ahead">{[
    progress.number ? T.stepOf(progress.number, progress.of) : null, T.sofar(span(progress.seconds + since)),
  ].filter(Boolean).join("; ")}</p>;
}

function useClock(runs) {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(() => set(Date.now()), SECOND);
    return () => clearInterval(timer);
  }, [runs]);
  return now;
}
