// Jobs: all of them, or one as it goes.

import { get } from "./api.js";
import { el, facts, fill, link, mark, moment, place, section, shown, soft, table } from "./dom.js";
import { follow, open } from "./progress.js";

const STATES = ["queued", "running", "succeeded", "failed", "cancelled"];
const KINDS = ["import", "imports", "validation", "recheck", "listing", "listed"];
const PAUSE = 2000; // milliseconds between two looks at a list of which some still run

export const show = (context) => (context.route.parts[1] ? one(context) : list(context));

async function one({ route, signal, again }) {
  const job = await get(["jobs", route.parts[1]], { signal });
  const what = { import: `Import of ${job.request.reference}`, imports: "Import of a list", validation: `Validation of ${job.config}`, recheck: `Recheck of ${job.request.documents} documents` }[job.kind];
  const result = el("div", {}, outcome(job));
  const ended = (now) => { fill(result, outcome(now)); };
  return [
    el("h1", { tabindex: -1 }, what),
    follow(job, signal, ended, job.kind === "imports" ? again : null),
    result,
    job.refused ? refused(job.refused) : null,
    job.kind === "imports" ? await children(job, signal) : null,
    section("What was asked for", facts({ ...Object.fromEntries(Object.entries(job.request).map(([k, v]) => [k, shown(v)])),
      by: job.by, at: moment(job.created_at), device: job.device, list: job.parent && link(job.parent, ["jobs", job.parent]) })),
  ];
}

// The lines of a list that have no job.
const refused = (lines) => section("Refused lines", table("Refused lines", ["line", "reference", "problem"],
  lines.map((one) => [one.line, one.reference, one.error.detail])));

function outcome(job) {
  if (job.kind === "recheck" && job.state === "succeeded") return el("p", { class: "buttons" }, link("See what was found", ["upkeep"], {}, { class: "button main" }));
  if (job.state !== "succeeded" || !job.result?.name && !job.config) return null;
  const name = job.result?.name ?? job.config;
  const tab = job.kind === "validation" ? ["documents", name, "probes"] : ["documents", name];
  return el("p", { class: "buttons" }, link(job.kind === "validation" ? "See what the probes found" : `Review ${name}`, tab, {}, { class: "button main" }));
}

async function children(job, signal) {
  const node = el("div", {});
  let cursor = "";
  const shownRows = [];
  const load = async () => {
    const found = await get(["jobs"], { query: { parent: job.id, limit: 100, cursor }, signal });
    shownRows.push(...found.items);
    cursor = found.next;
    fill(node, rows(shownRows), cursor ? el("button", { type: "button", on: { click: load } }, "More") : null);
  };
  await load();
  keep(signal, () => shownRows.some(open), async () => {
    const found = await get(["jobs"], { query: { parent: job.id, limit: 200 }, signal });
    shownRows.splice(0, found.items.length, ...found.items);
    fill(node, rows(shownRows), cursor ? el("button", { type: "button", on: { click: load } }, "More") : null);
  });
  return section("Its jobs", node);
}

async function list({ route, signal }) {
  const state = route.query.getAll("state"), kind = route.query.get("kind") ?? "", cursor = route.query.get("cursor") ?? "";
  const load = () => get(["jobs"], { query: { state, kind, cursor, limit: 50 }, signal });
  let found = await load();
  const node = el("div", {}, body(found));
  keep(signal, () => !cursor && found.items.some(open), async () => { found = await load(); fill(node, body(found)); });
  const next = found.next ? link("Next page", ["jobs"], { state, kind, cursor: found.next }) : null;
  return [el("h1", { tabindex: -1 }, "Jobs"), filters(state, kind), node,
    el("nav", { "aria-label": "More jobs", class: "pager" }, cursor ? link("First page", ["jobs"], { state, kind }) : null, next)];
}

const body = (found) => (found.items.length ? rows(found.items) : el("p", {}, "There is none."));

function filters(state, kind) {
  const form = el("form", { class: "filters", role: "search", "aria-label": "Jobs" },
    el("div", { class: "field" }, el("label", { for: "kind" }, "Kind"),
      el("select", { id: "kind", name: "kind" }, ["", ...KINDS].map((k) => el("option", { value: k, selected: k === kind }, k || "any")))),
    el("fieldset", {}, el("legend", {}, "State"), STATES.map((name) => el("label", { class: "box" },
      el("input", { type: "checkbox", name: "state", value: name, checked: state.includes(name) }), mark(name)))),
    el("button", { class: "quiet" }, "Filter"));
  const go = (event) => {
    event.preventDefault();
    const data = new FormData(form);
    location.hash = place(["jobs"], { kind: data.get("kind"), state: data.getAll("state") });
  };
  form.addEventListener("submit", go);
  form.addEventListener("change", go);
  return form;
}

function rows(items) {
  return table("Jobs", ["job", "state", "of", "progress", "by", "asked"], items.map((job) => [
    link(job.kind, ["jobs", job.id]),
    mark(job.state),
    el("span", { class: "break" }, job.config ? link(job.config, ["documents", job.config]) : job.request.reference ?? (job.counts ? total(job) : "")),
    soft(job.error?.detail ?? (open(job) ? job.message ?? job.step : "") ?? ""),
    job.by,
    el("span", { class: "nowrap soft" }, moment(job.created_at)),
  ]), "stack jobs");
}

const total = (job) => `${Object.values(job.counts).reduce((a, b) => a + b, 0)} models`;

// Looks again while something still runs and the page is seen.
function keep(signal, wanted, look) {
  const timer = setInterval(() => {
    if (document.hidden) return;
    if (wanted()) look().catch(() => {});
    else clearInterval(timer);
  }, PAUSE);
  signal.addEventListener("abort", () => clearInterval(timer));
}
