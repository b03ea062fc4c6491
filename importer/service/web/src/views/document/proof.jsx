// The proof as a map: each parser by each case, the document's first; a cell shows its case below.

import { useRef, useState } from "preact/hooks";
import { Block, Link, Mark, Section, Soft } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.decisions;
const SIGNS = { pass: "✓", fail: "✗", "not-applicable": "–" };
const SHOWN = 3; // names of parsers with the same results
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const [ROW, TALL] = [14, 140]; // pixels of a row of the small map, and of all of its rows at most
const part = (n, all) => `${(100 * n / all.length).toFixed(2)}%`;

export function ProofMap({ map, proof, chosen }) {
  const [[row, column], go] = useState(() => [0, Math.max(0, map.rows[0].cells.indexOf("fail"))]), table = useRef(null);
  const move = (event) => {
    const [down, right] = MOVES[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    const next = [Math.min(Math.max(row + down, 0), map.rows.length - 1), Math.min(Math.max(column + right, 0), map.cases.length - 1)];
    go(next);
    table.current.querySelector(`[data-at="${next.join(" ")}"]`).focus();
  };
  return (
    <Section title={T.map(T.fields[map.key])}>
      <p class="small">{T.mapAbout(map)}</p>
      <ul class="legend small" aria-label={T.legend}>{Object.entries(T.results).map(([word, text]) => <li key={word}><span class={`mark ${word}`} aria-hidden="true">{SIGNS[word]}</span>{text}</li>)}</ul>
      <div class="scroll" role="region" tabindex={0} aria-label={T.map(T.fields[map.key])}>
        <table class="matrix proof" ref={table} onKeyDown={move}>
          <thead><tr><th scope="col">{T.parser}</th>{map.cases.map((one) => <th scope="col" key={one}><span>{one}</span></th>)}</tr></thead>
          <tbody>{map.rows.map((one, r) => (
            <tr key={one.parsers[0]}>
              <th scope="row"><Names of={one.parsers} chosen={chosen} /></th>
              {one.cells.map((cell, c) => (
                <td key={c}><button type="button" class={`mark ${cell}`} data-at={`${r} ${c}`} tabindex={r === row && c === column ? 0 : -1} aria-pressed={r === row && c === column ? "true" : "false"}
                  aria-label={T.cell(map.cases[c], T.results[cell])} onClick={() => go([r, c])}>{SIGNS[cell]}</button></td>
              ))}
            </tr>
          ))}</tbody>
        </table>
      </div>
      <Shown map={map} proof={proof} row={map.rows[row]} column={column} />
    </Section>
  );
}

// The same map without its names, as large as a thumb: a click leads to the whole.
export const SmallMap = ({ map, name }) => (
  <figure class="small"><Link to={["documents", name, "decisions"]}>
    <svg class="chart map" role="img" aria-label={T.mapAbout(map)} height={Math.min(map.rows.length * ROW, TALL)}>
      {map.rows.map((one, r) => one.cells.map((cell, c) => (
        <rect key={`${r} ${c}`} class={cell} x={part(c, map.cases)} y={part(r, map.rows)} width={part(0.9, map.cases)} height={part(0.85, map.rows)} />
      )))}
    </svg>
    <figcaption>{T.small(T.fields[map.key], map)}</figcaption></Link></figure>
);

const Names = ({ of: [first, ...others], chosen }) => [
  first, first === chosen ? <Soft>{T.inUse}</Soft> : null, others.slice(0, SHOWN - 1).map((one) => `, ${one}`).join(""),
  others.length < SHOWN ? null : T.others(others.length - SHOWN + 1),
];

// The case of a cell: what the template wrote, and what the first parser of the row made of it.
function Shown({ map, proof, row, column }) {
  const [parser] = row.parsers, ident = map.cases[column], cell = row.cells[column];
  const verdict = proof?.verdicts?.[map.key]?.find((one) => one.parser === parser) ?? {};
  return (
    <div class="case" aria-live="polite">
      <p class="break"><strong>{T.caseOf(parser, ident)}</strong>{" "}<Mark word={cell}>{T.results[cell]}</Mark>{verdict.failed?.[ident] ? `: ${verdict.failed[ident]}` : null}</p>
      {row.parsers.length > 1 ? <p class="soft small break">{T.alike(row.parsers.slice(1))}</p> : null}
      {[verdict.streaming && T.inPieces(verdict.streaming), verdict.forbidden && T.unwritable(verdict.forbidden)].filter(Boolean).map((text) => <p class="small break" key={text}>{text}</p>)}
      {proof?.written?.[ident] ? <Block label={T.written} text={proof.written[ident]} /> : null}
    </div>
  );
}
