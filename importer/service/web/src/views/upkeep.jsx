// The review queue of upkeep: findings of rechecks, each with what it changes; accepted, rejected, or asked for anew.

import { get, may, post } from "../api.js";
import { Action, Choice, Failure, Link, Title, say, useAction } from "../components/index.js";
import { local } from "../format.js";
import { go } from "../router.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { oneByOne } from "./overview/each.js";
import { Finding } from "./upkeep/card.jsx";

const T = TEXTS.upkeep;
const STATES = ["accepted", "rejected", "superseded", "resolved"];
const PER_PAGE = 20;

const asked = ({ query }) => Object.fromEntries(["cause", "name", "state", "cursor"].map((k) => [k, query.get(k) ?? ""]));

export const load = ({ route, signal }) => get(["upkeep"], { query: { ...asked(route), limit: PER_PAGE }, signal });

export function View({ data }) {
  const { route, again } = useView();
  const query = asked(route), act = useAction();
  return [
    <Title>{T.title}</Title>,
    <p>{T.about}</p>,
    <p class="soft">{scheduled(data.schedule)}</p>,
    <p class="buttons"><Recheck act={act} /><Together items={data.items} act={act} /></p>,
    <Failure of={act} />,
    <Filters query={query} />,
    <p class="soft" id="count">{T.count(data.total)}</p>,
    data.items.map((finding) => <Finding key={finding.id} finding={finding} done={again} />),
    data.next ? <p key={data.next}><Link to={["upkeep"]} query={{ ...query, cursor: data.next }}>{TEXTS.common.next}</Link></p> : null,
  ];
}

function scheduled(schedule) {
  if (!schedule) return T.unscheduled;
  return `${schedule.began_at ? T.began(local(schedule.began_at)) : ""}${T.next(local(schedule.next_at))}`;
}

function Filters({ query }) {
  const change = (event) => go(["upkeep"], Object.fromEntries(new FormData(event.currentTarget)));
  return (
    <form class="filters" role="search" aria-label={T.filters} onChange={change}>
      <Choice id="cause" label={T.cause} value={query.cause} options={[["", TEXTS.common.any], ...Object.entries(T.causes)]} />
      <Choice id="state" label={TEXTS.common.state} value={query.state} options={[["", T.states[""]], ...STATES.map((s) => [s, T.states[s]])]} />
    </form>
  );
}

function Recheck({ act }) {
  const { me } = useView();
  const recheck = async () => {
    const job = await post(["recheck"], { body: {} });
    go(["jobs", job.id]);
  };
  return <Action act={act} name="recheck" main disabled={!may(me, "import")} label={T.recheck} onAct={recheck} />;
}

// The same for all on this page; what is refused is told one by one.
function Together({ items, act }) {
  const { me, again } = useView();
  const open = items.filter((one) => one.state === "open" && !one.refused && !one.conflicts.length);
  if (open.length < 2) return null;
  const accept = async () => {
    const found = await oneByOne(open, ({ id }) => post(["upkeep", id, "accept"]));
    await again();
    const refused = found.filter((one) => one.refused).length;
    say(T.done({ done: found.length - refused, refused }));
  };
  return <Action act={act} name="together" disabled={!may(me, "import")} label={T.together(open.length)} onAct={accept} />;
}
