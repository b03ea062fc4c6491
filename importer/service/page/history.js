// Every version, by whom, when and why; what differs between any two; every word of reviews.

import { get } from "./api.js";
import { changes, el, fill, mark, moment, place, section, soft, table } from "./dom.js";
import { difference } from "./lines.js";
import { words } from "./review.js";

export async function show({ name, signal, route }) {
  const told = await everyVersion(name, signal);
  const newest = told.versions[0].version;
  const to = number(route.query.get("to")) ?? newest, from = number(route.query.get("from")) ?? Math.max(1, to - 1);
  return [
    section("Versions", table("Versions", ["version", "what", "state", "by", "when", "changes"], told.versions.map((v) => [
      String(v.version), v.action, mark(v.state), v.by, el("span", { class: "nowrap" }, moment(v.at)),
      [v.why ? el("p", { class: "break" }, v.why) : null, v.changes?.length ? changes(v.changes) : soft(v.changes ? "none in the data" : "the first")],
    ]), "stack versions")),
    section("Differences", choose(name, told.versions, from, to), from === to ? null : await compared(name, from, to, signal)),
    told.reviews.length ? section("Reviews", words(told.reviews)) : null,
  ];
}

async function everyVersion(name, signal) {
  const told = await get(["configs", name, "history"], { query: { limit: 200 }, signal });
  for (let { next } = told; next;) {
    const page = await get(["configs", name, "history"], { query: { limit: 200, cursor: next }, signal });
    told.versions.push(...page.versions);
    next = page.next;
  }
  return told;
}

const number = (text) => (/^[1-9]\d{0,8}$/.test(text ?? "") ? Number(text) : null);

function choose(name, versions, from, to) {
  const select = (id, label, chosen) => el("div", { class: "field" }, el("label", { for: id }, label),
    el("select", { id, name: id }, versions.map((v) => el("option", { value: v.version, selected: v.version === chosen }, `${v.version} (${v.action}, ${moment(v.at)})`))));
  const form = el("form", { class: "filters" }, select("from", "From", from), select("to", "To", to), el("button", {}, "Compare"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = new FormData(form);
    document.getElementById("main").dataset.tabbed = "yes";
    location.hash = place(["documents", name, "history"], { from: data.get("from"), to: data.get("to") });
  });
  return form;
}

async function compared(name, from, to, signal) {
  const [before, after] = await Promise.all([from, to].map((n) => get(["configs", name, "versions", String(n)], { signal })));
  return fill(el("div", {}), difference(before.text, after.text));
}
