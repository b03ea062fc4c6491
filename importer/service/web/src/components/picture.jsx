// A picture as the server laid it out, the same as in a report: a drawing, what its colours are, the table behind it.

import { TEXTS } from "../text.js";
import { Table } from "./table.jsx";

const T = TEXTS.pictures;

export function Picture({ one }) {
  const { width, height } = one;
  return (
    <div class="picture">
      <h3>{one.title}</h3>
      <div class="scroll" role="region" tabindex={0} aria-label={one.title}>
        <svg class="chart" role="img" aria-label={one.label} viewBox={`0 0 ${width} ${height}`} width={width} height={height}>
          {one.shapes.map((shape, at) => <Shape key={at} {...shape} />)}
        </svg>
      </div>
      <ul class="legend small">{one.legend.map(({ kind, name }) => (
        <li key={name}><svg class="chart" viewBox="0 0 10 10" width={10} height={10} aria-hidden="true"><rect class={kind} x={0} y={0} width={10} height={10} /></svg>{name}</li>
      ))}</ul>
      <details class="small"><summary class="soft">{T.figures(one.title)}</summary><Table label={T.figures(one.title)} heads={one.heads} rows={one.rows} kind="several" /></details>
    </div>
  );
}

const Shape = ({ shape, kind, x, y, width, height, text }) => (
  shape === "text" ? <text class={kind} x={x} y={y}>{text}</text> : <rect class={kind} x={x} y={y} width={width} height={height} />
);

export const Pictures = ({ all }) => all.map((one) => <Picture key={one.name} one={one} />);
