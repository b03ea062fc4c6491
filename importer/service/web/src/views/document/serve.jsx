// Which version the gallery serves: a roll-back to one that could be served, and a withdrawal.

import { useState } from "preact/hooks";
import { may, post } from "../../api.js";
import { Action, Dialog, Failure, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const T = TEXTS.releases;
const SERVABLE = ["published", "ready"]; // states of a version: it was served, or could have been

// What reaches users of the gallery asks first.
export function Serve({ one: { version, state }, name, served, newest }) {
  const { me, again } = useView(), act = useAction(), [asking, ask] = useState(false);
  const is = version === served, step = is ? "withdraw" : "serve";
  if (!is && (version === newest || !SERVABLE.includes(state))) return null;
  const settle = async () => {
    const { release } = await post(["configs", name, is ? "withdraw" : "release"], { body: is ? {} : { version } });
    ask(false);
    await again();
    say(release === null ? T.noEntry(name) : T.nowServes(release, name));
  };
  return [
    <button type="button" aria-label={T.act(T[step], version)} disabled={!may(me, "approve")} onClick={() => ask(true)}>{T[step]}</button>,
    asking ? <Dialog title={T.act(T[step], version)} onClose={() => ask(false)}>
      <p>{T.reaches[step]}</p>
      <p class="buttons"><Action act={act} name="yes" main label={T[step]} onAct={settle} /></p>
      <Failure of={act} />
    </Dialog> : null,
  ];
}
