// Where an edit and an import differ: what was imported before, what a person made of it, what is new.

import { useState } from "preact/hooks";
import { shown } from "../format.js";
import { TEXTS } from "../text.js";
import { Action } from "./action.jsx";
import { Table } from "./table.jsx";
import { Code, Soft } from "./text.jsx";

const T = TEXTS.conflicts;
const SIDES = ["mine", "theirs"];
const value = (one, side) => (side in one ? <Code>{shown(one[side])}</Code> : <Soft>{TEXTS.common.absent}</Soft>);

// Only to look at.
export const Conflicts = ({ found }) => <Table label={T.label} heads={T.heads} rows={found.map((one) => [
  <Code>{one.path}</Code>, ...["base", ...SIDES].map((side) => value(one, side))])} />;

// One side for each key; ``settle`` gets {path: side} once every key has one.
export function ChooseSides({ found, act, settle }) {
  const [chosen, set] = useState({});
  const left = found.filter(({ path }) => !Object.hasOwn(chosen, path)).length;
  const all = (side) => () => set(Object.fromEntries(found.map(({ path }) => [path, side])));
  const pick = (one, side) => (
    <label class="box side"><input type="radio" name={`side ${one.path}`} value={side} checked={chosen[one.path] === side}
      aria-label={T.side(T.sides[side], one.path, side in one ? shown(one[side]) : TEXTS.common.absent)}
      onChange={() => set({ ...chosen, [one.path]: side })} />{value(one, side)}</label>
  );
  return [
    <Table label={T.label} heads={T.heads} kind="stack conflicts" keys={found.map(({ path }) => path)}
      rows={found.map((one) => [<Code>{one.path}</Code>, value(one, "base"), ...SIDES.map((side) => pick(one, side))])} />,
    <p class="soft small" role="status">{left ? T.left(left) : T.ready}</p>,
    <p class="buttons"><button type="button" onClick={all("mine")}>{T.mine}</button><button type="button" onClick={all("theirs")}>{T.theirs}</button>
      <Action act={act} name="settle" main label={T.go} disabled={left > 0} onAct={() => settle(chosen)} /></p>,
  ];
}
