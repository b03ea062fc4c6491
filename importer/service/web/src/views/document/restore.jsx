// An earlier version as the working copy once more.

import { may, post } from "../../api.js";
import { Action, Failure, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const T = TEXTS.restore;

export function Restore({ version, found, newest }) {
  const { me, again } = useView(), act = useAction();
  if (version === newest) return null;
  const restore = async () => {
    await post(["configs", found.name, "versions", String(version), "restore"], { body: {}, match: found.etag });
    await again();
    say(T.done(version, found.name));
  };
  return [<Action act={act} name="restore" label={T.label} told={T.act(version)} disabled={!may(me, "import")} onAct={restore} />, <Failure of={act} />];
}
