// A picture as the server laid it out, the same as in a report: bars, what their colours are, the table behind them.

import { TEXTS } from "../text.js";
import { Table } from "./table.jsx";

const T = TEXTS.pictures;
const HIGH = { true: 76, false: 16 }; // pixels of a tall bar and of another

export function Picture({ one }) {
  return (
    <div class="picture">
      <h3>{one.title}</h3>
      {one.note ? <p class="small">{one.note}</p> : null}
      <div class="plot" role="img" aria-label={one.label}>{one.bars.map((bar, at) => (
        <div key={at}><span class="label">{bar.label}</span><span class="value">{bar.text}</span>
          <svg class="chart" width="100%" height={HIGH[bar.tall]} aria-hidden="true">{bar.pieces.map((piece, n) => <Piece key={n} {...piece} />)}</svg></div>
      ))}</div>
      {one.legend.length ? <ul class="legend small">{one.legend.map(({ kind, name }) => (
        <li key={name}><svg class="chart" width={10} height={10} aria-hidden="true"><rect class={kind} x={0} y={0} width={10} height={10} /></svg>{name}</li>
      ))}</ul> : null}
      {one.rows.length ? <details class="small"><summary class="soft">{T.figures(one.title)}</summary><Table label={T.figures(one.title)} heads={one.heads} rows={one.rows} kind="several" /></details> : null}
    </div>
  );
}

const Piece = ({ kind, ...box }) => <rect class={kind} {...Object.fromEntries(Object.entries(box).map(([side, value]) => [side, `${value}%`]))} />;

export const Pictures = ({ all }) => all.map((one) => <Picture key={one.name} one={one} />);
