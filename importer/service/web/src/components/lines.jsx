// Texts with numbers beside their lines, what differs between two of them, and changes of data.

import { compared } from "../differences.js";
import { shown } from "../format.js";
import { TEXTS } from "../text.js";
import { Code, Soft } from "./text.jsx";

const T = TEXTS.common;

export function Numbered({ text, label }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div class="lines" role="region" tabindex={0} aria-label={label}>
      {lines.map((line, at) => <Row key={at} number={at + 1} line={line} />)}
    </div>
  );
}

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
