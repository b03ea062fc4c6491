// Who did what, the newest first; its filters stand in the address.

import { Code, Empty, Input, Link, Pager, Section, SoftWhen, Table } from "../../components/index.js";
import { shown } from "../../format.js";
import { go } from "../../router.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const T = TEXTS.operations;
const FILTERS = ["by", "action", "subject"];

export const asked = ({ query }) => Object.fromEntries([...FILTERS, "cursor"].map((name) => [name, query.get(name) ?? ""]));

export function Audit({ found }) {
  const { route } = useView();
  const { cursor, ...query } = asked(route);
  const submit = (event) => {
    event.preventDefault();
    go(["operations"], Object.fromEntries(new FormData(event.currentTarget)));
  };
  return (
    <Section title={T.audit}>
      <form class="filters" role="search" aria-label={T.auditFilters} onSubmit={submit}>
        {FILTERS.map((name) => <Input key={name} id={name} label={T[name]} type="search" value={query[name]} maxlength={200} />)}
        <button class="quiet">{TEXTS.common.filter}</button>
      </form>
      {found.items.length ? <Table label={T.audit} heads={T.auditHeads} kind="stack" keys={found.items.map((one) => one.id)} rows={found.items.map(row)} /> : <Empty text={T.noAudit} />}
      <Pager label={T.auditPages} to={["operations"]} query={query} cursor={cursor} next={found.next} />
    </Section>
  );
}

function row(one) {
  const job = /^job (\S+)$/.exec(one.subject ?? "");
  return [
    <SoftWhen at={one.at} />, one.who, one.action,
    job ? <Link to={["jobs", job[1]]}>{one.subject}</Link> : <span class="break">{one.subject ?? ""}</span>,
    <ul class="plain small">{Object.entries(one.details ?? {}).map(([key, value]) => <li class="break" key={key}>{key}{": "}<Code>{shown(value)}</Code></li>)}</ul>,
  ];
}
