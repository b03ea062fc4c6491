// The list of documents, with filters that stand in the address.

import { get } from "../api.js";
import { Boxes, Choice, Empty, Input, Link, Mark, Pager, Soft, SoftWhen, Table, Title } from "../components/index.js";
import { go } from "../router.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";

const T = TEXTS.documents;
const STATES = ["draft", "approved", "validated", "ready", "published", "rejected", "stale"];
const PER_PAGE = 50;

const asked = ({ query }) => ({
  ...Object.fromEntries(["q", "backend", "family", "cursor"].map((k) => [k, query.get(k) ?? ""])), state: query.getAll("state"),
});

export const load = ({ route, signal }) => get(["configs"], { query: { ...asked(route), limit: PER_PAGE }, signal });

export function View({ data }) {
  const { route } = useView();
  const query = asked(route), count = T.count(data.total);
  return [
    <Title>{T.title}</Title>,
    <Filters query={query} />,
    <p class="soft" id="count">{query.cursor ? T.after(count, query.cursor) : count}</p>,
    data.items.length ? <List items={data.items} /> : <Nothing query={query} />,
    <Pager label={T.more} to={["documents"]} query={query} cursor={query.cursor} next={data.next} />,
  ];
}

function Filters({ query }) {
  const { me } = useView();
  const filter = (form) => {
    const said = new FormData(form);
    go(["documents"], { q: said.get("q").trim(), backend: said.get("backend"), state: said.getAll("state"), family: query.family });
  };
  const submit = (event) => { event.preventDefault(); filter(event.currentTarget); };
  const change = (event) => { if (event.target.id !== "q") filter(event.currentTarget); };
  return (
    <form class="filters" role="search" aria-label={T.title} onSubmit={submit} onChange={change}>
      <Input id="q" label={T.search} type="search" value={query.q} placeholder={T.searched} />
      <Choice id="backend" label={T.backend} value={query.backend} options={["", ...me.backends].map((name) => [name, name || TEXTS.common.any])} />
      <Boxes name="state" legend={TEXTS.common.state} options={STATES} chosen={query.state} draw={(name) => <Mark word={name} />} />
      <button class="quiet">{TEXTS.common.filter}</button>
    </form>
  );
}

function List({ items }) {
  return <Table label={T.title} heads={T.heads} kind="stack named documents" keys={items.map((one) => one.name)} rows={items.map((one) => [
    <Link to={["documents", one.name]}>{one.name}</Link>,
    <Mark word={one.state} />,
    [<span class="break">{one.model ?? TEXTS.common.none}</span>,
      one.family ? [" ", <Link to={["documents"]} query={{ family: one.family }} class="small soft">{one.family}</Link>] : null],
    one.backend ?? TEXTS.common.none,
    one.reason ? <Soft>{one.reason}</Soft> : "",
    <SoftWhen at={one.updated_at} />,
  ])} />;
}

function Nothing({ query }) {
  if (query.q || query.backend || query.family || query.state.length) {
    return <Empty text={T.noMatch}><Link to={["documents"]}>{T.all}</Link></Empty>;
  }
  return <Empty text={T.empty}><Link to={["import"]}>{T.start}</Link></Empty>;
}
