// The memory of a document: its parts against the device, predicted beside measured, other plans.

import { get } from "../../api.js";
import { Mark, Pictures } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.pictures;

export async function load({ name, signal }) {
  try {
    return await get(["configs", name, "memory"], { signal });
  } catch (error) {
    if (error.kind !== "no-receipt") throw error;
    return { pictures: [] };
  }
}

export function View({ data: { verdict, message, pictures } }) {
  return [
    verdict ? <p class="break"><Mark word={verdict === "fits" ? "pass" : "inconclusive"}>{verdict}</Mark>{" "}{message}</p> : null,
    pictures.length ? <Pictures all={pictures} /> : <p>{T.noMemory}</p>,
  ];
}
