// All probes at one look: a column for each run, its number above; the worst first.

import { Mark, SoftWhen } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.pictures;
const SIGNS = { pass: "✓", fail: "✗", inconclusive: "?", "not-shown": "○", "not-applicable": "–" };

const ORDER = ["fail", "inconclusive", "not-shown", "pass", "not-applicable"];
const COLUMNS = 3, FEWEST = 8; // probes of a column, unless it is the only one

// The probes, the worst first, in columns that fit one screen.
function columns(runs) {
  const all = runs.flatMap((run) => run.outcomes);
  const worst = (probe) => Math.min(...all.filter((o) => o.probe === probe).map((o) => ORDER.indexOf(o.outcome)));
  const probes = [...new Set(all.map((o) => o.probe))].sort((a, b) => worst(a) - worst(b));
  const length = Math.max(FEWEST, Math.ceil(probes.length / COLUMNS));
  return Array.from({ length: Math.ceil(probes.length / length) }, (_, at) => probes.slice(at * length, (at + 1) * length));
}

// ``go(probe)`` makes the button that leads to a probe.
export function Matrix({ runs, go }) {
  return [
    <ol class="runs small">{runs.map((one, at) => (
      <li key={at}>{one.version ? `${one.engine} ${one.version}` : one.engine}{" "}<Mark word={one.state} />{" "}<SoftWhen at={one.started} /></li>
    ))}</ol>,
    <div class="matrices">{columns(runs).map((probes, at) => (
      <div class="scroll" role="region" tabindex={0} aria-label={T.part(at + 1)} key={at}>
        <table class="matrix">
          <thead><tr><th scope="col">{T.probe}</th>{runs.map((_, run) => <th scope="col" key={run}><span class="unseen">{T.run}</span>{run + 1}</th>)}</tr></thead>
          <tbody>{probes.map((probe) => <Row key={probe} probe={probe} runs={runs} go={go} />)}</tbody>
        </table>
      </div>
    ))}</div>,
  ];
}

const Row = ({ probe, runs, go }) => (
  <tr><th scope="row">{go(probe)}</th>{runs.map((run, at) => <td key={at}><Cell cell={run.outcomes.find((one) => one.probe === probe)} /></td>)}</tr>
);

// The sign of an outcome on its colour; its word is for those who hear the page.
function Cell({ cell }) {
  if (!cell) return null;
  const { outcome } = cell, sign = Object.hasOwn(SIGNS, outcome) ? SIGNS[outcome] : "";
  return <span class={sign ? `mark ${outcome}` : "mark"}>{sign}<span class="unseen">{` ${outcome}`}</span></span>;
}
