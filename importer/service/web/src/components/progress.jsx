// A job as it goes: its steps, what it is at, how it ended, and what may be done about it.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api.js";
import { lasting, watch } from "../stream.js";
import { TEXTS } from "../text.js";
import { Action, Failure, useAction } from "./action.jsx";
import { ChooseSides } from "./conflicts.jsx";
import { Ahead, Figures, Steps } from "./steps.jsx";
import { Bar } from "./bar.jsx";
import { Problem } from "./problem.jsx";
import { Mark, Soft } from "./text.jsx";

const T = TEXTS.progress;
const KEPT = 8; // lines of what was said
const OFTEN = 700; // milliseconds between two looks at the counts of a list

export const open = (job) => job.state === "queued" || job.state === "running";

// Follows the job until it ends, then calls ``ended`` with it. One that is tried again goes on here, or ``renew`` is called.
export function Follow({ job: first, ended = () => {}, renew }) {
  const [state, set] = useState(() => ({ job: first, step: first.step, said: [], figures: null, looked: Date.now() }));
  const [round, setRound] = useState(0), [error, setError] = useState(null);
  const last = useRef(0), done = useRef(ended);
  done.current = ended;
  useEffect(() => {
    if (!open(state.job)) return undefined;
    const leaving = new AbortController();
    pursue(state, { signal: leaving.signal, last, set, ended: (job) => done.current(job) })
      .catch((problem) => { if (!leaving.signal.aborted) setError(problem); });
    return () => leaving.abort();
  }, [first.id, round]);
  const again = (job) => {
    if (renew) return renew();
    set({ job, step: null, said: [], figures: null, looked: Date.now() });
    setError(null);
    setRound(round + 1);
    return undefined;
  };
  const { job, said } = state, before = open(job) ? said.slice(-KEPT, -1) : [];
  return (
    <div class="job">
      <p aria-live="polite"><Mark word={job.state} />{" "}<Soft>{now(state)}</Soft></p>
      <div>
        {job.counts ? <Counts counts={job.counts} /> : [<Figures state={state} />, <Steps state={state} />, <Ahead state={state} />]}
        {before.length ? <ul class="plain mono soft small" aria-label={T.before}>{before.map((line, at) => <li key={at}>{line}</li>)}</ul> : null}
      </div>
      <div>
        {job.links.retry ? <Retry key={`retry ${round}`} job={job} again={again} /> : null}
        {job.links.cancel ? <Cancel key={`cancel ${round}`} job={job} again={again} /> : null}
        {error ? <Problem error={error} /> : null}
      </div>
    </div>
  );
}

// Each event makes another state. The job is asked for again at each step, which has other times then, after a broken
// connection, whose events may be gone, and at the end.
async function pursue(state, { signal, last, set, ended }) {
  const { job: { id } } = state;
  let looked = 0, now = state;
  const tell = (more) => { now = { ...now, ...more }; set(now); };
  const look = async () => tell({ job: await lasting(() => get(["jobs", id], { signal }), signal), looked: Date.now() });
  if (!state.job.progress) await look(); // out of a list
  for await (const event of watch(id, signal, last.current)) {
    last.current = event.number ?? last.current;
    if (event.type === "closed") {
      await look();
      if (!open(now.job)) break;
    } else if (event.data.job !== id) { // of a list: its counts, at most once in a while
      if (Date.now() - looked < OFTEN) continue;
      looked = Date.now();
      await look();
    } else if (event.type === "step") {
      tell({ step: event.data.step, figures: null, job: { ...now.job, state: "running" } });
      await look();
    } else if (event.type === "progress" && event.data.message) tell({ said: [...now.said, event.data.message].slice(-KEPT), figures: event.data });
    else if (event.type === "queued") tell({ step: null, said: [], figures: null });
  }
  if (signal.aborted) return;
  await look();
  ended(now.job);
}

function now({ job, step, said }) {
  if (job.state === "queued") return job.message ?? (job.kind === "validation" ? T.worker : T.turn);
  if (job.state === "running") return said.at(-1) ?? T.steps[job.kind]?.[step] ?? "";
  return job.attempt > 1 ? T.attempt(job.attempt) : "";
}

// How far a list is, and its jobs by state.
function Counts({ counts }) {
  const all = Object.values(counts).reduce((a, b) => a + b, 0), left = (counts.queued ?? 0) + (counts.running ?? 0);
  return [<Bar label={T.ended(all - left, all)} value={all - left} max={all || 1} />, <States counts={counts} />];
}

const States = ({ counts }) => <p>{Object.entries(counts).filter(([, n]) => n).map(([name, n]) => [<Mark key={name} word={name}>{T.counted(n, name)}</Mark>, " "])}</p>;

// The events of an open job show its end; a job that waits for an answer has none.
function Cancel({ job, again }) {
  const act = useAction();
  const cancel = async () => {
    const ended = await post(["jobs", job.id, "cancel"]);
    if (!open(job)) again(ended);
  };
  return [<Action act={act} name="cancel" label={T.cancel} onAct={cancel} />, <Failure of={act} />];
}

// A list of jobs that all succeeded or wait for an answer has nothing to retry.
const lacking = ({ counts }) => counts && !counts.failed && !counts.cancelled;

function Retry({ job, again }) {
  const act = useAction();
  const retry = (label, body) => <Action act={act} name={label} label={label} onAct={async () => again(await post(["jobs", job.id, "retry"], { body }))} />;
  const { candidates, conflicts } = job.error ?? {}, asks = Boolean(candidates || conflicts);
  return (
    <div>
      {job.error ? <Problem error={{ said: job.error }} next={!asks} asks={asks} /> : null}
      {candidates ? <div role="group" aria-label={T.which}>{candidates.map((c) => (
        <p key={c.backend} class="buttons">{retry(c.backend, { backend: c.backend })}<span>{c.engine}{c.message ? <Soft>{T.message(c.message)}</Soft> : null}</span></p>
      ))}</div> : null}
      {conflicts ? <ChooseSides found={conflicts} act={act} settle={async (sides) => again(await post(["jobs", job.id, "retry"], { body: { on_conflict: sides } }))} /> : null}
      {asks || lacking(job) ? null : <p class="buttons">{retry(job.kind === "imports" ? T.retryList : T.retry, {})}</p>}
      <Failure of={act} />
    </div>
  );
}
