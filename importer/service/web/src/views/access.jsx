// Who may ask this server, and who it tells: API keys and webhooks, for the scope admin.

import { get, may } from "../api.js";
import { Title } from "../components/index.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { Keys } from "./access/keys.jsx";
import { Webhooks } from "./access/webhooks.jsx";

const T = TEXTS.access;

export async function load({ me, signal }) {
  if (!may(me, "admin")) return null;
  const [keys, webhooks] = await Promise.all([get(["keys"], { signal }), get(["webhooks"], { query: { limit: 200 }, signal })]);
  return { keys: keys.items, webhooks: webhooks.items };
}

export function View({ data }) {
  const { turn } = useView();
  if (data === null) return [<Title>{T.title}</Title>, <p>{T.mayNot}</p>];
  return [<Title>{T.title}</Title>, <Keys items={data.keys} />, <Webhooks items={data.webhooks} turn={turn} />];
}
