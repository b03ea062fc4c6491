// All probes at one look: a column for each run, its number above; the worst first.

import { Mark, SoftWhen } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.pictures;
const SIGNS = { pass: "✓", fail: "✗", inconclusive: "?", "not-shown": "○", "not-applicable": "–" };

// ``go(probe)`` makes the button that leads to a probe.
export function Matrix({ found: { runs, matrix, columns }, go }) {
  const rows = Object.fromEntries(matrix.map((row) => [row.probe, row]));
  return [
    <ol class="runs small">{runs.map((one) => (
      <li key={one.run}>{one.version ? `${one.engine} ${one.version}` : one.engine}{" "}<Mark word={one.state} />{" "}<SoftWhen at={one.at} /></li>
    ))}</ol>,
    <div class="matrices">{columns.map(({ probes }, at) => (
      <div class="scroll" role="region" tabindex={0} aria-label={T.part(at + 1)} key={at}>
        <table class="matrix">
          <thead><tr><th scope="col">{T.probe}</th>{runs.map((one) => <th scope="col" key={one.run}><span class="unseen">{T.run}</span>{one.run}</th>)}</tr></thead>
          <tbody>{probes.map((probe) => <Row key={probe} row={rows[probe]} runs={runs} go={go} />)}</tbody>
        </table>
      </div>
    ))}</div>,
  ];
}

const Row = ({ row, runs, go }) => (
  <tr><th scope="row">{go(row.probe)}</th>{runs.map(({ run }) => <td key={run}><Cell cell={row.cells.find((one) => one.run === run)} /></td>)}</tr>
);

// The sign of an outcome on its colour; its word is for those who hear the page.
function Cell({ cell }) {
  if (!cell) return null;
  const { outcome } = cell, sign = Object.hasOwn(SIGNS, outcome) ? SIGNS[outcome] : "";
  return <span class={sign ? `mark ${outcome}` : "mark"}>{sign}<span class="unseen">{` ${outcome}`}</span></span>;
}
