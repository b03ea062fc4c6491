// All jobs, with filters that stand in the address.

import { useState } from "preact/hooks";
import { get } from "../api.js";
import { Boxes, Choice, Empty, Mark, Pager, Title, open } from "../components/index.js";
import { go } from "../router.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { Rows, useLooking } from "./jobs/rows.jsx";

const T = TEXTS.jobs;
const STATES = ["waiting", "queued", "running", "succeeded", "failed", "cancelled"];
const KINDS = ["import", "imports", "validation", "recheck"]; // the others are parts of a list

const asked = ({ query }) => ({ state: query.getAll("state"), kind: query.get("kind") ?? "", cursor: query.get("cursor") ?? "" });
const found = (query, signal) => get(["jobs"], { query: { ...query, limit: 50 }, signal });

export const load = ({ route, signal }) => found(asked(route), signal);

export function View({ data }) {
  const { route, turn } = useView();
  const { cursor, ...query } = asked(route);
  return [
    <Title>{T.title}</Title>,
    <Filters {...query} />,
    <Looked key={turn} first={data} query={{ ...query, cursor }} />,
    <Pager label={T.moreJobs} to={["jobs"]} query={query} cursor={cursor} next={data.next} />,
  ];
}

function Looked({ first, query }) {
  const [now, set] = useState(first);
  useLooking(!query.cursor && now.items.some(open), async (signal) => set(await found(query, signal)));
  return <div>{now.items.length ? <Rows items={now.items} /> : <Empty text={T.empty} />}</div>;
}

function Filters({ state, kind }) {
  const filter = (event) => {
    event.preventDefault();
    const said = new FormData(event.currentTarget);
    go(["jobs"], { kind: said.get("kind"), state: said.getAll("state") });
  };
  return (
    <form class="filters" role="search" aria-label={T.title} onSubmit={filter} onChange={filter}>
      <Choice id="kind" label={T.kind} value={kind} options={[["", TEXTS.common.any], ...KINDS.map((k) => [k, T.kinds[k]])]} />
      <Boxes name="state" legend={TEXTS.common.state} options={STATES} chosen={state} draw={(name) => <Mark word={name} />} />
      <button class="quiet">{TEXTS.common.filter}</button>
    </form>
  );
}
