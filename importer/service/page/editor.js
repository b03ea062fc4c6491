// The document's text: checked by the server as it is written, kept under the version it was read at.

import { ask, post, whole } from "./api.js";
import { changes, el, fill, say } from "./dom.js";
import { difference } from "./lines.js";
import { problem, run } from "./problem.js";

const PAUSE = 350; // milliseconds without a key until a text is checked
const drafts = new Map(); // what was written and not kept, by name: it outlasts a look at another page

export function show({ name, found, me, again, signal }) {
  const draft = drafts.get(name);
  const state = { name, again, signal, base: draft?.base ?? found, errors: [] };
  const may = me.scopes.includes("import") || me.scopes.includes("admin");
  const area = el("textarea", { id: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", autocorrect: "off", wrap: "off",
    rows: 12, "aria-describedby": "mistakes", disabled: !may });
  const gutter = el("div", { class: "gutter", "aria-hidden": "true" });
  const why = el("input", { id: "why", maxlength: 4000, disabled: !may });
  const save = el("button", { type: "button", class: "main", on: { click: () => keep() } }, "Save");
  const back = el("button", { type: "button", on: { click: () => discard(state) } }, "Discard");
  const told = el("div", { id: "mistakes", "aria-live": "polite" }), clash = el("div");
  Object.assign(state, { area, gutter, told, clash, save, back, why });
  area.value = draft?.text ?? found.text;
  area.addEventListener("input", () => changed(state));
  area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; });
  area.addEventListener("keydown", (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); keep(); }
  });
  const keep = () => run(save, clash, () => stored(state));
  number(state);
  if (draft) check(state); else buttons(state);
  if (draft && draft.base.etag !== found.etag) conflict(state, found);
  return [
    el("div", { class: "field" }, el("label", { for: "text" }, "YAML"), el("div", { class: "editor" }, gutter, area)),
    told, clash,
    el("div", { class: "line" }, el("label", { for: "why" }, "Why"), why, save, back),
    el("p", { class: "soft small" }, may ? "Ctrl+S saves. A review and a validation count only for the data they saw." : "Your key may not edit."),
  ];
}

const dirty = (state) => state.area.value !== state.base.text;

function changed(state) {
  if (dirty(state)) drafts.set(state.name, { text: state.area.value, base: state.base });
  else drafts.delete(state.name);
  state.errors = [];
  number(state);
  buttons(state);
  clearTimeout(state.timer);
  state.timer = setTimeout(() => check(state), PAUSE);
}

function buttons(state) {
  state.save.disabled = !dirty(state) || state.errors.length > 0;
  state.back.disabled = !dirty(state);
}

function number(state) {
  const bad = new Set(state.errors.map((e) => e.line)), count = state.area.value.split("\n").length;
  fill(state.gutter, Array.from({ length: count }, (_, at) => el("div", { class: bad.has(at + 1) ? "bad" : null }, at + 1)));
  state.area.rows = Math.min(Math.max(count + 1, 12), 26);
  state.gutter.scrollTop = state.area.scrollTop;
}

async function check(state) {
  const text = state.area.value;
  if (!dirty(state)) { fill(state.told); return; }
  try {
    const found = await post(["configs", state.name, "check"], { text, signal: state.signal });
    if (state.area.value === text) judged(state, found);
  } catch (error) {
    if (error.name !== "AbortError") fill(state.told, problem(error));
  }
}

function judged(state, found) {
  state.errors = found.errors;
  number(state);
  buttons(state);
  if (found.errors.length) {
    state.area.setAttribute("aria-invalid", "true");
    fill(state.told, el("ul", { class: "mistakes plain" }, found.errors.map((e) => el("li", {},
      e.line ? el("button", { type: "button", class: "inline", on: { click: () => jump(state.area, e) } }, `line ${e.line}`) : "somewhere", ": ", e.detail))));
  } else {
    state.area.removeAttribute("aria-invalid");
    fill(state.told, el("p", { class: "soft" }, "The schema allows it. ", found.changes.length ? "Saving changes:" : "The data stay the same."), changes(found.changes));
  }
}

// Puts the caret where a mistake is.
function jump(area, { line, column }) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  area.focus();
  area.setSelectionRange(start + Math.max(0, (column ?? 1) - 1), start + (lines[line - 1]?.length ?? 0));
  area.scrollTop = (area.scrollHeight / lines.length) * Math.max(0, line - 4);
}

async function stored(state) {
  const { name, area, base, why } = state;
  if (!dirty(state)) return;
  try {
    await ask("PUT", ["configs", name], { text: area.value, match: base.etag, query: { why: why.value.trim() } });
  } catch (error) {
    if (error.status === 412) { conflict(state, await whole(name)); return; }
    if (error.said?.errors?.some((e) => e.line)) judged(state, { errors: error.said.errors, changes: [] });
    throw error;
  }
  drafts.delete(name);
  say(`${name} is saved.`);
  await state.again();
}

// Somebody was quicker: what they changed, and whose text is to count.
function conflict(state, theirs) {
  const mine = () => {
    state.base = theirs;
    fill(state.clash);
    changed(state);
    state.area.focus();
  };
  fill(state.clash, el("div", { class: "trouble inconclusive", role: "alert" },
    el("h3", {}, `Somebody changed it: it is version ${theirs.version} by now`),
    el("p", {}, "From that version to your text:"),
    difference(theirs.text, state.area.value),
    el("p", { class: "buttons" }, el("button", { type: "button", on: { click: mine } }, "Keep my text"),
      el("button", { type: "button", on: { click: () => discard(state) } }, "Take theirs"))));
}

function discard(state) {
  drafts.delete(state.name);
  return state.again();
}

addEventListener("beforeunload", (event) => { if (drafts.size) event.preventDefault(); });
