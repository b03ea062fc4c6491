// What the probes found: the matrix of all runs, and each probe with the raw exchanges it is judged by.

import { ask, get } from "./api.js";
import { el, mark, moment, section, soft, table } from "./dom.js";
import { run } from "./problem.js";

const SHORT = { "not-applicable": "n/a" };
const FILES = { html: "a page", junit: "JUnit XML", json: "JSON" };
const ENDINGS = { html: "html", junit: "xml", json: "json" };

export async function show({ name, signal }) {
  const told = await get(["configs", name, "report", "json"], { signal });
  if (!told.runs.length) return el("p", {}, "It was never run. ", soft("Validate starts it on a real engine and asks every probe."));
  const names = [...new Set(told.runs.flatMap((r) => r.outcomes.map((o) => o.probe)))];
  return [
    troubles(told.runs),
    section("Runs", told.runs.map(ran)),
    section("Matrix", told.runs.length === 1 ? single(told.runs[0]) : several(told.runs, names)),
    section("Each probe", names.map((probe) => each(probe, told.runs))),
    saved(name),
  ];
}

const label = (one) => (one.version ? `${one.engine} ${one.version}` : one.engine);
const outcome = (o) => mark(o.outcome, SHORT[o.outcome] ?? o.outcome);
const passed = (o) => o.outcome === "pass" || o.outcome === "not-applicable";

function pace({ first_token_seconds: first, tokens_per_second: rate }) {
  return `${first == null ? "" : `, first token ${first.toFixed(2)} s`}${rate == null ? "" : `, ${rate.toFixed(1)} tokens/s`}`;
}

function ran(one) {
  const counts = Object.entries(one.counts).filter(([, n]) => n).map(([word, n]) => `${n} ${word}`).join(", ");
  const times = Object.entries(one.seconds).map(([part, s]) => `${part} ${s.toFixed(1)} s`).join(", ") + pace(one.speed ?? {});
  const odd = { stale: "These are outcomes of other data than the document has now.", partial: "Only a part was asked: this is not the document's validation." }[one.state];
  return el("div", { class: "run" }, el("p", {}, el("strong", {}, label(one)), " ", mark(one.state), " ", soft(`${counts}; ${moment(one.started)}`)),
    odd ? el("p", { class: "soft" }, odd) : null, el("p", { class: "soft small" }, times));
}

function troubles(runs) {
  const found = runs.filter((r) => r.state !== "stale").flatMap((r) => r.outcomes.filter((o) => !passed(o)).map((o) => [r, o]));
  if (!found.length) return null;
  return section("What did not pass", found.map(([r, o]) => el("article", { class: `trouble ${o.outcome === "inconclusive" ? "inconclusive" : ""}` },
    el("h3", {}, o.probe, " ", outcome(o), " ", soft(`${o.attribution ? `attribution: ${o.attribution}; ` : ""}on ${label(r)}`)), el("p", { class: "break" }, o.reason), rungs(o), remedy(o))));
}

// The exchange rung by rung: where it broke first.
function rungs(o) {
  const facts = o.cause?.facts ?? [];
  return facts.length ? el("ol", { class: "rungs small" }, facts.map((f) => el("li", { class: "break" }, `${f.rung} ${f.state}: ${f.text}`))) : null;
}

const remedy = (o) => (o.remedy_message ? el("p", { class: "remedy break" }, o.remedy_message) : null);

function single(one) {
  return table("Probes", ["probe", "outcome", "attribution", "trials, 95 % interval", "reason"], one.outcomes.map((o) => [
    go(o.probe), outcome(o), o.attribution ?? "", soft(trials(o)), [o.reason, remedy(o)]]), "stack outcomes");
}

function several(runs, names) {
  return table("Probes and engines", ["probe", ...runs.map((r) => [label(r), " ", r.state === "stale" || r.state === "partial" ? mark(r.state) : null])],
    names.map((probe) => [go(probe), ...runs.map((r) => { const o = r.outcomes.find((one) => one.probe === probe); return o ? outcome(o) : ""; })]), "several");
}

// Opens a probe below; the address stays, for it says which page this is.
function go(probe) {
  const click = () => {
    const there = document.getElementById(ident(probe));
    there.open = true;
    there.scrollIntoView();
    there.querySelector("summary").focus();
  };
  return el("button", { type: "button", class: "inline", on: { click } }, probe);
}

const ident = (probe) => `probe-${probe.replace(/[^a-z0-9-]/gi, "-")}`;

function trials(o) {
  if (!o.interval) return "";
  const [low, high] = o.interval.map((end) => (100 * end).toFixed(0));
  return `${o.agreed} of ${o.trials}, ${low}–${high} %`;
}

function each(probe, runs) {
  const found = runs.flatMap((r) => r.outcomes.filter((o) => o.probe === probe).map((o) => [r, o]));
  const lesson = found.find(([, o]) => o.lesson)?.[1].lesson ?? "";
  return el("details", { class: "probe", id: ident(probe), open: found.some(([, o]) => !passed(o)) },
    el("summary", {}, el("h3", {}, probe), found.map(([, o]) => outcome(o)), el("span", { class: "lesson soft small" }, lesson)),
    el("div", {}, found.map(([r, o]) => [
      el("p", {}, el("strong", {}, label(r)), " ", outcome(o), " ", soft(`took ${o.seconds.toFixed(2)} s`)),
      el("p", { class: "break" }, o.reason), remedy(o),
      o.log ? el("details", {}, el("summary", {}, "What the engine's log complained of"), el("pre", { tabindex: 0 }, o.log)) : null,
      o.exchanges.length ? el("details", {}, el("summary", {}, `${o.exchanges.length} raw ${o.exchanges.length === 1 ? "exchange" : "exchanges"}`), o.exchanges.map(exchange)) : null])));
}

function exchange(e) {
  return el("div", {}, el("p", { class: "mono" }, `${e.method} ${e.path} → ${e.status} in ${e.seconds} s`),
    e.request ? el("pre", { tabindex: 0, "aria-label": "what was sent" }, JSON.stringify(e.request, null, 1)) : null,
    el("pre", { tabindex: 0, "aria-label": "what came back" }, e.body ?? ""), e.error ? el("p", { class: "break" }, e.error) : null);
}

function saved(name) {
  const failed = el("div");
  return section("As a file", el("p", { class: "buttons" }, Object.entries(FILES).map(([kind, words]) => {
    const button = el("button", { type: "button", on: { click: () => run(button, failed, () => save(name, kind)) } }, words);
    return button;
  })), failed);
}

// A link could not send a key, so what is fetched with one is handed over.
async function save(name, kind) {
  const answer = await ask("GET", ["configs", name, "report", kind]);
  const url = URL.createObjectURL(await answer.blob());
  el("a", { href: url, download: `${name}.${ENDINGS[kind]}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

