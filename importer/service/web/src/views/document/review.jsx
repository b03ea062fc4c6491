// A review: a sentence, the failure with its fix, what differs or is doubtful as cards beside the map of the parsers, the rest folded.

import { ask, may } from "../../api.js";
import { Action, Changes, Code, Conflicts, CopyButton, Failure, Link, Mark, Section, Soft, Table, When, say, useAction } from "../../components/index.js";
import { bytes, shown } from "../../format.js";
import { go } from "../../router.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { reimport } from "../overview/each.js";
import { Attention, Why } from "./decisions.jsx";
import { Losses } from "./losses.jsx";
import { SmallMap } from "./proof.jsx";
import { nextOf } from "./steps.jsx";

const T = TEXTS.review;
const SIDES = ["vendor", "table", "engine_default", "imported", "served"];
const LONG = 300; // characters of a value that is shown whole
const SURE = ["proved", "observed", "vendor", "user", "engine-default"]; // statuses that rest on more than a table or a name

const open = (one) => one.attention.length > 0 || one.edited || one.new || !SURE.includes(one.status);

export function View({ found, sheet }) {
  if (!sheet) return <p>{T.noReceipt}<Link to={["import"]}>{T.again}</Link></p>;
  const cards = sheet.settings.filter(open), others = sheet.settings.filter((one) => !open(one));
  return [
    <p class="sum break">{T.summary(found.facts, sheet.settings, sheet.maps[0]?.of, bytes)}</p>,
    sheet.next.kind === "failed" ? <Failed found={found} sheet={sheet} /> : null,
    sheet.recheck ? <Recheck found={found} sheet={sheet} /> : null,
    <Attention texts={sheet.warnings.map(({ message }) => message)} />,
    <div class="beside">
      <div>
        {cards.length ? <Section title={T.cards}><div class="cards">{cards.map((one) => <Setting key={one.key} one={one} served={sheet.served} />)}</div></Section> : <p class="soft">{T.none}</p>}
        <details class="rest"><summary>{T.rest(others.length)}</summary><Table label={T.settings} heads={T.heads} kind="stack" keys={others.map(({ key }) => key)} rows={others.map((one) => [
          <span class="break">{one.key}</span>, <Effective one={one} />, <span class="soft small break">{one.source}</span>,
        ])} /></details>
        <Since sheet={sheet} />
      </div>
      {sheet.maps.length ? <aside aria-label={T.maps}>{sheet.maps.map((map) => <SmallMap key={map.key} map={map} name={found.name} />)}</aside> : null}
    </div>,
    <Section title={T.losses}><LossesOf found={sheet.losses} /></Section>,
  ];
}

// The failure of the validation, and its remedy: a change that is applied here, a command to copy, or a sentence.
function Failed({ found, sheet }) {
  const { me, again } = useView(), act = useAction(), { remedy, fix } = sheet.next.fields;
  const apply = async () => {
    await ask("PATCH", ["configs", found.name], { text: JSON.stringify(fix.change), type: "application/merge-patch+json", match: found.etag, query: { why: remedy } });
    await again();
    say(T.applied(found.name));
  };
  return (
    <div class="trouble"><p class="break">{nextOf(sheet)}</p><p class="remedy break">{remedy ?? T.correct}</p>
      {fix?.change ? <p class="buttons"><Action act={act} name="fix" main label={T.apply} disabled={!may(me, "import")} onAct={apply} />
        <Link to={["documents", found.name, "probes"]}>{TEXTS.jobs.probes}</Link></p> : null}
      {fix?.command ? <p class="break"><Code>{fix.command}</Code>{" "}<CopyButton text={fix.command} what={T.command} /></p> : null}
      <Failure of={act} /></div>
  );
}

// What an import would write, warn of or refuse now.
function Recheck({ found, sheet: { version, recheck: { found: dry, version: compared } } }) {
  const { me } = useView(), act = useAction(), R = T.recheck;
  const again = async () => go(["jobs", (await reimport(found.name, found.backend, dry.engine_version)).id]);
  return (
    <Section title={dry.refused ? R.refused : R.differs}>
      <p class="soft">{R.about(dry.engine_version)}{version === compared ? null : R.outdated}</p>
      {dry.refused ? <p class="break">{dry.refused.message}</p> : null}
      <Attention texts={dry.warnings.map(({ message }) => message)} />
      {dry.changes.length ? <Changes found={dry.changes} /> : null}
      {dry.conflicts.length ? <Conflicts found={dry.conflicts} /> : null}
      {dry.weights.length ? <p class="break">{R.weights(dry.weights)}</p> : null}
      {dry.unproved ? <p class="soft">{R.unproved}</p> : null}
      {dry.refused ? null : <p class="buttons"><Action act={act} name="again" label={R.again} disabled={!may(me, "import")} onAct={again} /></p>}
      <Failure of={act} />
    </Section>
  );
}

function LossesOf({ found }) {
  if (found === null || found === undefined) return <p>{T.noEntry}</p>;
  return found.length ? <Losses found={found} /> : <p class="soft">{TEXTS.losses.none}</p>;
}

// Sides with the same changes share one list.
function Since({ sheet: { changes, served } }) {
  const groups = new Map();
  for (const [side, words] of Object.entries(T.since)) {
    const found = changes[side];
    if (!found?.length) continue;
    const ident = JSON.stringify(found);
    groups.set(ident, { found, titles: [...(groups.get(ident)?.titles ?? []), words(served?.version)] });
  }
  if (!groups.size) return null;
  return <Section title={T.changes}>{[...groups.values()].map(({ found, titles }) => [<h3 key={titles[0]}>{T.together(titles)}</h3>, <Changes found={found} />])}</Section>;
}

// A value that differs or is doubtful: large, where it comes from, what else it could be, and the reasons.
function Setting({ one, served }) {
  const others = SIDES.filter((side) => side in one && (side !== "served" || served)).map((side) => [side, one[side]?.source ? one[side].value : one[side], one[side]?.source]);
  return (
    <article>
      <h3 class="break">{one.key}</h3>
      <p class="big"><Effective one={one} /></p>
      <span class="marks">
        {one.attention.length ? <Mark word="stale">{T.attention}</Mark> : null}
        {one.edited ? <Mark word="edited">{T.edited}</Mark> : null}
        {one.new ? <Mark word="ready">{T.isNew}</Mark> : null}
      </span>
      <p class="soft small">{one.by ? [T.editor(one.by), <When at={one.at} />] : one.source}</p>
      <ul class="plain small">{others.map(([side, value, source]) => (
        <li class="break" key={side}><span class="soft">{T.side(T.sides[side])}</span><Long value={value} />{source ? <span class="soft">{T.from(source, one.key)}</span> : null}</li>
      ))}</ul>
      {one.why.length || one.overruled.length ? <details class="small"><summary>{T.reasons(one.why.length + one.overruled.length)}</summary><Why one={one} /></details> : null}
    </article>
  );
}

const Effective = ({ one }) => ["value" in one ? <Long value={one.value} /> : <Soft>{TEXTS.common.absent}</Soft>, " ", one.edited ? null : <Mark word={one.status} />];

function Long({ value }) {
  const text = shown(value);
  if (text.length <= LONG) return <Code>{text}</Code>;
  return <details><summary><Code>{text.slice(0, LONG / 3)}</Code>{" "}<Soft>{T.long(text.length)}</Soft></summary><Code>{text}</Code></details>;
}
