// Jobs as rows, and a look at them again while some still run.

import { useEffect, useRef } from "preact/hooks";
import { Link, Mark, Soft, SoftWhen, Table, open } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.jobs;
const PAUSE = 2000; // milliseconds between two looks at a list of which some still run

export function Rows({ items }) {
  return <Table label={T.title} heads={T.heads} kind="stack jobs" keys={items.map((job) => job.id)} rows={items.map((job) => [
    <Link to={["jobs", job.id]}>{T.kinds[job.kind]}</Link>,
    <Mark word={job.state} />,
    <span class="break">{job.config ? <Link to={["documents", job.config]}>{job.config}</Link> : job.request.reference ?? (job.counts ? total(job) : "")}</span>,
    <Soft>{job.error?.detail ?? (open(job) ? job.message ?? job.step : "") ?? ""}</Soft>,
    job.by,
    <SoftWhen at={job.created_at} />,
  ])} />;
}

const total = (job) => T.models(Object.values(job.counts).reduce((a, b) => a + b, 0));

// Calls ``look(signal)`` now and then while it is ``wanted`` and the page is seen.
export function useLooking(wanted, look) {
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    if (!wanted) return undefined;
    const leaving = new AbortController();
    const timer = setInterval(() => { if (!document.hidden) latest.current(leaving.signal).catch(() => {}); }, PAUSE);
    return () => { clearInterval(timer); leaving.abort(); };
  }, [wanted]);
}
