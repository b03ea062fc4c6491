// What was decided and why: the value, how sure that is, the facts, the next candidate, and the map of the proof.

import { get } from "../../api.js";
import { Block, Code, Mark, Section, Soft, Table, When } from "../../components/index.js";
import { bytes, shown } from "../../format.js";
import { TEXTS } from "../../text.js";
import { Fits } from "./memory.jsx";
import { ProofMap } from "./proof.jsx";
import { REMARKS } from "./remarks.js";

const T = TEXTS.decisions;
const FACTS = 3; // that are shown beside a value

export async function load({ name, signal }) {
  try {
    return await get(["configs", name, "decisions"], { signal });
  } catch (error) {
    if (error.kind !== "no-receipt") throw error;
    return null;
  }
}

export function View({ data: told, sheet }) {
  if (!told) return <p>{T.noReceipt}</p>;
  const { unknown } = told, now = Object.fromEntries(sheet.settings.map((one) => [one.key, one.value]));
  return [
    <Decided told={told} settings={sheet.settings} />,
    sheet.maps.map((map) => <ProofMap key={map.key} map={map} proof={told.proof} chosen={now[map.key]} />),
    Object.entries(told.proof?.unasked ?? {}).map(([key, why]) => <p class="soft small" key={key}>{T.unproved(T.fields[key], why)}</p>),
    told.fit ? <Section title={T.memory}><Fit told={told.fit} /></Section> : null,
    Object.keys(unknown).length ? <Section title={T.unknown}><ul>{Object.entries(unknown).map(([k, why]) => <li key={k}><Code>{k}</Code>{T.why(why)}</li>)}</ul></Section> : null,
  ];
}

export function Attention({ texts }) {
  if (!texts.length) return null;
  return <div class="trouble inconclusive"><h2>{T.attention}</h2><ul>{texts.map((text, at) => <li class="break" key={at}>{text}</li>)}</ul></div>;
}

// Each setting with the facts that decided; what only the receipt records follows in sentences. A preview has no
// ``settings``, which are those of a review: there the decisions are all that is known.
export function Decided({ told: { decisions, evidence }, settings }) {
  const rows = settings ?? Object.entries(decisions).filter(([key]) => !REMARKS.includes(key)).map(([key, one]) => ({ key, ...one }));
  const remarks = Object.entries(decisions).filter(([key, one]) => REMARKS.includes(key) && one.why.length);
  return [
    <Table label={T.title} heads={T.heads} kind="stack decisions" keys={rows.map(({ key }) => key)} rows={rows.map((one) => [
      <span class="break">{one.key}</span>, <Effective one={one} />, <Mark word={one.status} />, <Why one={one} evidence={evidence} />,
    ])} />,
    remarks.length ? <Section title={T.findings}><ul>{remarks.flatMap(([key, one]) => one.why.map((why, at) => <li class="break" key={`${key} ${at}`}>{why}</li>))}</ul></Section> : null,
  ];
}

// As ``importer why`` has it: the facts that decided and the next candidate; the rest is folded.
export function Why({ one, evidence = [] }) {
  const [next, ...others] = one.overruled, own = evidence.filter((e) => e.key === one.key && (e.quote || !one.why.includes(e.message)));
  const facts = one.why.slice(FACTS), more = facts.length + others.length + own.length;
  return [
    <ul class="plain">{one.why.slice(0, FACTS).map((why, at) => <li class="break" key={at}>{why}</li>)}
      {next ? <li class="break soft"><Lost one={next} /></li> : null}</ul>,
    more ? <details class="small"><summary>{T.evidence(more)}</summary><ul>
      {facts.map((why, at) => <li class="break" key={`f${at}`}>{why}</li>)}
      {own.map((e, at) => <li class="break" key={at}>{e.rule === "proof" ? null : [<Code>{shown(e.value)}</Code>, " "]}<strong>{e.source}</strong>{T.why(e.message)}{e.quote ? <Block label={e.source} text={e.quote} /> : null}</li>)}
      {others.map((o, at) => <li class="break" key={`o${at}`}><Lost one={o} /></li>)}
    </ul></details> : null,
  ];
}

// A candidate that was not taken; its source stands before a reason that does not name it.
const Lost = ({ one }) => [T.not, <Code>{shown(one.value)}</Code>, T.why(one.why)];

// The value that is in the document now; below it the import's and the release's, where they are others.
function Effective({ one }) {
  const side = (name) => (name in one ? shown(one[name]) : TEXTS.common.absent);
  return [
    <Code>{side("value")}</Code>,
    one.by ? <p class="soft small">{T.by(one.by)}<When at={one.at} /></p> : null,
    one.status === "edited" ? <p class="soft small break">{T.imported}<Code>{side("imported")}</Code></p> : null,
    "served" in one && side("served") !== side("value") ? <p class="soft small break">{T.served}<Code>{side("served")}</Code></p> : null,
  ];
}

function Fit({ told }) {
  const estimate = told.estimate;
  return [
    <Fits verdict={told.verdict} message={told.message} />,
    estimate ? <details class="small"><summary>{T.takes}</summary><Table label={T.memory} heads={T.takesHeads}
      rows={[...estimate.terms, { part: T.inAll, ...estimate.total }].map((t) => [t.part, bytes(t.likely), <Soft>{T.between(bytes(t.low), bytes(t.high))}</Soft>, t.why ?? ""])} /></details> : null,
  ];
}
