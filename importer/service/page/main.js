// Where one is, and what is shown there. A place stands behind the #, so it can be kept, sent and gone back to.

import { Problem, get, key } from "./api.js";
import { el, fill, link, plain, say } from "./dom.js";
import { problem } from "./problem.js";
import * as documents from "./documents.js";
import * as one from "./document.js";
import * as gallery from "./gallery.js";
import * as imports from "./imports.js";
import * as jobs from "./jobs.js";
import * as keys from "./keys.js";
import * as upkeep from "./upkeep.js";

const PAGES = { documents: "Documents", import: "Import", jobs: "Jobs", upkeep: "Upkeep", gallery: "Gallery", key: "Key" };
const VIEWS = { documents: documents.show, import: imports.show, jobs: jobs.show, upkeep: upkeep.show, gallery: gallery.show, key: keys.show };
const main = document.getElementById("main");
let leaving = new AbortController();
let shownPath = null;

function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts: parts.length ? parts : ["documents"], query: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const route = here();
  const view = route.parts[0] === "documents" && route.parts.length > 1 ? one.show : VIEWS[route.parts[0]];
  pages(route.parts[0], key.get() !== null);
  const path = route.parts.join("/");
  const elsewhere = shownPath !== null && shownPath !== path;
  main.setAttribute("aria-busy", "true");
  try {
    const me = await get(["me"], { signal });
    if (me.name === null && route.parts[0] !== "key") throw new Problem({ kind: "no-key" }, 401);
    foot(me);
    if (!view) throw new Problem({ detail: "There is no such page here.", hint: "Choose one above." }, 404);
    const context = { route, signal, me, title, again: show };
    const made = await view(context);
    if (signal.aborted) return;
    fill(main, made);
  } catch (error) {
    if (signal.aborted) return;
    if (error.kind === "no-key") fill(main, keys.form(show, key.get() !== null));
    else fill(main, el("h1", { tabindex: -1 }, "That did not work"), problem(error));
  }
  main.setAttribute("aria-busy", "false");
  arrived(elsewhere);
  shownPath = path;
}

// A reader of another page begins at its top; who only filters stays at what they were using, while that is there.
function arrived(elsewhere) {
  const head = main.querySelector("h1");
  title(head?.textContent ?? "");
  if (!elsewhere) {
    if (shownPath !== null && document.activeElement === document.body) head?.focus();
    return;
  }
  const tab = main.querySelector("nav [aria-current]");
  (main.dataset.tabbed ? tab : head)?.focus();
  delete main.dataset.tabbed;
  if (!tab || document.activeElement === head) scrollTo(0, 0);
}

function title(text) {
  document.title = text ? `${plain(text)} – importer` : "importer";
}

// The page of the key is named only where there is one.
function pages(current, keyed) {
  const shown = Object.entries(PAGES).filter(([name]) => name !== "key" || keyed || current === "key");
  fill(document.getElementById("pages"), el("strong", { class: "brand" }, "importer"), el("ul", {}, shown.map(
    ([name, label]) => el("li", {}, link(label, [name], {}, { "aria-current": name === current ? "page" : null })))));
}

function foot(me) {
  const scopes = me.scopes.join(", ");
  fill(document.getElementById("foot"), `importer ${me.version}; you are `, el("strong", {}, me.name), scopes && ` (${scopes})`);
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part behind the # says where one is
  main.focus();
});
addEventListener("hashchange", show);
addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Problem) {
    event.preventDefault();
    say(event.reason.message);
  }
});
show();
