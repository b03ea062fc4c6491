// What may stand at a place of a document: keys of the schema, arguments of the engine, and their values.

import { plain } from "../safe.js";
import { TEXTS } from "../text.js";

const T = TEXTS.editor.complete;
const KEY = /^(\s*)((?:- )*)([\w.-]+):/;
const LIMITS = { ge: T.least, gt: T.above, le: T.most, lt: T.below, minimum: T.least, maximum: T.most };

// The source of completions, from the answer of /v1/editor/{backend}.
export function completions(data) {
  return (context) => {
    const line = context.state.doc.lineAt(context.pos), before = line.text.slice(0, context.pos - line.from);
    const found = parser(data, before) ?? place(data, context.state.doc, line, before);
    if (!found || !(context.explicit || found.word) || !found.options.length) return null;
    return { from: context.pos - found.word.length, options: found.options, validFor: /^[\w.-]*$/ };
  };
}

// ``options: ["tool_parser:hermes"]``: the value within a text.
function parser(data, before) {
  const found = /\b(tool_parser|reasoning_parser):([\w.-]*)$/.exec(before);
  return found && { word: found[2], options: data[`${found[1]}s`].map((label) => ({ label, type: "constant" })) };
}

function place(data, doc, line, before) {
  const value = /^(\s*(?:- )*)([\w.-]+):[ \t]+([\w.-]*)$/.exec(before);
  if (value) {
    const one = members(data, parents(doc, line.number, value[1])).find(({ name }) => name === value[2]);
    return { word: value[3], options: one ? values(one) : [] };
  }
  const key = /^(\s*(?:- )*)([\w.-]*)$/.exec(before);
  if (!key) return null;
  const path = parents(doc, line.number, key[1]), items = key[1].includes("- ") ? listed(data, path) : null;
  const taken = line.text.slice(before.length).includes(":");
  return { word: key[2], options: items ?? members(data, path).map((one) => asked(one, taken)) };
}

// The keys above a line, by their indentation; an item of a list may stand as far left as its key.
function parents(doc, number, lead) {
  const path = [];
  let room = lead.includes("-") ? lead.indexOf("-") + 1 : lead.length;
  for (let at = number - 1; at >= 1 && room > 0; at -= 1) {
    const found = KEY.exec(doc.line(at).text);
    if (!found || found[1].length + found[2].length >= room) continue;
    path.unshift(found[3]);
    room = found[1].length + found[2].length;
  }
  return path;
}

const rows = (list) => list.map((one) => ({ ...one, says: [T.flag(one.flag)] }));

// What can stand under a path: {name, type, choices, says} of each key.
function members(data, path) {
  if (path[0] === "env") return path.length === 1 ? data.variables.map((name) => ({ name, type: "string", choices: [], says: [T.variable] })) : [];
  if (path[0] === "engine_args") {
    let found = data.arguments;
    for (const step of path.slice(1)) found = data.configs[found.find(({ name }) => name === step)?.config] ?? [];
    return rows(found);
  }
  const node = path.reduce((at, step) => child(data.schema, at, step), data.schema);
  return Object.entries(form(data.schema, node)?.properties ?? {}).map(([name, one]) => described(data.schema, name, one));
}

function listed(data, path) {
  const node = path.reduce((at, step) => child(data.schema, at, step), data.schema), { items } = form(data.schema, node) ?? {};
  return items?.enum?.map((label) => ({ label: String(label), type: "constant" })) ?? null;
}

function child(schema, node, step) {
  const found = form(schema, node);
  return found?.properties?.[step] ?? form(schema, found?.items)?.properties?.[step];
}

// The form of a node that has keys, where it can have several.
function form(schema, node) {
  if (node === undefined || node === true || node === false) return undefined;
  if (node.$ref) return form(schema, node.$ref.replace(/^#\//, "").split("/").reduce((at, step) => at?.[step], schema));
  const forms = node.anyOf ?? node.oneOf;
  return forms ? { ...node, ...(forms.map((one) => form(schema, one)).find((one) => one?.properties || one?.items || one?.enum) ?? {}) } : node;
}

function described(schema, name, node) {
  const one = form(schema, node) ?? {}, limits = {};
  for (const limit of ["minimum", "maximum"]) if (limit in one) limits[limit] = one[limit];
  const type = [one.type ?? []].flat().join(" | ");
  const says = [one.description].filter(Boolean);
  if ("default" in one) says.push(T.default(one.default));
  return { name, type, choices: one.enum ?? ("const" in one ? [one.const] : []), limits, says };
}

function asked({ name, type, choices, limits = {}, says }, taken) {
  const told = [...says];
  if (type) told.push(T.type(type));
  const bounds = Object.entries(limits).map(([kind, at]) => `${LIMITS[kind] ?? kind} ${at}`);
  if (bounds.length) told.push(T.limits(bounds.join(", ")));
  if (choices?.length) told.push(T.choices(choices.map((one) => (one === null ? "null" : one))));
  const inner = /object|array/.test(type ?? "");
  return { label: name, detail: plain(type ?? ""), info: plain(told.join("\n")), type: "property", apply: taken ? name : `${name}:${inner ? "" : " "}` };
}

function values({ type, choices, says, name }) {
  const offered = choices?.length ? choices.filter((one) => one !== null && one !== "") : /bool/.test(type ?? "") ? [true, false] : [];
  return offered.map((one) => ({ label: String(one), type: "constant", info: plain([name, ...says].join("\n")) }));
}
