// The releases that LocalAI is shown, and documents without one, with the reason.

import { get } from "../api.js";
import { CopyButton, Empty, Link, Mark, Section, Soft, SoftWhen, Table, Title } from "../components/index.js";
import { device } from "../devices.js";
import { bytes, local } from "../format.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { Figures, Initials } from "./overview/facts.jsx";

const T = TEXTS.gallery;
const PER_PAGE = 50;

const asked = ({ query }) => ({ after: query.get("after") ?? "", behind: query.get("behind") ?? "" });

export async function load({ route, signal }) {
  const { after, behind } = asked(route);
  const [published, hidden] = await Promise.all([
    get(["configs"], { query: { released: true, cursor: after, limit: PER_PAGE }, signal }),
    get(["configs"], { query: { released: false, cursor: behind, limit: PER_PAGE }, signal }),
  ]);
  return { published, hidden };
}

export function View({ data: { published, hidden } }) {
  const { after, behind } = asked(useView().route);
  const url = new URL("gallery/index.yaml", document.baseURI).href, line = T.line(JSON.stringify([{ name: "importer", url }]));
  return [
    <Title>{T.title}</Title>,
    <p>{T.about}</p>,
    <pre tabindex={0}>{line}</pre>,
    <p><CopyButton text={line} what={TEXTS.actions.galleries} /></p>,
    <Section title={T.published}>
      {published.items.length ? <ul class="plain items rows" aria-label={T.published}>{published.items.map((one) => <Entry key={one.name} one={one} />)}</ul>
        : <Empty text={T.nothing}>{hidden.total ? <Link to={["documents"]} query={{ state: "ready" }}>{T.ready}</Link> : <Link to={["import"]}>{TEXTS.overview.start}</Link>}</Empty>}
      <More found={published} query={{ behind, after: published.next }} />
    </Section>,
    hidden.total ? <Section title={T.hidden}>
      <Table label={T.hidden} heads={T.hiddenHeads} kind="stack named" rows={hidden.items.map(unreleased)} />
      <More found={hidden} query={{ after, behind: hidden.next }} />
    </Section> : published.total ? <p class="soft">{T.everything}</p> : null,
  ];
}

// What is known of its model.
function Entry({ one }) {
  const { facts } = one;
  return (
    <li class="item">
      <Initials model={one.model} />
      <div class="what">
        <h3><Link to={["documents", one.name]}>{one.name}</Link></h3>
        <p class="marks"><Mark word={one.state} /><Link class="small" to={["documents", one.name, "history"]}>{TEXTS.overview.release(one.release)}</Link>
          <SoftWhen at={one.updated_at} /></p>
        <p class="soft small break">{one.model ?? TEXTS.common.none}{one.backend ? ` · ${one.backend}` : ""}</p>
        <p class="about break">{facts.description}</p>
      </div>
      <Figures told={told(one)} />
    </li>
  );
}

function told({ facts, run, checked_at }) {
  const F = TEXTS.overview.facts;
  return [
    [F.license, facts.license], [F.parameters, facts.parameters && TEXTS.overview.parameters(facts.parameters)],
    [F.context, facts.context && TEXTS.overview.tokens(facts.context)], [F.weights, facts.weights && bytes(facts.weights)],
    [F.memory, facts.memory && TEXTS.overview.memory(bytes(facts.memory), facts.device && device(facts.device), facts.devices)],
    [F.modalities, facts.modalities.join(", ")], [F.quantization, facts.quantization],
    [F.validation, run && TEXTS.overview.validated(run)], [F.checked, checked_at && local(checked_at)],
  ];
}

const unreleased = (one) => [
  <Link to={["documents", one.name]}>{one.name}</Link>, <Mark word={one.state} />, <Soft>{one.reason ?? ""}</Soft>,
];

// The link is another one for each page: the focus goes to the title.
const More = ({ found, query }) => (found.next ? <p key={found.next}><Link to={["gallery"]} query={query}>{T.more(found.total)}</Link></p> : null);
