// The releases that LocalAI is shown, and documents without one, with the reason.

import { get } from "../api.js";
import { Code, Link, Mark, Section, Soft, SoftWhen, Table, Title } from "../components/index.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";

const T = TEXTS.gallery;
const PER_PAGE = 50;

const asked = ({ query }) => ({ after: query.get("after") ?? "", behind: query.get("behind") ?? "" });

export async function load({ route, signal }) {
  const { after, behind } = asked(route);
  const [published, hidden] = await Promise.all([
    get(["gallery"], { query: { published: true, cursor: after, limit: PER_PAGE }, signal }),
    get(["gallery"], { query: { published: false, cursor: behind, limit: PER_PAGE }, signal }),
  ]);
  return { published, hidden };
}

export function View({ data: { published, hidden } }) {
  const { after, behind } = asked(useView().route);
  const url = new URL("gallery/index.yaml", document.baseURI).href;
  return [
    <Title>{T.title}</Title>,
    <p>{T.about}</p>,
    <pre tabindex={0}>{T.line(JSON.stringify([{ name: "importer", url }]))}</pre>,
    <Section title={T.published}>
      {published.items.length ? <Table label={T.published} heads={T.publishedHeads} kind="stack named" rows={published.items.map(released)} />
        : <p class="soft">{T.nothing}</p>}
      <More found={published} query={{ behind, after: published.next }} />
    </Section>,
    <Section title={T.hidden}>
      {hidden.items.length ? <Table label={T.hidden} heads={T.hiddenHeads} kind="stack named" rows={hidden.items.map(unreleased)} />
        : <p class="soft">{T.everything}</p>}
      <More found={hidden} query={{ after, behind: hidden.next }} />
    </Section>,
  ];
}

const released = (one) => [
  <Link to={["documents", one.name]}>{one.name}</Link>, <Code>{one.model ?? TEXTS.common.none}</Code>, one.backend ?? TEXTS.common.none,
  <Link to={["documents", one.name, "releases"]}>{String(one.release)}</Link>,
  [<Mark word={one.state} />, " ", <SoftWhen at={one.updated_at} />],
];

const unreleased = (one) => [
  <Link to={["documents", one.name]}>{one.name}</Link>, <Mark word={one.state} />, <Soft>{one.reason ?? ""}</Soft>,
];

// The link is another one for each page: the focus goes to the title.
const More = ({ found, query }) => (found.next ? <p key={found.next}><Link to={["gallery"]} query={query}>{T.more(found.total)}</Link></p> : null);
