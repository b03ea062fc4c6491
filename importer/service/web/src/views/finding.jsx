// One finding of upkeep, with the document before it and after.

import { get } from "../api.js";
import { Changes, Difference, Section, Title } from "../components/index.js";
import { go } from "../router.js";
import { TEXTS } from "../text.js";
import { Finding } from "./upkeep/card.jsx";

const T = TEXTS.upkeep;

export const load = ({ route, signal }) => get(["upkeep", route.params.id], { signal });

export function View({ data }) {
  const sides = Object.entries(data.proposals);
  return [
    <Title>{T.finding(data.name)}</Title>,
    <Finding finding={data} done={() => go(["upkeep"])} />,
    sides.length ? sides.map(([side, made]) => (
      <Section key={side} title={side === "any" ? T.sides : T.sidesWith(side)}>
        <Changes found={made.changes} />
        {data.text === null ? null : <Difference before={data.text} after={made.text} />}
      </Section>
    )) : <p class="soft">{T.settled}</p>,
  ];
}
