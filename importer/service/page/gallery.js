// The releases that LocalAI is shown, and documents without one, with the reason.

import { get } from "./api.js";
import { code, el, link, mark, moment, section, soft, table } from "./dom.js";

const PER_PAGE = 50;

export async function show({ route, signal }) {
  const after = route.query.get("after") ?? "", behind = route.query.get("behind") ?? "";
  const [published, hidden] = await Promise.all([
    get(["gallery"], { query: { published: true, cursor: after, limit: PER_PAGE }, signal }),
    get(["gallery"], { query: { published: false, cursor: behind, limit: PER_PAGE }, signal }),
  ]);
  const index = new URL("gallery/index.yaml", document.baseURI).href;
  return [
    el("h1", { tabindex: -1 }, "Gallery"),
    el("p", {}, "What is approved, validated on a real engine and released, LocalAI can add as a gallery:"),
    el("pre", { tabindex: 0 }, `GALLERIES=${JSON.stringify([{ name: "importer", url: index }])}`),
    section("Published", published.items.length ? table("Published", ["name", "model", "backend", "release", "working copy"], published.items.map((one) => [
      link(one.name, ["documents", one.name]), code(one.model ?? "–"), one.backend ?? "–", link(String(one.release), ["documents", one.name, "releases"]),
      [mark(one.state), " ", el("span", { class: "nowrap soft" }, moment(one.updated_at))]]), "stack named")
      : el("p", { class: "soft" }, "Nothing yet."), more(published, "after", { behind })),
    section("Not published", hidden.items.length ? table("Not published", ["name", "state", "why"], hidden.items.map((one) => [
      link(one.name, ["documents", one.name]), mark(one.state), soft(one.reason ?? "")]), "stack named")
      : el("p", { class: "soft" }, "Everything is published."), more(hidden, "behind", { after })),
  ];
}

function more(found, key, rest) {
  return found.next ? el("p", {}, link(`More of ${found.total}`, ["gallery"], { ...rest, [key]: found.next })) : null;
}

