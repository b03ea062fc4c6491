// The history by day: what changed the data, with approvals and validations as marks; what differs between any two versions.

import { get } from "../../api.js";
import { Changes, Choice, Difference, Mark, Section, Soft, When } from "../../components/index.js";
import { local } from "../../format.js";
import { go, keepTab } from "../../router.js";
import { TEXTS } from "../../text.js";
import { Restore } from "./restore.jsx";
import { Serve } from "./serve.jsx";

const T = TEXTS.history, G = TEXTS.releases;
const WORDS = { approve: "approved", reject: "rejected", validate: "validated" };
const MARKS = Object.keys(WORDS); // actions that change no data
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

export function View({ data: { versions, served, from, to, sides }, found }) {
  return [
    <p class="soft">{served === null ? G.none : G.serves(served)}</p>,
    <section aria-label={T.versions}>{days(versions).map(([day, rows]) => (
      <section key={day} aria-label={day}><h3>{day}</h3><ol class="timeline">{rows.map((row) => <Entry key={row.version.version} row={row} found={found} served={served} newest={versions[0].version} />)}</ol></section>
    ))}</section>,
    <Section title={T.differences}>
      <Choose name={found.name} versions={versions} from={from} to={to} />
      {sides ? <Difference before={sides[0].text} after={sides[1].text} /> : null}
    </Section>,
  ];
}

// The rows of each day, the newest first: a version whose data are its own, with the words and runs that followed as its marks.
function days(versions) {
  const found = new Map();
  let marks = [];
  for (const version of versions) {
    if (MARKS.includes(version.action) && version.changes) { marks.unshift(version); continue; }
    const day = new Date(version.at).toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
    found.set(day, [...(found.get(day) ?? []), { version, marks }]);
    marks = [];
  }
  return [...found];
}

function Entry({ row: { version, marks }, found, served, newest }) {
  const all = [...marks].reverse().concat(version), present = all.some((one) => one.version === newest);
  return (
    <li>
      <div class="line"><strong>{version.action}</strong><span>{T.number(version.version)}</span><Soft>{T.by(version.by)}<When at={version.at} /></Soft>
        {all.some((one) => one.version === served) ? <Mark word="published">{G.served}</Mark> : null}
        {present && !all.some((one) => one.version === served) ? null : <details class="menu"><summary aria-label={T.menu(version.version)}>…</summary><div class="buttons">
          {all.map((one) => <Serve key={one.version} one={one} name={found.name} served={served} newest={newest} />)}
          {present ? null : <Restore version={version.version} found={found} newest={newest} />}
        </div></details>}</div>
      {version.why ? <p class="break">{version.why}</p> : null}
      {version.changes?.length ? <Changes found={version.changes} /> : null}
      {marks.length ? <ul class="plain small">{marks.map((one) => (
        <li class="break" key={one.version}><Mark word={WORDS[one.action]}>{one.action}</Mark>{" "}<Soft>{T.number(one.version)}{T.by(one.by)}<When at={one.at} /></Soft>{one.why ? T.said(one.why) : null}</li>
      ))}</ul> : null}
    </li>
  );
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
