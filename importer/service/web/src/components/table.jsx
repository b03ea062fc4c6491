// Tables, and links to more of a list.

import { TEXTS } from "../text.js";
import { Link } from "./link.jsx";

// A table that keys can scroll where it is wider than the page. ``rows`` are lists of cells; the first one is a head.
export function Table({ label, heads, rows, kind = "stack", keys = [] }) {
  return (
    <div class="scroll" role="region" tabindex={0} aria-label={label}>
      <table class={kind}>
        <thead><tr>{heads.map((head, at) => <th scope="col" key={at}>{head}</th>)}</tr></thead>
        <tbody>{rows.map((cells, row) => (
          <tr key={keys[row] ?? row}>{cells.map((cell, at) => (at ? <td key={at}>{cell}</td> : <th scope="row" key={at}>{cell}</th>))}</tr>
        ))}</tbody>
      </table>
    </div>
  );
}

// First and next page; a link is another one for each page, so that the focus goes to the title.
export function Pager({ label, to, query, cursor, next }) {
  if (!next && !cursor) return null;
  return (
    <nav aria-label={label} class="pager">
      {cursor ? <Link to={to} query={{ ...query, cursor: "" }}>{TEXTS.common.first}</Link> : null}
      {next ? <Link key={next} to={to} query={{ ...query, cursor: next }}>{TEXTS.common.next}</Link> : null}
    </nav>
  );
}

// A list with nothing in it, and what leads on.
export const Empty = ({ text, children }) => <p>{text}{children}{children ? TEXTS.document.end : null}</p>;
