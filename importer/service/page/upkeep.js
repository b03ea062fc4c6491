// The review queue of upkeep: findings of rechecks, each with what it changes; accepted, rejected, or asked for anew.

import { get, post } from "./api.js";
import { changes, code, el, fill, link, mark, moment, place, say, section, soft } from "./dom.js";
import { difference } from "./lines.js";
import { run } from "./problem.js";

const CAUSES = ["commit", "weights", "engine", "parsers", "tables", "backend", "device", "model", "importer", "refused", "rules"];
const STATES = ["open", "accepted", "rejected", "superseded", "resolved"];
const PER_PAGE = 20;

export async function show(context) {
  const { route, signal } = context;
  if (route.parts[1]) return one(context, route.parts[1]);
  const query = Object.fromEntries(["cause", "name", "state", "cursor"].map((k) => [k, route.query.get(k) ?? ""]));
  const found = await get(["upkeep"], { query: { ...query, limit: PER_PAGE }, signal });
  const failed = el("div");
  return [
    el("h1", { tabindex: -1 }, "Upkeep"),
    el("p", {}, "A recheck compares each document with an import now. It changes nothing: what is new waits here."),
    el("p", { class: "soft" }, scheduled(found.schedule)),
    el("p", { class: "buttons" }, recheck(context, failed), found.items.length ? together(found.items, context, failed) : null),
    failed,
    filters(query),
    el("p", { class: "soft", id: "count" }, `${found.total} ${found.total === 1 ? "finding" : "findings"}`),
    found.items.map((finding) => card(finding, context)),
    found.next ? el("p", {}, link("Next page", ["upkeep"], { ...query, cursor: found.next })) : null,
  ];
}

function scheduled(schedule) {
  if (!schedule) return "No recheck is scheduled.";
  return `${schedule.began_at ? `The last scheduled recheck began ${moment(schedule.began_at)}. ` : ""}The next one is due ${moment(schedule.next_at)}.`;
}

function filters(query) {
  const choice = (id, label, options) => el("div", { class: "field" }, el("label", { for: id }, label),
    el("select", { id, name: id }, options.map(([value, text]) => el("option", { value, selected: value === query[id] }, text))));
  const form = el("form", { class: "filters", role: "search", "aria-label": "Findings" },
    choice("cause", "Cause", [["", "any"], ...CAUSES.map((c) => [c, c])]),
    choice("state", "State", [["", "open"], ...STATES.slice(1).map((s) => [s, s])]));
  form.addEventListener("change", () => {
    location.hash = place(["upkeep"], Object.fromEntries(new FormData(form)));
  });
  return form;
}

function card(finding, context) {
  const failed = el("div");
  return section(`${finding.name}: ${finding.kinds.join(", ")}`,
    el("p", {}, mark(finding.state), " ", link(finding.name, ["documents", finding.name]), " ", soft(moment(finding.seen_at)), " ",
      link("Before and after", ["upkeep", finding.id], {}, { "aria-label": `Before and after: ${finding.name}` })),
    finding.outdated && finding.state === "open" ? el("p", { class: "remedy" }, "The document has changed since: recheck it.") : null,
    el("ul", { class: "plain small" }, finding.causes.map((cause) => el("li", { class: "break" }, reason(cause)))),
    finding.refused ? el("p", { class: "break" }, finding.refused.message) : null,
    el("ul", { class: "changes" }, finding.decisions.map((d) => el("li", {}, code(d.key), ": ",
      el("span", { class: "before" }, text(d.before)), " → ", el("span", { class: "after" }, text(d.after)),
      d.covered ? soft(" (your value stays)") : null, el("p", { class: "soft small break" }, d.why.join("; "))))),
    finding.why ? el("p", { class: "break" }, `${finding.by}: ${finding.why}`) : null,
    finding.state === "open" ? actions(finding, context, failed) : null, failed);
}

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function reason(cause) {
  const sides = cause.before || cause.after ? `${cause.before ?? "none"} → ${cause.after ?? "none"}` : (cause.keys ?? []).join(", ");
  return [`${cause.what}: ${sides}`, cause.files?.length ? soft(` (${cause.files.join(", ")})`) : null];
}

function actions(finding, context, failed) {
  const sides = finding.conflicts.length ? [["Accept, keep my values", "mine"], ["Accept, take the new values", "theirs"]] : [["Accept", null]];
  return el("span", { class: "buttons" },
    finding.refused ? null : sides.map(([label, take]) => act(label, "import", finding, context, failed, ["accept"], take === null ? {} : { take })),
    act("Reject", "approve", finding, context, failed, ["reject"], {}));
}

function act(label, scope, finding, { me, again }, failed, step, body) {
  const may = me.scopes.includes(scope) || me.scopes.includes("admin");
  const made = el("button", { type: "button", disabled: !may, "aria-label": `${label}: ${finding.name}`, on: { click: () => run(made, failed, async () => {
    await post(["upkeep", finding.id, ...step], { body });
    say(step[0] === "accept" ? `The working copy of ${finding.name} has a new version.` : `Rejected until something else changes: ${finding.name}.`);
    await again();
  }) } }, label);
  return made;
}

function recheck({ me }, failed) {
  const may = me.scopes.includes("import") || me.scopes.includes("admin");
  const made = el("button", { type: "button", class: "main", disabled: !may, on: { click: () => run(made, failed, async () => {
    const job = await post(["recheck"], { body: {} });
    location.hash = place(["jobs", job.id]);
  }) } }, "Recheck all documents");
  return made;
}

// The same for all on this page; what is refused is told one by one.
function together(items, { me, again }, failed) {
  const open = items.filter((one) => one.state === "open" && !one.refused && !one.conflicts.length);
  if (open.length < 2) return null;
  const may = me.scopes.includes("import") || me.scopes.includes("admin");
  const made = el("button", { type: "button", disabled: !may, on: { click: () => run(made, failed, async () => {
    const done = await post(["bulk"], { body: { action: "accept", items: open.map((one) => ({ finding: one.id })) } });
    say(`${done.counts.done ?? 0} accepted, ${done.counts.refused ?? 0} refused.`);
    await again();
  }) } }, `Accept these ${open.length}`);
  return made;
}

async function one(context, id) {
  const found = await get(["upkeep", id], { signal: context.signal });
  const sides = Object.entries(found.proposals);
  const parts = sides.map(([side, made]) => section(side === "any" ? "Before and after" : `With the values of ${side}`,
    changes(made.changes), found.text === null ? null : fill(el("div", {}), difference(found.text, made.text))));
  return [
    el("h1", { tabindex: -1 }, `Finding: ${found.name}`),
    card(found, { ...context, again: async () => { location.hash = place(["upkeep"]); } }),
    sides.length ? parts : el("p", { class: "soft" }, "There is no proposal to show: it is settled, or an import is refused."),
  ];
}
