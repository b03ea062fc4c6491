// Who may ask this server: API keys, for the scope admin.

import { get, may } from "../api.js";
import { Title } from "../components/index.js";
import { TEXTS } from "../text.js";
import { Keys } from "./access/keys.jsx";

const T = TEXTS.access;

export async function load({ me, signal }) {
  if (!may(me, "admin")) return null;
  return (await get(["keys"], { signal })).items;
}

export function View({ data }) {
  if (data === null) return [<Title>{T.title}</Title>, <p>{T.mayNot}</p>];
  return [<Title>{T.title}</Title>, <Keys items={data} />];
}
