// Texts with numbers beside their lines, what differs between two of them, and changes of data.

import { useEffect, useState } from "preact/hooks";
import { compared } from "../differences.js";
import { shown } from "../format.js";
import { TEXTS } from "../text.js";
import { CopyButton } from "./copy.jsx";
import { Code, Soft } from "./text.jsx";

const T = TEXTS.common;

const COLOURED = /\.(ya?ml|json)$/;

// A text that is kept in a file: its lines, in colours once these are there, and a button that copies it.
export function Source({ text, label, file = "" }) {
  const whole = text.replace(/\n$/, ""), [lines, set] = useState(null);
  useEffect(() => {
    set(null);
    if (COLOURED.test(file)) import("../editor/highlight.js").then(({ coloured }) => set(coloured(whole)), () => {});
  }, [whole, file]);
  const shown = lines ?? whole.split("\n").map((line) => [[line, ""]]);
  return (
    <div class="code"><CopyButton text={text} what={label} />
      <div class="lines" role="region" tabindex={0} aria-label={label}>{shown.map((parts, at) => (
        <Row key={at} number={at + 1} line={parts.length ? parts.map(([part, kind], n) => (kind ? <span key={n} class={kind}>{part}</span> : part)) : null} />
      ))}</div>
    </div>
  );
}

// A text as it came or is sent, and a button that copies it.
export const Block = ({ text, label }) => <div class="code"><CopyButton text={text} what={label} /><pre tabindex={0} aria-label={label}>{text}</pre></div>;

const Row = ({ number, sign, line, kind = "" }) => (
  <div class={`line ${kind}`}>
    <span class="number" aria-hidden="true">{number}</span>
    {sign === undefined ? null : <span class="sign">{sign}</span>}
    <span>{line || " "}</span>
  </div>
);

// Both texts as one, with what was taken away and what was added; long parts that are alike are left out.
export function Difference({ before, after, around = 3 }) {
  const found = compared(before.split("\n"), after.split("\n"));
  const near = found.map((_, at) => found.slice(Math.max(0, at - around), at + around + 1).some(([sign]) => sign !== " "));
  if (!near.some(Boolean)) return <p>{T.same}</p>;
  const rows = [];
  let number = 0;
  found.forEach(([sign, line], at) => {
    if (sign !== "-") number += 1;
    if (near[at]) rows.push(<Row key={at} number={sign === "-" ? "" : number} sign={sign} line={line} kind={{ "+": "added", "-": "gone" }[sign]} />);
    else if (at === 0 || near[at - 1]) rows.push(<div key={at} class="line soft">{T.left}</div>);
  });
  return <div class="lines" role="region" tabindex={0} aria-label={T.differences}>{rows}</div>;
}

// Changes as the API tells them: path, before and after; a side that is not there is left out.
export function Changes({ found }) {
  return (
    <ul class="changes">{found.map((c) => (
      <li key={c.path}><Code>{c.path}</Code>{": "}
        {"before" in c ? <span class="before">{shown(c.before)}</span> : <Soft>{T.absent}</Soft>}{" → "}
        {"after" in c ? <span class="after">{shown(c.after)}</span> : <Soft>{T.absent}</Soft>}
      </li>
    ))}</ul>
  );
}
