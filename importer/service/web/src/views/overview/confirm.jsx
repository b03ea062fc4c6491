// What would be done, and a question before it is.

import { Action, Dialog, Failure, Soft, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.actions;
const SHOWN = 20; // names before a count of the others

export function Confirm({ action, would, onYes, onClose }) {
  const act = useAction();
  const rows = would.items.filter((one) => one.outcome !== "refused"), refused = would.items.filter((one) => one.outcome === "refused");
  const released = action === "approve" ? rows.filter((one) => one.config?.state === "published") : [];
  const yes = (name, label, publish = false) => <Action act={act} name={name} main={name === "yes"} label={label} onAct={() => onYes(rows, publish)} />;
  return (
    <Dialog title={T.ask[action](rows.length)} onClose={onClose}>
      <p>{rows.length ? action === "approve" ? T.approves(released.length, rows.length) : T.effect[action] : T.none}</p>
      <ul>{rows.slice(0, SHOWN).map((one) => <li class="break" key={one.name}>{one.name}{released.includes(one) ? <Soft>{T.getsReleased}</Soft> : null}</li>)}</ul>
      {rows.length > SHOWN ? <p class="soft">{TEXTS.overview.more(rows.length - SHOWN)}</p> : null}
      {refused.length ? [<p>{T.wouldNot(refused.length)}</p>, <ul class="small">{refused.slice(0, SHOWN).map((one) => (
        <li class="break" key={one.name}>{one.name}{": "}{one.problem?.detail}</li>))}</ul>] : null}
      {rows.length ? <p class="buttons">{released.length ? [yes("yes", T.yes.publish, true), yes("only", T.yes.only)] : yes("yes", T.yes[action])}</p> : null}
      <Failure of={act} />
    </Dialog>
  );
}
