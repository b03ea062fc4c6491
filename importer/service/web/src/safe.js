// The one place that says what may stand in the page: every element, attribute and text goes through here.
// What is put in is text; nothing in this page reads markup.

import { options } from "preact";

const ELEMENTS = new Set(`a article aside button caption code datalist dd details dialog div dl dt fieldset figcaption
  figure footer form h1 h2 h3 h4 header input label legend li main nav ol optgroup option output p pre progress section
  select span strong summary table tbody td textarea tfoot th thead time tr ul
  svg circle g line path rect text title`.split(/\s+/));
const ATTRIBUTES = new Set(`autocapitalize autocomplete autocorrect autofocus checked class colspan d datetime disabled
  download fill for height hidden href id indeterminate label list max maxlength min multiple name open placeholder pattern r
  rel required role rows rowspan scope selected spellcheck tabindex target text-anchor title transform type value viewBox
  width wrap x x1 x2 y y1 y2 cx cy rx ry step`.split(/\s+/));
const TOLD = new Set(["title", "label", "placeholder", "aria-label", "aria-valuetext", "aria-roledescription"]);

// Controls, and marks that reorder or hide what stands beside them, are spelled out; lines and tabs stay.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function plain(text) {
  return String(text).replace(ODD, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

let hub = null; // the address of the Hub, from the settings of the server

export function allowHub(address) {
  hub = address && `${address.replace(/\/+$/, "")}/`;
}

// A place of this page, a file that was made here, or a page of the Hub.
export function mayLink(href, rel) {
  if (/^(#|blob:)/.test(href)) return true;
  return hub !== null && /^https?:/.test(hub) && href.startsWith(hub) && /\bnoopener\b/.test(rel ?? "");
}

function check({ type, props }) {
  if (!ELEMENTS.has(type)) throw new Error(`no page of ours has an element ${type}`);
  for (const [name, value] of Object.entries(props)) {
    if (name === "children" || (/^on[A-Z]/.test(name) && (typeof value === "function" || value == null))) continue;
    if (!ATTRIBUTES.has(name) && !/^(aria|data)-[a-z-]+$/.test(name)) throw new Error(`no page of ours has ${name}=`);
    if (name === "href" && value != null && !mayLink(String(value), props.rel)) throw new Error(`no link to ${value}`);
    if (TOLD.has(name) && typeof value === "string") props[name] = plain(value);
  }
}

// Preact calls this for every node that it makes: texts have no type, components are functions.
const before = options.vnode;
options.vnode = (vnode) => {
  if (vnode.type === null) {
    if (typeof vnode.props === "string") vnode.props = plain(vnode.props);
  } else if (typeof vnode.type === "string") check(vnode);
  before?.(vnode);
};
