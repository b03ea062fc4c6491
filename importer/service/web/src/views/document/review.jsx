// A review: what an import would change first, what is new, every setting with the values of all sides, losses, and one case.

import { may } from "../../api.js";
import { Action, Changes, Code, Conflicts, Failure, Link, Mark, Section, Soft, Table, When, useAction } from "../../components/index.js";
import { shown } from "../../format.js";
import { go } from "../../router.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { reimport } from "../overview/each.js";
import { Case } from "./case.jsx";
import { Attention, Why } from "./decisions.jsx";
import { Losses } from "./losses.jsx";
import { nextOf } from "./steps.jsx";

const T = TEXTS.review;
const LONG = 300; // characters of a value that is shown whole

export function View({ found, sheet }) {
  if (!sheet) return <p>{T.noReceipt}<Link to={["import"]}>{T.again}</Link></p>;
  return [
    sheet.next.kind === "failed" ? <div class="trouble"><p class="break">{nextOf(sheet)}</p><p class="remedy break">{sheet.next.fields.remedy ?? T.correct}</p></div> : null,
    sheet.recheck ? <Recheck found={found} sheet={sheet} /> : null,
    <Attention texts={sheet.warnings.map(({ message }) => message)} />,
    <Section title={T.changes}><Since sheet={sheet} /></Section>,
    <Section title={T.settings}><Settings rows={sheet.settings} served={sheet.served} /></Section>,
    <Section title={T.losses}><LossesOf found={sheet.losses} /></Section>,
    sheet.case ? <Case name={found.name} sheet={sheet} /> : null,
  ];
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
    if (!found || (side !== "served" && !found.length)) continue;
    const ident = JSON.stringify(found);
    groups.set(ident, { found, titles: [...(groups.get(ident)?.titles ?? []), words(served?.version)] });
  }
  return [
    served ? null : <p class="soft">{T.first}</p>,
    ...[...groups.values()].map(({ found, titles }) => [<h3 key={titles[0]}>{T.together(titles)}</h3>,
      found.length ? <Changes found={found} /> : <p class="soft">{TEXTS.common.noneInData}</p>]),
  ];
}

function Settings({ rows, served }) {
  const { key, value, ...others } = T.heads, sides = Object.keys(others).filter((side) => side !== "served" || served);
  return <Table label={T.settings} heads={[key, value, ...sides.map((side) => others[side])]} kind="stack settings" keys={rows.map((one) => one.key)} rows={rows.map((one) => [
    [<span class="break">{one.key}</span>, <Marks one={one} />],
    <Effective one={one} />,
    ...sides.map((side) => <Side one={one} side={side} head={others[side]} />),
  ])} />;
}

const Marks = ({ one }) => (
  <span class="marks">
    {one.attention.length ? <Mark word="stale">{T.attention}</Mark> : null}
    {one.edited ? <Mark word="edited">{T.edited}</Mark> : null}
    {one.new ? <Mark word="ready">{T.isNew}</Mark> : null}
  </span>
);

// What counts now, who or what set it, and all of the reasons behind that.
function Effective({ one }) {
  return [
    "value" in one ? <Long value={one.value} /> : <Soft>{TEXTS.common.absent}</Soft>, " ", one.edited ? null : <Mark word={one.status} />,
    one.by ? <p class="soft small">{T.editor(one.by)}<When at={one.at} /></p> : null,
    one.why.length || one.overruled.length ? <details class="small"><summary>{T.reasons(one.why.length + one.overruled.length)}</summary><Why one={one} /></details> : null,
  ];
}

// One side of a setting: what that side has, and where it has it from. A phone has no heads, so the side is named.
function Side({ one, side, head }) {
  if (!(side in one)) return null;
  const offer = ["vendor", "table", "engine_default"].includes(side), value = offer ? one[side].value : one[side];
  const same = "value" in one && shown(value) === shown(one.value);
  return <span class={same ? "soft" : "other"}><span class="head soft">{T.head(head)}</span><Long value={value} />
    {offer && one[side].source ? <span class="soft small break from">{T.from(one[side].source, one.key)}</span> : null}</span>;
}

function Long({ value }) {
  const text = shown(value);
  if (text.length <= LONG) return <Code>{text}</Code>;
  return <details><summary><Code>{text.slice(0, LONG / 3)}</Code>{" "}<Soft>{T.long(text.length)}</Soft></summary><Code>{text}</Code></details>;
}
