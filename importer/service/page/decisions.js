// What was decided and why: the value, how sure that is, the evidence, what was overruled, what parsers read.

import { get } from "./api.js";
import { changes, code, el, mark, moment, section, shown, soft, table } from "./dom.js";

const FIELDS = { tool_parser: "tool calls", reasoning_parser: "thinking" };
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export async function show({ name, signal }) {
  let told;
  try {
    told = await get(["configs", name, "decisions"], { signal });
  } catch (error) {
    if (error.kind !== "no-receipt") throw error;
    return el("p", {}, "It has no receipt, so nobody knows why it is as it is.");
  }
  const { warnings, edited, differences, unknown } = told;
  return [
    attention(warnings),
    differences?.length ? [el("h2", {}, "Since it was approved"), changes(differences)] : null,
    edited?.length ? [el("h2", {}, "Edited since its import"), changes(edited)] : null,
    decisions(told),
    told.fit ? section("Memory", fit(told.fit)) : null,
    Object.keys(unknown).length ? section("Unknown", el("ul", {}, Object.entries(unknown).map(([k, why]) => el("li", {}, code(k), `: ${why}`)))) : null,
  ];
}

export function attention(texts) {
  if (!texts.length) return null;
  return el("div", { class: "trouble inconclusive" }, el("h2", {}, "Needs attention"), el("ul", {}, texts.map((text) => el("li", { class: "break" }, text))));
}

const TEXTS = { imported: "imported: ", served: "served: ", absent: "absent", by: (one) => `by ${one.by}, ` };

export function decisions({ decisions: decided, evidence, proof, values = [] }) {
  const now = Object.fromEntries(values.map((one) => [one.key, one]));
  const others = values.filter((one) => !(one.key in decided)).map((one) => [el("span", { class: "break" }, one.key), effective(one), mark(one.status), one.source]);
  return table("Decisions", ["decision", "value", "status", "why"], [...others, ...Object.entries(decided).map(([key, one]) => [
    el("span", { class: "break" }, key),
    now[key] ? effective(now[key]) : code(shown(one.value)),
    mark(now[key]?.status ?? one.status),
    [el("ul", { class: "plain" }, one.why.map((why) => el("li", {}, why))), behind(key, one, evidence), FIELDS[key] && proof ? parsers(key, one, proof) : null],
  ])], "stack decisions");
}

// The value that is in the document now; below it the import's and the release's, where they are others.
function effective(one) {
  const side = (name) => (name in one ? shown(one[name]) : TEXTS.absent);
  const differs = (name) => side(name) !== side("value");
  return [
    code(side("value")),
    one.by ? el("p", { class: "soft small" }, TEXTS.by(one), moment(one.at)) : null,
    one.status === "edited" ? el("p", { class: "soft small break" }, TEXTS.imported, code(side("imported"))) : null,
    "served" in one && differs("served") ? el("p", { class: "soft small break" }, TEXTS.served, code(side("served"))) : null,
  ];
}

function behind(key, one, evidence) {
  const own = evidence.filter((e) => e.key === key);
  if (!own.length && !one.overruled.length) return null;
  const number = own.length + one.overruled.length;
  return el("details", { class: "small" }, el("summary", {}, `evidence (${number})`), el("ul", {},
    own.map((e) => el("li", {}, e.rule === "proof" ? null : [code(shown(e.value)), " "], el("strong", {}, e.source), `: ${e.message}`, e.quote ? el("pre", { tabindex: 0 }, e.quote) : null)),
    one.overruled.map((o) => el("li", {}, mark("overruled"), " ", code(shown(o.value)), " ", el("strong", {}, o.source), `: ${o.why}`))));
}

// What the template wrote in each case, and what the chosen parser and all others made of it.
function parsers(key, one, proof) {
  const verdicts = proof.verdicts?.[key] ?? [];
  if (!verdicts.length) return proof.unasked?.[key] ? el("p", { class: "soft small" }, `Not proved: ${proof.unasked[key]}.`) : null;
  const chosen = verdicts.find((v) => v.parser === one.value) ?? verdicts[0];
  const cases = [...chosen.passed, ...Object.keys(chosen.failed)];
  return [
    el("details", { class: "small" }, el("summary", {}, `${FIELDS[key]}: what was rendered, and what ${chosen.parser} read (${cases.length} cases)`),
      cases.map((name) => el("div", { class: "case" }, el("p", {}, el("strong", {}, name), " ",
        name in chosen.failed ? [mark("fail", "differs"), " ", chosen.failed[name]] : [mark("pass", "read back")]),
      el("pre", { tabindex: 0 }, proof.written?.[name] ?? "")))),
    el("details", { class: "small" }, el("summary", {}, `all ${verdicts.length} parsers of ${proof.engine} ${proof.version}`),
      table("Parsers", ["parser", "reads it", "cases", "what else"], verdicts.map((v) => [v.parser, v.reads ? mark("pass", "yes") : mark("fail", "no"),
        `${v.passed.length}`, [...Object.entries(v.failed).map(([n, why]) => `${n}: ${why}`), v.streaming && `in pieces: ${v.streaming}`, v.forbidden && `cannot be written: ${v.forbidden}`].filter(Boolean).map((line) => el("div", {}, line))]))),
  ];
}

function fit(told) {
  const estimate = told.estimate;
  return [el("p", {}, mark(told.verdict === "fits" ? "pass" : "inconclusive", told.verdict), " ", told.message),
    estimate ? el("details", { class: "small" }, el("summary", {}, "What takes it"), table("Memory", ["part", "likely", "between", "why"],
      [...estimate.terms, { part: "in all", ...estimate.total }].map((t) => [t.part, bytes(t.likely), soft(`${bytes(t.low)} – ${bytes(t.high)}`), t.why ?? ""]))) : null];
}

function bytes(number) {
  let rest = number, unit = 0;
  while (rest >= 1024 && unit < UNITS.length - 1) { rest /= 1024; unit += 1; }
  return `${rest < 10 && unit ? rest.toFixed(1) : Math.round(rest)} ${UNITS[unit]}`;
}
