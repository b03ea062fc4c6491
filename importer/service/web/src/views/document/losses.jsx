// What an entry for LocalAI makes of a document: parts that it drops, changes, adds or does not pin.

import { Mark } from "../../components/index.js";
import { TEXTS } from "../../text.js";

export const Losses = ({ found }) => (
  <ul class="plain small">{found.map((one, at) => (
    <li class="break" key={at}>{one.effect ? [<Mark word="inconclusive">{TEXTS.losses.effects[one.effect]}</Mark>, " "] : null}{one.message}</li>
  ))}</ul>
);
