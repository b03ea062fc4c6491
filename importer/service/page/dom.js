// Building nodes from values. Whatever is put in is text: nothing here, or anywhere in this page, reads markup.

const ELEMENTS = new Set(`a article button code datalist dd details div dl dt fieldset form h1 h2 h3 input label
  legend li nav ol option p pre section select span strong summary table tbody td textarea th thead tr
  ul`.split(/\s+/));
const ATTRIBUTES = new Set(`aria-atomic aria-busy aria-controls aria-current aria-describedby aria-hidden aria-invalid
  aria-label aria-labelledby aria-live autocapitalize autocomplete autocorrect checked class colspan disabled
  download for href id list maxlength multiple name open placeholder required role rows scope selected spellcheck
  tabindex type value wrap`.split(/\s+/));

// Controls, and marks that reorder or hide what stands beside them, are spelled out; lines and tabs stay.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function plain(text) {
  return String(text).replace(ODD, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// el("p", {class: "soft", on: {click}}, "text", node, [more], null)
export function el(name, attributes = {}, ...content) {
  if (!ELEMENTS.has(name)) throw new Error(`no page of ours has an element ${name}`);
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
    else if (value === false || value === null || value === undefined) continue;
    else if (!ATTRIBUTES.has(key) || (key === "href" && !/^(#|blob:)/.test(value))) throw new Error(`no ${key}=${value}`);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...nodes(content));
  return node;
}

function nodes(content) {
  return content.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : document.createTextNode(plain(c))));
}

export function fill(node, ...content) {
  node.replaceChildren(...nodes(content));
  return node;
}

export const soft = (...content) => el("span", { class: "soft" }, ...content);
export const code = (text) => el("code", {}, text);

// A place in this page: #/documents/NAME?state=draft
export function place(parts, query = {}) {
  const found = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") found.append(key, one);
  }
  const tail = found.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${tail && `?${tail}`}`;
}

export const link = (text, parts, query, more = {}) => el("a", { href: place(parts, query), ...more }, text);

const SIGNS = {
  pass: "✓", passed: "✓", published: "✓", succeeded: "✓", fail: "✗", failed: "✗", rejected: "✗",
  inconclusive: "?", stale: "!", cancelled: "–", "not-applicable": "–",
};

// A word on its colour; the sign says the same to those who see no colour.
export function mark(word, shown = word) {
  const sign = SIGNS[word] ? el("span", { "aria-hidden": "true" }, `${SIGNS[word]} `) : null;
  return el("span", { class: `mark ${/^[a-z-]+$/.test(word) ? word : ""}` }, sign, shown);
}

// A table that keys can scroll where it is wider than the page.
export function table(label, heads, rows, kind = "stack") {
  const top = el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head))));
  const body = el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, at) =>
    at ? el("td", {}, cell) : el("th", { scope: "row" }, cell)))));
  return el("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label },
    el("table", { class: kind }, top, body));
}

export function section(title, ...content) {
  const id = `part-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...content);
}

export function facts(told) {
  const rows = Object.entries(told).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "facts" }, rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// A value as JSON, but a plain word as itself.
export function shown(value) {
  if (value === undefined) return "absent";
  return typeof value === "string" && /^[\w./@:<>+-]+$/.test(value) ? value : JSON.stringify(value);
}

export function moment(text) {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(text ?? "");
  return found ? `${found[1]} ${found[2]} UTC` : text ?? "";
}

// Changes as the API tells them: path, before and after; a side that is not there is left out.
export function changes(found) {
  return el("ul", { class: "changes" }, found.map((c) => el("li", {}, code(c.path), ": ",
    "before" in c ? el("span", { class: "before" }, shown(c.before)) : soft("absent"), " → ",
    "after" in c ? el("span", { class: "after" }, shown(c.after)) : soft("absent"))));
}

let timer;
// What a screen reader hears, and others see for a while.
export function say(text) {
  const said = document.getElementById("said");
  fill(said, text);
  clearTimeout(timer);
  timer = setTimeout(() => fill(said), 6000);
}
