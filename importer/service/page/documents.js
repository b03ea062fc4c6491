// The list of documents, with filters that stand in the address.

import { get } from "./api.js";
import { el, link, mark, moment, place, plain, soft, table } from "./dom.js";

const STATES = ["draft", "approved", "validated", "ready", "published", "rejected", "stale"];
const PER_PAGE = 50;

export async function show(context) {
  const { route, signal, me } = context;
  const query = Object.fromEntries(["q", "backend", "family", "cursor"].map((k) => [k, route.query.get(k) ?? ""]));
  const state = route.query.getAll("state");
  const found = await get(["configs"], { query: { ...query, state, limit: PER_PAGE }, signal });
  return [
    el("h1", { tabindex: -1 }, "Documents"),
    filters(query, state, me),
    el("p", { class: "soft", id: "count" }, count(found, query)),
    found.items.length ? list(found.items) : nothing(query, state),
    pager(found, { ...query, state }),
  ];
}

function count(found, query) {
  const number = `${found.total} ${found.total === 1 ? "document" : "documents"}`;
  return query.cursor ? `${number}; those after ${query.cursor}` : number;
}

function filters(query, state, me) {
  const boxes = STATES.map((name) => el("label", { class: "box" },
    el("input", { type: "checkbox", name: "state", value: name, checked: state.includes(name) }), mark(name)));
  const q = el("input", { type: "search", id: "q", name: "q", value: query.q, placeholder: "name, model or family" });
  const backends = el("select", { id: "backend", name: "backend" }, ["", ...me.backends].map((name) =>
    el("option", { value: name, selected: name === query.backend }, name || "any")));
  const form = el("form", { class: "filters", role: "search", "aria-label": "Documents" },
    el("div", { class: "field" }, el("label", { for: "q" }, "Search"), q),
    el("div", { class: "field" }, el("label", { for: "backend" }, "Backend"), backends),
    el("fieldset", {}, el("legend", {}, "State"), boxes),
    el("button", { class: "quiet" }, "Filter"));
  const go = () => {
    const data = new FormData(form);
    location.hash = place(["documents"], { q: data.get("q").trim(), backend: data.get("backend"), state: data.getAll("state"), family: query.family });
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
  form.addEventListener("change", (event) => { if (event.target !== q) go(); });
  return form;
}

export function list(items) {
  return table("Documents", ["name", "state", "model", "backend", "why it is not published", "changed"], items.map((one) => [
    link(one.name, ["documents", one.name]),
    mark(one.state),
    [el("span", { class: "break" }, one.model ?? "–"), one.family ? [" ", link(one.family, ["documents"], { family: one.family }, { class: "small soft" })] : null],
    one.backend ?? "–",
    one.reason ? soft(one.reason) : "",
    el("span", { class: "nowrap soft" }, moment(one.updated_at)),
  ]), "stack named documents");
}

function nothing(query, state) {
  if (query.q || query.backend || query.family || state.length) {
    return el("p", {}, "No document is like that. ", link("Show all", ["documents"]), ".");
  }
  return el("p", {}, "There is none yet. ", link("Import the first one", ["import"]), ".");
}

function pager(found, query) {
  if (!found.next && !query.cursor) return null;
  return el("nav", { "aria-label": "More documents", class: "pager" },
    query.cursor ? link("First page", ["documents"], { ...query, cursor: "" }) : null,
    found.next ? link("Next page", ["documents"], { ...query, cursor: plain(found.next) }) : null);
}
