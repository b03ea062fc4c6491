// The colours of YAML without an editor: the lines of a text, each as parts with the class of their kind.

import { highlightCode, tagHighlighter, tags } from "@lezer/highlight";
import { parser } from "@lezer/yaml";

// Kinds with their token of the page; the editor has the same ones.
export const KINDS = [
  { class: "key", colour: "link", tag: [tags.propertyName, tags.definition(tags.propertyName)] },
  { class: "string", colour: "pass", tag: [tags.string, tags.special(tags.string)] },
  { class: "literal", colour: "unclear", tag: [tags.number, tags.bool, tags.null, tags.keyword] },
  { class: "comment", colour: "soft", tag: [tags.comment, tags.lineComment, tags.meta] },
  { class: "invalid", colour: "fail", tag: tags.invalid },
];

const classes = tagHighlighter(KINDS);

export function coloured(text) {
  const lines = [[]];
  highlightCode(text, parser.parse(text), classes, (part, kind) => { lines.at(-1).push([part, kind]); }, () => { lines.push([]); });
  return lines;
}
