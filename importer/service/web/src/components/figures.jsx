// Figures as the server has them, the same as in a report: a table, and before that of the memory its bars.

import { TEXTS } from "../text.js";
import { Table } from "./table.jsx";

const T = TEXTS.pictures;

const Rows = ({ one }) => <Table label={T.figures(one.title)} heads={one.heads} rows={one.rows} kind="several" />;

const One = ({ one }) => (
  <div class="figures">
    <h3>{one.title}</h3>
    {one.note ? <p class="small">{one.note}</p> : null}
    {one.bars.length ? <Bars one={one} /> : <Rows one={one} />}
  </div>
);

const Bars = ({ one }) => [
  <div class="plot" role="img" aria-label={one.label}>{one.bars.map((bar, at) => (
    <div key={at}><span class="label">{bar.label}</span><span class="value">{bar.text}</span>
      <svg class="chart" width="100%" height={16} aria-hidden="true">{bar.pieces.map((piece, n) => <Piece key={n} {...piece} />)}</svg></div>
  ))}</div>,
  <ul class="legend small">{one.legend.map(({ kind, name }) => (
    <li key={name}><svg class="chart" width={10} height={10} aria-hidden="true"><rect class={kind} width={10} height={10} /></svg>{name}</li>
  ))}</ul>,
  <details class="small"><summary class="soft">{T.figures(one.title)}</summary><Rows one={one} /></details>,
];

const Piece = ({ kind, x, width }) => <rect class={kind} x={`${x}%`} width={`${width}%`} height="100%" />;

export const Figures = ({ all }) => all.map((one) => <One key={one.name} one={one} />);
