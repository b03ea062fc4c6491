// What an operator asks: who runs jobs, what waits, which engines there are, what is kept, who did what.

import { get, may } from "../api.js";
import { Action, Code, Empty, Facts, Failure, Link, Mark, Section, Soft, SoftWhen, Table, Title, useAction } from "../components/index.js";
import { bytes, local } from "../format.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { Audit, asked } from "./operations/audit.jsx";

const T = TEXTS.operations;

export async function load({ route, me, signal }) {
  if (!may(me, "admin")) return null;
  const [now, audit] = await Promise.all([
    get(["operations"], { signal }), get(["audit"], { query: { ...asked(route), limit: 50 }, signal }),
  ]);
  return { now, audit };
}

export function View({ data }) {
  const { again } = useView(), act = useAction();
  if (data === null) return [<Title>{T.title}</Title>, <p>{T.mayNot}</p>];
  const { now, audit } = data;
  return [
    <Title>{T.title}</Title>,
    <p class="buttons"><Action act={act} name="refresh" label={T.refresh} onAct={again} /></p>, <Failure of={act} />,
    <Facts told={{
      [T.version]: now.version,
      [T.hub]: [<Code>{now.hub.endpoint}</Code>, now.hub.budget === null ? null : T.budget(now.hub.budget)],
      [T.database]: [`${now.database.kind}, ${bytes(now.database.bytes)}: `, Object.entries(now.database.rows).map(([kind, n]) => T.rows(kind, n)).join(", ")],
    }} />,
    <Section title={T.workers}>{now.workers.length ? <Table label={T.workers} heads={T.workerHeads} kind="stack named" rows={now.workers.map(worker)} /> : <Empty text={T.noWorkers} />}</Section>,
    <Section title={T.queue}>{now.queue.length ? <Table label={T.queue} heads={T.queueHeads} rows={now.queue.map((one) => [
      TEXTS.jobs.kinds[one.kind] ?? one.kind, one.by, String(one.queued), String(one.running), <SoftWhen at={one.oldest_at} />])} /> : <Empty text={T.noQueue} />}</Section>,
    <Section title={T.engines}><Table label={T.engines} heads={T.engineHeads} kind="several" rows={now.engines.map((one) => [
      one.engine, one.version ?? <Soft>{T.notInstalled}</Soft>, one.origin ?? ""])} /></Section>,
    <Section title={T.retention}>
      <p class="soft">{now.retention.last_at ? T.ran(local(now.retention.last_at), local(now.retention.next_at)) : T.never}</p>
      <Table label={T.retention} heads={T.retentionHeads} rows={now.retention.policy.map((one) => [
        one.kind, one.days === null ? T.unlimited : T.days(one.days), one.number === null ? T.unlimited : count(one.number),
        one.due === null ? TEXTS.common.none : count(one.due), count(one.removed)])} />
    </Section>,
    <Audit found={audit} />,
  ];
}

const count = (n) => n.toLocaleString("en");

const worker = (one) => [
  one.id, <Mark word={one.alive ? "running" : "cancelled"}>{T.alive[one.alive]}</Mark>, one.device ?? <Soft>{T.noValidation}</Soft>,
  one.engines.join(", "), one.memory === null ? "" : bytes(one.memory),
  one.jobs.length ? <ul class="plain">{one.jobs.map((job) => (
    <li key={job.id}><Link to={["jobs", job.id]}>{job.config ?? TEXTS.jobs.kinds[job.kind]}</Link>{" "}<Soft>{job.step ?? ""}</Soft></li>))}</ul> : <Soft>{T.idle}</Soft>,
  <SoftWhen at={one.seen_at} />,
];
