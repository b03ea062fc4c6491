// One document: what it is, where it stands, what may be said of it, and its parts behind tabs.

import { get, whole } from "./api.js";
import { code, el, facts, link, mark, moment, soft } from "./dom.js";
import { attend, open } from "./progress.js";
import { review } from "./review.js";
import { losses, TEXTS } from "./losses.js";
import * as decided from "./decisions.js";
import * as editor from "./editor.js";
import * as past from "./history.js";
import * as probes from "./probes.js";
import * as releases from "./releases.js";

const TABS = {
  decisions: ["Decisions", decided.show], text: ["Document", editor.show], probes: ["Probes", probes.show], history: ["History", past.show], releases: ["Releases", releases.show],
};

export async function show(context) {
  const { route, signal } = context;
  const [, name, tab = "decisions"] = route.parts;
  const [found, running] = await Promise.all([
    whole(name, signal), get(["jobs"], { query: { config: name, kind: "validation", state: ["queued", "running"], limit: 1 }, signal }),
  ]);
  const others = found.model ? (await get(["configs"], { query: { model: found.model, limit: 50 }, signal })).items : [];
  const variants = others.filter((one) => one.name !== name);
  const [label, view] = TABS[tab] ?? TABS.decisions;
  const inner = { ...context, found, name };
  const part = await view(inner);
  return [
    el("div", { class: "title" }, el("h1", { tabindex: -1 }, found.name), mark(found.state)),
    found.reason ? el("p", { class: "soft break" }, found.release === null ? "Not published: " : `Release ${found.release} is published; the working copy is not: `, found.reason, ".") : null,
    el("div", { class: "over" }, told(found, variants), job(running.items[0], inner), review(inner)),
    tabs(name, TABS[tab] ? tab : "decisions"),
    el("section", { "aria-label": label, class: "tab" }, part),
  ];
}

function told(found, variants) {
  return facts({
    model: found.model && code(found.model), commit: found.revision && code(found.revision), backend: found.backend, family: found.family,
    device: found.device && [found.device, found.per_device ? soft(" alone") : null],
    variants: variants.length ? variants.map((one, i) => [i ? ", " : null, link(one.name, ["documents", one.name])]) : null,
    review: mark(found.review), validation: [mark(found.validation), found.carried ? soft(" of commit ", code(found.carried.revision)) : null],
    [TEXTS.losses]: found.losses?.length ? losses(found.losses) : null,
    version: [String(found.version), soft(` of ${moment(found.updated_at)}`)], release: found.release && String(found.release), digest: code(found.digest),
  });
}

// A validation that goes on, or nothing; a new one is put here by the review.
function job(running, context) {
  const node = el("div", { id: "running" });
  if (running && open(running)) attend(node, running, context);
  return node;
}

function tabs(name, current) {
  const keep = () => { document.getElementById("main").dataset.tabbed = "yes"; };
  return el("nav", { "aria-label": "Parts of the document", class: "tabs" }, el("ul", {}, Object.entries(TABS).map(([tab, [label]]) =>
    el("li", {}, link(label, ["documents", name, tab], {}, { "aria-current": tab === current ? "page" : null, on: { click: keep } })))));
}
