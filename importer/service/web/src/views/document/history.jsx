// Every version, by whom, when and why, and which one is served; what differs between any two; every review.

import { get } from "../../api.js";
import { Changes, Choice, Difference, Mark, Section, Short, Soft, Table, When } from "../../components/index.js";
import { local } from "../../format.js";
import { go, keepTab } from "../../router.js";
import { TEXTS } from "../../text.js";
import { Restore } from "./restore.jsx";
import { Serve } from "./serve.jsx";

const T = TEXTS.history, R = TEXTS.review, G = TEXTS.releases;
const number = (text) => (/^[1-9]\d{0,8}$/.test(text ?? "") ? Number(text) : null);

export async function load({ name, route, signal }) {
  const told = await everyVersion(name, signal);
  const to = number(route.query.get("to")) ?? told.versions[0].version, from = number(route.query.get("from")) ?? Math.max(1, to - 1);
  const sides = from === to ? null : await Promise.all([from, to].map((n) => get(["configs", name, "versions", String(n)], { signal })));
  return { ...told, from, to, sides };
}

async function everyVersion(name, signal) {
  const told = await get(["configs", name, "history"], { query: { limit: 200 }, signal });
  for (let { next } = told; next;) {
    const page = await get(["configs", name, "history"], { query: { limit: 200, cursor: next }, signal });
    told.versions.push(...page.versions);
    next = page.next;
  }
  return told;
}

export function View({ data: { versions, reviews, served, from, to, sides }, found }) {
  return [
    <p class="soft">{served === null ? G.none : G.serves(served)}</p>,
    <Section title={T.versions}><Table label={T.versions} heads={T.heads} kind="stack versions" rows={versions.map((v) => [
      [String(v.version), " ", v.version === served ? <Mark word="published">{G.served}</Mark> : null], v.action, <Mark word={v.state} />, v.by, <When at={v.at} />,
      [<Serve one={v} name={found.name} served={served} newest={versions[0].version} />, <Restore version={v.version} found={found} newest={versions[0].version} />, v.why ? <p class="break">{v.why}</p> : null,
        v.changes?.length ? <Changes found={v.changes} /> : <Soft>{v.changes ? TEXTS.common.noneInData : TEXTS.common.theFirst}</Soft>],
    ])} /></Section>,
    <Section title={T.differences}>
      <Choose name={found.name} versions={versions} from={from} to={to} />
      {sides ? <Difference before={sides[0].text} after={sides[1].text} /> : null}
    </Section>,
    reviews.length ? <Section title={T.reviews}><Words said={reviews} /></Section> : null,
  ];
}

function Choose({ name, versions, from, to }) {
  const options = versions.map((v) => [v.version, T.version(v.version, v.action, local(v.at))]);
  const submit = (event) => {
    event.preventDefault();
    const said = new FormData(event.currentTarget);
    keepTab();
    go(["documents", name, "history"], { from: said.get("from"), to: said.get("to") });
  };
  return (
    <form class="filters" onSubmit={submit}>
      <Choice id="from" label={T.from} value={from} options={options} /><Choice id="to" label={T.to} value={to} options={options} />
      <button>{T.compare}</button>
    </form>
  );
}

// Every review, the newest first.
const Words = ({ said }) => (
  <ul class="plain">{[...said].reverse().map((w, at) => (
    <li class="break" key={at}><strong>{w.state}</strong>{R.by(w.by)}<When at={w.at} />{w.note ? R.said(w.note) : ""}
      {w.digest ? <div class="soft small">{R.of}<Short text={w.digest} what={TEXTS.document.facts.digest} /></div> : null}</li>
  ))}</ul>
);
