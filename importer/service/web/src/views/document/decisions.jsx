// What was decided and why: the value, how sure that is, the evidence, what was overruled, what parsers read.

import { get } from "../../api.js";
import { Code, Mark, Section, Soft, Table } from "../../components/index.js";
import { bytes, moment, shown } from "../../format.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.decisions;

export async function load({ name, signal }) {
  try {
    return await get(["configs", name, "decisions"], { signal });
  } catch (error) {
    if (error.kind !== "no-receipt") throw error;
    return null;
  }
}

export function View({ data: told }) {
  if (!told) return <p>{T.noReceipt}</p>;
  const { unknown } = told;
  return [
    <Decided told={told} />,
    told.fit ? <Section title={T.memory}><Fit told={told.fit} /></Section> : null,
    Object.keys(unknown).length ? <Section title={T.unknown}><ul>{Object.entries(unknown).map(([k, why]) => <li key={k}><Code>{k}</Code>{T.why(why)}</li>)}</ul></Section> : null,
  ];
}

export function Attention({ texts }) {
  if (!texts.length) return null;
  return <div class="trouble inconclusive"><h2>{T.attention}</h2><ul>{texts.map((text, at) => <li class="break" key={at}>{text}</li>)}</ul></div>;
}

export function Decided({ told: { decisions, evidence, proof, values = [] } }) {
  const now = Object.fromEntries(values.map((one) => [one.key, one]));
  const others = values.filter((one) => !(one.key in decisions)).map((one) => [<span class="break">{one.key}</span>, <Effective one={one} />, <Mark word={one.status} />, one.source]);
  return <Table label={T.title} heads={T.heads} kind="stack decisions" rows={[...others, ...Object.entries(decisions).map(([key, one]) => [
    <span class="break">{key}</span>,
    now[key] ? <Effective one={now[key]} /> : <Code>{shown(one.value)}</Code>,
    <Mark word={now[key]?.status ?? one.status} />,
    [<ul class="plain">{one.why.map((why, at) => <li key={at}>{why}</li>)}</ul>, <Behind name={key} one={one} evidence={evidence} />,
      T.fields[key] && proof ? <Parsers name={key} one={one} proof={proof} /> : null],
  ])]} />;
}

// The value that is in the document now; below it the import's and the release's, where they are others.
function Effective({ one }) {
  const side = (name) => (name in one ? shown(one[name]) : TEXTS.common.absent);
  return [
    <Code>{side("value")}</Code>,
    one.by ? <p class="soft small">{T.by(one.by)}{moment(one.at)}</p> : null,
    one.status === "edited" ? <p class="soft small break">{T.imported}<Code>{side("imported")}</Code></p> : null,
    "served" in one && side("served") !== side("value") ? <p class="soft small break">{T.served}<Code>{side("served")}</Code></p> : null,
  ];
}

function Behind({ name, one, evidence }) {
  const own = evidence.filter((e) => e.key === name);
  if (!own.length && !one.overruled.length) return null;
  return (
    <details class="small"><summary>{T.evidence(own.length + one.overruled.length)}</summary><ul>
      {own.map((e, at) => <li key={at}>{e.rule === "proof" ? null : [<Code>{shown(e.value)}</Code>, " "]}<strong>{e.source}</strong>{T.why(e.message)}{e.quote ? <pre tabindex={0}>{e.quote}</pre> : null}</li>)}
      {one.overruled.map((o, at) => <li key={`o${at}`}><Mark word="overruled" />{" "}<Code>{shown(o.value)}</Code>{" "}<strong>{o.source}</strong>{T.why(o.why)}</li>)}
    </ul></details>
  );
}

// What the template wrote in each case, and what the chosen parser and all others made of it.
function Parsers({ name, one, proof }) {
  const verdicts = proof.verdicts?.[name] ?? [];
  if (!verdicts.length) return proof.unasked?.[name] ? <p class="soft small">{T.unproved(proof.unasked[name])}</p> : null;
  const chosen = verdicts.find((v) => v.parser === one.value) ?? verdicts[0];
  const cases = [...chosen.passed, ...Object.keys(chosen.failed)];
  return [
    <details class="small"><summary>{T.rendered(T.fields[name], chosen.parser, cases.length)}</summary>
      {cases.map((each) => (
        <div class="case" key={each}><p><strong>{each}</strong>{" "}
          {each in chosen.failed ? [<Mark word="fail">{T.differs}</Mark>, " ", chosen.failed[each]] : <Mark word="pass">{T.readBack}</Mark>}</p>
          <pre tabindex={0}>{proof.written?.[each] ?? ""}</pre></div>
      ))}</details>,
    <details class="small"><summary>{T.parsers(verdicts.length, proof.engine, proof.version)}</summary>
      <Table label={T.parsersLabel} heads={T.parserHeads} rows={verdicts.map((v) => [v.parser, v.reads ? <Mark word="pass">{T.yes}</Mark> : <Mark word="fail">{T.no}</Mark>,
        `${v.passed.length}`, beyond(v).map((line, at) => <div key={at}>{line}</div>)])} /></details>,
  ];
}

const beyond = (v) => [
  ...Object.entries(v.failed).map(([each, why]) => `${each}${T.why(why)}`), v.streaming && T.inPieces(v.streaming), v.forbidden && T.unwritable(v.forbidden),
].filter(Boolean);

function Fit({ told }) {
  const estimate = told.estimate;
  return [
    <p><Mark word={told.verdict === "fits" ? "pass" : "inconclusive"}>{told.verdict}</Mark>{" "}{told.message}</p>,
    estimate ? <details class="small"><summary>{T.takes}</summary><Table label={T.memory} heads={T.takesHeads}
      rows={[...estimate.terms, { part: T.inAll, ...estimate.total }].map((t) => [t.part, bytes(t.likely), <Soft>{T.between(bytes(t.low), bytes(t.high))}</Soft>, t.why ?? ""])} /></details> : null,
  ];
}
