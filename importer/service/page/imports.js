// Importing: one model or many, at once or only to look what it would be.

import { post } from "./api.js";
import { changes, el, fill, link, place, section } from "./dom.js";
import { attention, decisions } from "./decisions.js";
import { numbered } from "./lines.js";
import { clashes } from "./progress.js";
import { problem, run } from "./problem.js";

export function show({ me, signal }) {
  const fields = {
    references: area("references", "Models, one on each line", 2, "Qwen/Qwen3-8B"),
    backend: choice("backend", "Backend", [["", me.backends.length === 1 ? me.backends[0] : "ask me where several could"], ["auto", "auto: as this server's machine"], ...me.backends.map((b) => [b, b])]),
    name: text("name", "Name", "from the repository"),
    revision: text("revision", "Branch, tag or commit", "main"),
    device: text("device", "For the device", "such as h100"),
    per_device: choice("per_device", "The device's document", [["", "the model's, for this device from now on"], ["true", "one of its own, for this device alone"]]),
    memory: text("memory", "With so much memory", "such as 48GiB"),
    engine_version: text("engine_version", "Engine's version", ""),
    template: choice("template", "Chat template", [["", "the model's own"], ["pythonic", "ours, pythonic calls"], ["json", "ours, JSON calls"], ["own-calls", "ours, the model's own calls"], ["none", "none"]]),
    set: area("set", "Values that win over everything, key=value on each line", 2, "temperature=0.6"),
    note: text("note", "Why, for the history", ""),
  };
  const result = el("div", { id: "result" });
  const start = el("button", { class: "main" }, "Import");
  const look = el("button", { type: "button", on: { click: () => run(look, result, () => preview(read(fields), result, signal)) } }, "Preview");
  const submit = (event) => {
    event.preventDefault();
    run(start, result, async () => {
      const job = await post(["imports"], { body: read(fields), signal });
      location.hash = place(["jobs", job.id]);
    });
  };
  const { references, backend, name, ...more } = fields;
  return [
    el("h1", { tabindex: -1 }, "Import"),
    el("form", { class: "form", on: { submit } }, references, el("div", { class: "row" }, backend, name),
      el("details", {}, el("summary", {}, "More"), el("div", { class: "row" }, Object.values(more))),
      el("p", { class: "buttons" }, start, look)),
    result,
  ];
}

const field = (id, label, input) => el("div", { class: "field" }, el("label", { for: id }, label), input);
const plainly = { autocapitalize: "off", autocorrect: "off", spellcheck: "false", autocomplete: "off" };
const text = (id, label, placeholder) => field(id, label, el("input", { id, name: id, placeholder, maxlength: id === "note" ? 4000 : 200, ...plainly }));
const area = (id, label, rows, placeholder) => field(id, label, el("textarea", { id, name: id, rows, placeholder, required: id === "references", ...plainly }));
const choice = (id, label, options) => field(id, label, el("select", { id, name: id }, options.map(([value, says]) => el("option", { value }, says))));

// The request; a field that is empty is not in it. Throws where a line is no key=value.
function read(fields) {
  const given = {};
  for (const [name, node] of Object.entries(fields)) {
    const value = node.querySelector("input, select, textarea").value.trim();
    if (value) given[name] = value;
  }
  const { references = "", set, ...said } = given;
  const models = references.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!models.length) throw new Error("Name a model first.");
  if (set) said.set = assignments(set);
  if (said.per_device) said.per_device = true;
  return { ...said, ...(models.length === 1 ? { reference: models[0] } : { references: models }) };
}

function assignments(lines) {
  const found = {};
  for (const line of lines.split("\n").map((l) => l.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`${line}: write key=value.`);
    found[line.slice(0, at).trim()] = value(line.slice(at + 1).trim());
  }
  return found;
}

function value(word) {
  try {
    return JSON.parse(word);
  } catch {
    return word;
  }
}

async function preview(body, result, signal) {
  fill(result, el("p", { role: "status" }, "Reading the repository …"));
  let found;
  try {
    found = await post(["imports", "preview"], { body, signal });
  } catch (error) {
    if (!error.said?.candidates) throw error;
    const choose = (backend) => {
      document.getElementById("backend").value = backend;
      return preview({ ...body, backend }, result, signal);
    };
    const failed = el("div");
    fill(result, problem(error, false), el("p", { class: "buttons" }, "Preview it for", error.said.candidates.map((c) => {
      const button = el("button", { type: "button", on: { click: () => run(button, failed, () => choose(c.backend)) } }, c.backend);
      return button;
    })), failed);
    return;
  }
  fill(result,
    el("h2", { tabindex: -1 }, "What it would write"),
    el("p", {}, found.new ? "A new document, " : "It is here already: ", found.new ? found.name : link(found.name, ["documents", found.name]), ". Nothing is written yet."),
    attention(found.warnings.map((warning) => `${warning.key}: ${warning.message}`)),
    found.conflicts.length ? [el("h3", {}, "Conflicts with edits"), clashes(found.conflicts)] : null,
    found.edits.length ? [el("h3", {}, "Edits that stay"), changes(found.edits)] : null,
    !found.new && found.changes.length ? [el("h3", {}, "What it changes"), changes(found.changes)] : null,
    numbered(found.text, "The document"),
    section("Decisions", decisions(found)));
  result.querySelector("h2").focus();
}
