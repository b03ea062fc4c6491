// Documents that were deleted, and a way back for each.

import { useState } from "preact/hooks";
import { get, may, post } from "../api.js";
import { Action, Empty, Failure, Link, Pager, SoftWhen, Table, Title, useAction } from "../components/index.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";

const T = TEXTS.deleted;

export const load = ({ route, signal }) => get(["configs"], { query: { deleted: true, cursor: route.query.get("cursor"), limit: 50 }, signal });

export function View({ data }) {
  const { me, route, again } = useView(), act = useAction(), [back, tell] = useState(null);
  const undelete = ({ name, version }) => async () => {
    await post(["configs", name, "versions", String(version), "restore"], { body: {}, match: `"${version}"` });
    await again();
    tell(name);
  };
  return [
    <Title>{T.title}</Title>,
    <p>{T.about}</p>,
    <p role="status">{back === null ? null : [T.done(back), " ", <Link to={["documents", back]}>{T.open(back)}</Link>]}</p>,
    data.items.length ? <Table label={T.title} heads={T.heads} kind="stack named" keys={data.items.map((one) => one.name)} rows={data.items.map((one) => [
      one.name, <span class="break">{one.model ?? TEXTS.common.none}</span>, one.backend ?? TEXTS.common.none, String(one.version), <SoftWhen at={one.updated_at} />,
      <Action act={act} name={one.name} label={T.undelete} told={T.act(one.name)} disabled={!may(me, "approve")} onAct={undelete(one)} />,
    ])} /> : <Empty text={T.empty}><Link to={["documents"]}>{T.back}</Link></Empty>,
    <Failure of={act} />,
    <Pager label={T.pages} to={["deleted"]} query={{}} cursor={route.query.get("cursor") ?? ""} next={data.next} />,
  ];
}
