// Releases of a document: which one the gallery serves, what each changed, withdrawals and roll-backs.

import { useState } from "preact/hooks";
import { get, may, post } from "../../api.js";
import { Action, Changes, Dialog, Failure, Mark, Section, Short, Soft, Table, When, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { Losses } from "./losses.jsx";

const T = TEXTS.releases;

export const load = ({ name, route, signal }) => get(["configs", name, "releases"], { query: { limit: 50, cursor: route.query.get("cursor") }, signal });

export function View({ data: told, found }) {
  const act = useAction();
  return [
    <p class="soft">{told.served === null ? T.none : T.serves(told.served)}</p>,
    told.items.length ? <Section title={T.title}><Table label={T.title} heads={T.heads} kind="stack versions"
      rows={told.items.map((one) => row(one, <Actions one={one} name={found.name} act={act} />))} /></Section> : null,
    <Failure of={act} />,
  ];
}

function row(one, actions) {
  const out = one.withdrawn;
  return [
    [String(one.release), " ", one.served ? <Mark word="published">{T.served}</Mark> : out ? <Mark word="rejected">{T.withdrawn}</Mark> : null],
    one.by, <When at={one.at} />,
    [one.why ? <p class="break">{one.why}</p> : null,
      one.changes?.length ? <Changes found={one.changes} /> : <Soft>{one.changes ? TEXTS.common.noneInData : TEXTS.common.theFirst}</Soft>,
      out ? <p class="break">{T.withdrawnBy(out.by)}<When at={out.at} />{out.why ? `: ${out.why}` : null}</p> : null,
      <p class="soft small"><Short text={one.digest} what={TEXTS.document.facts.digest} /></p>],
    one.losses.length ? <Losses found={one.losses} /> : <Soft>{TEXTS.losses.none}</Soft>,
    out ? null : actions,
  ];
}

// What reaches users of the gallery asks first.
function Actions({ one, name, act }) {
  const { me, again } = useView(), [asking, ask] = useState(null);
  const settle = async () => {
    const now = await post(["configs", name, "releases", String(one.release), asking], { body: {} });
    const served = now.config.release;
    ask(null);
    await again();
    say(served === null ? T.noEntry(name) : T.nowServes(served, name));
  };
  const button = (step) => <button type="button" aria-label={T.act(T[step], one.release)} disabled={!may(me, "publish")} onClick={() => ask(step)}>{T[step]}</button>;
  return (
    <span class="buttons">{one.served ? null : button("rollback")}{button("withdraw")}
      {asking ? <Dialog title={T.act(T[asking], one.release)} onClose={() => ask(null)}>
        <p>{T.reaches[asking](one.served)}</p>
        <p class="buttons"><Action act={act} name="yes" main label={T[asking]} onAct={settle} /></p>
        <Failure of={act} />
      </Dialog> : null}
    </span>
  );
}
