// What the probes found: the matrix of all runs, and each probe with the raw exchanges it is judged by.

import { ask, get } from "../../api.js";
import { Action, Block, Failure, Mark, Section, Soft, When, download, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { Matrix } from "./matrix.jsx";

const T = TEXTS.probes;
const ENDINGS = { html: "html", junit: "xml", json: "json" };

export async function load({ name, signal }) {
  return { runs: (await get(["configs", name, "report", "json"], { signal })).runs };
}

export function View({ data: { runs }, found }) {
  if (!runs.length) return <p>{T.never}<Soft>{T.hint}</Soft></p>;
  const names = [...new Set(runs.flatMap((r) => r.outcomes.map((o) => o.probe)))];
  return [
    <Troubles runs={runs} />,
    <Section title={T.matrix}><Matrix runs={runs} go={(probe) => <Go probe={probe} />} /></Section>,
    <Section title={T.runs}>{runs.map((one, at) => <Run key={at} one={one} />)}</Section>,
    <Section title={T.each}>{names.map((probe) => <Each key={probe} probe={probe} runs={runs} />)}</Section>,
    <Saved name={found.name} />,
  ];
}

const label = (one) => (one.version ? `${one.engine} ${one.version}` : one.engine);
const passed = (o) => ["pass", "not-shown", "not-applicable"].includes(o.outcome);
const Outcome = ({ of: o }) => <Mark word={o.outcome}>{T.short[o.outcome] ?? o.outcome}</Mark>;
const Remedy = ({ of: o }) => (o.remedy_message ? <p class="remedy break">{`${o.remedy_message}${T.tried(o.tried)}`}</p> : null);

function pace({ first_token_seconds: first, tokens_per_second: rate }) {
  return `${first == null ? "" : T.firstToken(first.toFixed(2))}${rate == null ? "" : T.rate(rate.toFixed(1))}`;
}

function Run({ one }) {
  const counts = Object.entries(one.counts).filter(([, n]) => n).map(([word, n]) => `${n} ${word}`).join(", ");
  const times = Object.entries(one.seconds).map(([part, s]) => `${part} ${s.toFixed(1)} s`).join(", ") + pace(one.speed ?? {});
  const odd = { stale: T.stale, partial: T.partial }[one.state];
  return (
    <div class="run"><p><strong>{label(one)}</strong>{" "}<Mark word={one.state} />{" "}<Soft>{`${counts}; `}<When at={one.started} /></Soft></p>
      {one.contract ? <p>{[T.verdict(one.contract, one.health), ...Object.entries(one.abilities).map(([name, [shown, of]]) => `${name} ${shown}/${of}`)].join(" · ")}</p> : null}
      {odd ? <p class="soft">{odd}</p> : null}<p class="soft small">{times}</p></div>
  );
}

function Troubles({ runs }) {
  const found = runs.filter((r) => r.state !== "stale").flatMap((r) => r.outcomes.filter((o) => !passed(o)).map((o) => [r, o]));
  if (!found.length) return null;
  return <Section title={T.failed}>{found.map(([r, o], at) => (
    <article key={at} class={`trouble ${o.outcome === "inconclusive" ? "inconclusive" : ""}`}>
      <h3>{o.probe}{" "}<Outcome of={o} />{" "}<Soft>{o.attribution ? T.attribution(o.attribution) : ""}{T.on(label(r))}</Soft></h3>
      <p class="break">{o.reason}</p><Stages of={o} /><Remedy of={o} />
      {o.exchanges.length ? <details><summary>{T.exchanges(o.exchanges.length)}</summary>{o.exchanges.map((e, n) => <Exchange key={n} e={e} />)}</details> : null}
    </article>
  ))}</Section>;
}

// The exchange stage by stage: where it broke first.
function Stages({ of: o }) {
  const facts = o.cause?.facts ?? [];
  return facts.length ? <ol class="stages small">{facts.map((f, at) => <li class="break" key={at}>{`${f.stage} ${f.state}: ${f.text}`}</li>)}</ol> : null;
}

// Opens a probe below; the address stays, for it says which page this is.
function Go({ probe }) {
  const click = () => {
    const there = document.getElementById(ident(probe));
    there.open = true;
    there.scrollIntoView();
    there.querySelector("summary").focus();
  };
  return <button type="button" class="inline" onClick={click}>{probe}</button>;
}

const ident = (probe) => `probe-${probe.replace(/[^a-z0-9-]/gi, "-")}`;

function trials(o) {
  if (!o.interval) return "";
  const [low, high] = o.interval.map((end) => (100 * end).toFixed(0));
  return T.trials(o.agreed, o.trials, low, high);
}

function Each({ probe, runs }) {
  const found = runs.flatMap((r) => r.outcomes.filter((o) => o.probe === probe).map((o) => [r, o]));
  const lesson = found.find(([, o]) => o.lesson)?.[1].lesson ?? "";
  return (
    <details class="probe" id={ident(probe)} open={found.some(([, o]) => !passed(o))}>
      <summary><h3>{probe}</h3>{found.map(([, o], at) => <Outcome key={at} of={o} />)}<span class="lesson soft small">{lesson}</span></summary>
      <div>{found.map(([r, o], at) => <Ran key={at} run={r} o={o} />)}</div>
    </details>
  );
}

function Ran({ run, o }) {
  return [
    <p><strong>{label(run)}</strong>{" "}<Outcome of={o} />{" "}<Soft>{T.took(o.seconds.toFixed(2))}{o.interval ? `, ${trials(o)}` : ""}</Soft></p>,
    <p class="break">{o.reason}</p>, <Remedy of={o} />,
    o.log ? <details><summary>{T.log}</summary><Block label={T.log} text={o.log} /></details> : null,
    o.exchanges.length ? <details><summary>{T.exchanges(o.exchanges.length)}</summary>{o.exchanges.map((e, at) => <Exchange key={at} e={e} />)}</details> : null,
  ];
}

const Exchange = ({ e }) => (
  <div><p class="mono">{T.exchange(e)}</p>
    {e.request ? <Block label={T.sent} text={JSON.stringify(e.request, null, 1)} /> : null}
    <Block label={T.received} text={e.body ?? ""} />{e.error ? <p class="break">{e.error}</p> : null}</div>
);

function Saved({ name }) {
  const act = useAction();
  return (
    <Section title={T.file}>
      <p class="buttons">{Object.entries(T.files).map(([kind, words]) => <Action key={kind} act={act} name={kind} label={words} onAct={() => save(name, kind)} />)}</p>
      <Failure of={act} />
    </Section>
  );
}

// A link could not send a key, so what is fetched with one is handed over.
async function save(name, kind) {
  const answer = await ask("GET", ["configs", name, "report", kind]);
  download(await answer.blob(), `${name}.${ENDINGS[kind]}`);
}
