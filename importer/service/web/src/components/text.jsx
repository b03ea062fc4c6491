// Small things: softer text, code, marks, facts, moments.

import { useEffect, useState } from "preact/hooks";
import { local } from "../format.js";
import { TEXTS } from "../text.js";

export const Soft = ({ class: more = "", ...rest }) => <span class={`soft ${more}`.trim()} {...rest} />;
export const Code = ({ children }) => <code>{children}</code>;

const MINUTE = 60_000; // milliseconds

// A moment by its distance from now, as in "5 min ago"; in the reader's zone it is the title, and one long past is the text.
export function When({ at, class: more = "" }) {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), MINUTE);
    return () => clearInterval(timer);
  }, []);
  if (!at) return null;
  return <time class={`nowrap ${more}`.trim()} datetime={at} title={local(at)}>{TEXTS.common.ago((now - Date.parse(at)) / MINUTE) ?? local(at)}</time>;
}

export const SoftWhen = ({ at }) => <When at={at} class="soft" />;

const SIGNS = {
  pass: "✓", passed: "✓", published: "✓", succeeded: "✓", fail: "✗", failed: "✗", rejected: "✗",
  inconclusive: "?", waiting: "?", "not-shown": "○", stale: "!", cancelled: "–", "not-applicable": "–",
};

// A word on its colour; the sign says the same to those who see no colour.
export function Mark({ word, children = TEXTS.common.states[word] ?? word }) {
  const kind = /^[a-z-]+$/.test(word) ? word : "";
  return <span class={`mark ${kind}`}>{SIGNS[word] ? <span aria-hidden="true">{`${SIGNS[word]} `}</span> : null}{children}</span>;
}

// Names and values; one that is absent or empty is left out.
export function Facts({ told }) {
  const rows = Object.entries(told).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return <dl class="facts">{rows.map(([name, value]) => [<dt key={`${name}?`}>{name}</dt>, <dd key={name}>{value}</dd>])}</dl>;
}

// A part of the page with a title, which names it.
export function Section({ title, children }) {
  const id = `part-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return <section aria-labelledby={id}><h2 id={id}>{title}</h2>{children}</section>;
}

// The title of a view: it has the focus when one arrives.
export const Title = ({ children }) => <h1 tabindex={-1}>{children}</h1>;
