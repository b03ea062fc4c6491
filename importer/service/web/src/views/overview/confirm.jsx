// A question before an action on many documents.

import { Action, Dialog, Failure, Soft, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.actions;
const SHOWN = 20; // names before a count of the others

export function Confirm({ action, rows, onYes, onClose }) {
  const act = useAction();
  const released = action === "approve" ? rows.filter((one) => one.validation === "passed") : [];
  const yes = (name, label, publish) => <Action act={act} name={name} main={name === "yes"} label={label} onAct={() => onYes(publish)} />;
  return (
    <Dialog title={T.ask[action](rows.length)} onClose={onClose}>
      <p>{action === "approve" ? T.approves(released.length, rows.length) : T.effect[action]}</p>
      <ul>{rows.slice(0, SHOWN).map((one) => <li class="break" key={one.name}>{one.name}{released.includes(one) ? <Soft>{T.getsReleased}</Soft> : null}</li>)}</ul>
      {rows.length > SHOWN ? <p class="soft">{TEXTS.overview.more(rows.length - SHOWN)}</p> : null}
      <p class="buttons">{released.length ? [yes("yes", T.yes.publish), yes("only", T.yes.only, { publish: false })] : yes("yes", T.yes[action], action === "approve" ? { publish: false } : {})}</p>
      <Failure of={act} />
    </Dialog>
  );
}
