// One job as it goes, and what came of it.

import { useState } from "preact/hooks";
import { get, post } from "../api.js";
import { Action, Facts, Failure, Follow, Link, Section, Table, Title, When, open, useAction } from "../components/index.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { asked } from "./jobs/asked.jsx";
import { Rows, useLooking } from "./jobs/rows.jsx";
import { renamed } from "./jobs/renamed.js";

const T = TEXTS.jobs;

const children = (id, query, signal) => get(["jobs"], { query: { parent: id, limit: 100, ...query }, signal });

export async function load({ route, signal }) {
  const job = await get(["jobs", route.params.id], { signal });
  return { job, parts: job.kind === "imports" ? await children(job.id, {}, signal) : null };
}

export function View({ data: { job, parts } }) {
  const { again, turn } = useView();
  const [ended, setEnded] = useState(null);
  return [
    <Title>{T.titles[job.kind](job)}</Title>,
    <Follow key={turn} job={job} ended={setEnded} renew={job.kind === "imports" ? again : undefined} />,
    <Outcome job={ended ?? job} />,
    job.refused ? <Refused lines={job.refused} /> : null,
    parts ? <Children key={turn} job={job} first={parts} /> : null,
    <Section title={T.request}><Facts told={{
      ...asked(job.request),
      [T.facts.by]: job.by, [T.facts.at]: <When at={job.created_at} />, [T.facts.device]: job.device,
      [T.facts.list]: job.parent && <Link to={["jobs", job.parent]}>{job.parent}</Link>,
    }} /></Section>,
  ];
}

// The lines of a list that have no job.
const Refused = ({ lines }) => (
  <Section title={T.refused}><Table label={T.refused} heads={T.refusedHeads} rows={lines.map((one) => [one.line, one.reference, one.error.detail])} /></Section>
);

// What leads on: to what the job made, or to the document that it did not change.
function Outcome({ job }) {
  if (open(job)) return null;
  const name = job.result?.name ?? job.config, again = renamed(job);
  if (again) return <p class="buttons"><Link to={["import"]} query={again} class="button main">{T.renamed}</Link></p>;
  if (job.state !== "succeeded") return name ? <p class="buttons"><Link to={["documents", name]} class="button">{T.open(name)}</Link></p> : null;
  if (!name) return null;
  if (job.result?.measured) return [<p>{job.result.fit}</p>, <Next to={["documents", name, "memory"]}>{T.memory}</Next>];
  if (job.kind === "recheck") return [<p>{T.outcomes[job.result.outcome]}</p>, <Next to={["documents", name]}>{TEXTS.common.review(name)}</Next>];
  if (job.kind !== "validation") return <Next to={["documents", name]}>{TEXTS.common.review(name)}</Next>;
  const { probes = {} } = job.result ?? {};
  return [
    <p>{T.passed(probes.pass ?? 0, Object.values(probes).reduce((a, b) => a + b, 0))}</p>,
    <Next to={["documents", name, "probes"]}>{T.probes}</Next>,
  ];
}

const Next = ({ to, children: text }) => <p class="buttons"><Link to={to} class="button main">{text}</Link></p>;

// One answer for all jobs of a list that ask for a backend.
function Asked({ job, items }) {
  const { again } = useView(), act = useAction();
  const asking = items.filter((one) => one.state === "waiting" && one.error?.candidates);
  if (asking.length < 2) return null;
  const backends = [...new Set(asking.flatMap((one) => one.error.candidates.map((c) => c.backend)))];
  const answer = (backend) => async () => {
    await post(["jobs", job.id, "retry"], { body: { backend } });
    await again();
  };
  return (
    <div role="group" aria-label={T.forAll(asking.length)}><p class="buttons">{T.forAll(asking.length)}{backends.map((backend) => (
      <Action key={backend} act={act} name={backend} label={backend} onAct={answer(backend)} />))}</p><Failure of={act} /></div>
  );
}

function Children({ job, first }) {
  const [{ items, next }, set] = useState(first);
  const more = async () => {
    const found = await children(job.id, { cursor: next });
    set({ items: [...items, ...found.items], next: found.next });
  };
  useLooking(items.some(open), async (signal) => {
    const found = await children(job.id, { limit: 200 }, signal);
    set({ items: [...found.items, ...items.slice(found.items.length)], next });
  });
  return (
    <Section title={T.children}><Asked job={job} items={items} /><div><Rows items={items} />{next ? <button type="button" onClick={more}>{T.more}</button> : null}</div></Section>
  );
}
