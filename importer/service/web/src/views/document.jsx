// One document: what it is, where it stands, what may be said of it, and its parts behind tabs.

import { useEffect, useState } from "preact/hooks";
import { get, whole } from "../api.js";
import { Code, Facts, Follow, Link, Mark, Short, Soft, Tabs, When } from "../components/index.js";
import { device } from "../devices.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { Actions } from "./document/actions.jsx";
import * as decisions from "./document/decisions.jsx";
import * as exports from "./document/exports.jsx";
import * as editor from "./document/editor.jsx";
import * as history from "./document/history.jsx";
import * as memory from "./document/memory.jsx";
import * as probes from "./document/probes.jsx";
import * as review from "./document/review.jsx";
import { Steps } from "./document/steps.jsx";
import { Verdict } from "./document/verdict.jsx";

const T = TEXTS.document;
// A tab is one module, as a view is: ``load({name, route, found, signal})``, ``View({data, found, sheet})``, and ``lasting``
// where it goes on with data that are loaded anew.
const TABS = { review, decisions, text: editor, probes, memory, history, exports };

const chosen = ({ params: { tab } }) => (Object.hasOwn(TABS, tab ?? "") ? tab : "review");

export async function load({ route, signal }) {
  const { name } = route.params;
  const query = { config: name, kind: "validation", state: ["queued", "running"], limit: 1 };
  const [found, running, sheet] = await Promise.all([whole(name, signal), get(["jobs"], { query, signal }), reviewed(name, signal)]);
  const others = found.model ? (await get(["configs"], { query: { model: found.model, limit: 50 }, signal })).items : [];
  const part = await TABS[chosen(route)].load?.({ name, route, found, signal });
  return { found, sheet, running: running.items[0], variants: others.filter((one) => one.name !== name), tab: chosen(route), part };
}

// What a reviewer sees side by side; null without a receipt.
async function reviewed(name, signal) {
  try {
    return await get(["configs", name, "review"], { signal });
  } catch (error) {
    if (error.kind !== "no-receipt") throw error;
    return null;
  }
}

export function View({ data: { found, sheet, running, variants, tab, part } }) {
  const { turn } = useView();
  const [asked, setAsked] = useState(null); // a validation that was asked for here, and is not in the data yet
  useEffect(() => setAsked(null), [turn]);
  const { View: Part, lasting } = TABS[tab];
  const told = [
    found.reason ? <p class="soft break">{found.release === null ? T.unpublished : T.behind(found.release)}{found.reason}{T.end}</p> : null,
    <Told found={found} variants={variants} />,
  ];
  return [
    <div class="title"><h1 tabindex={-1}>{found.name}</h1><Mark word={found.state} /><Actions found={found} /></div>,
    sheet ? <Verdict found={found} sheet={sheet} key={found.name} asked={setAsked} told={tab === "review" && sheet.next.kind === "failed"}><Steps sheet={sheet} found={found} />{told}</Verdict> : told,
    <Tabs label={T.parts} tabs={T.tabs} current={tab} to={(one) => ["documents", found.name, one]} />,
    <section aria-label={T.tabs[tab]} class="tab"><Part key={lasting ? `${found.name} ${tab}` : `${tab} ${turn}`} data={part} found={found} sheet={sheet} /></section>,
    <Running job={asked ?? running} />,
  ];
}

function Told({ found, variants }) {
  const F = T.facts;
  return <Facts told={{
    [F.model]: found.model && <Code>{found.model}</Code>, [F.commit]: found.revision && <Short text={found.revision} what={F.commit} />,
    [F.backend]: found.backend, [F.family]: found.family,
    [F.device]: found.device && [device(found.device), found.per_device ? <Soft>{T.alone}</Soft> : null],
    [F.variants]: variants.length ? variants.map((one, i) => [i ? ", " : null, <Link to={["documents", one.name]}>{one.name}</Link>]) : null,
    [F.validation]: found.carried ? [<Mark word={found.validation} />, <Soft>{T.ofCommit}<Short text={found.carried.revision} what={F.commit} /></Soft>] : null,
    [F.version]: [String(found.version), ", ", <When at={found.updated_at} />],
    [F.release]: found.release && String(found.release), [F.digest]: <Short text={found.digest} what={F.digest} />,
  }} />;
}

// A validation that goes on, below the part and in sight, so that it moves nothing; or nothing.
function Running({ job }) {
  const { again } = useView();
  const over = (ended) => { if (ended.state === "succeeded") again(); };
  return <div id="running">{job ? [<h2>{T.validation}</h2>, <Follow key={job.id} job={job} ended={over} />] : null}</div>;
}
