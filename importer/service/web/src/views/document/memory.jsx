// The memory of a document: its parts against the device, predicted beside measured, other plans, other devices.

import { useState } from "preact/hooks";
import { get, may, post } from "../../api.js";
import { Action, Failure, Figures, Mark, Table, useAction } from "../../components/index.js";
import { bytes } from "../../format.js";
import { go } from "../../router.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const T = TEXTS.pictures;
const SIGNS = { fits: "pass", neutral: "not-applicable" };

export async function load({ name, signal }) {
  try {
    return { name, ...await get(["configs", name, "memory"], { signal }) };
  } catch (error) {
    if (error.kind !== "no-receipt") throw error;
    return { figures: [] };
  }
}

export function View({ data: { name, verdict, message, figures } }) {
  return [
    verdict ? <Fits verdict={verdict} message={message} /> : null,
    figures.length ? <Figures all={figures} /> : <p>{T.noMemory}</p>,
    name ? <Further key={name} name={name} /> : null,
  ];
}

// The answer in words, then its figures.
export const Fits = ({ verdict, message }) => <p class="break"><Mark word={SIGNS[verdict] ?? "inconclusive"}>{T.verdicts[verdict]}</Mark>{" "}{message}</p>;

// A start with random weights, and what each device holds: both are asked for, since both take a while.
function Further({ name }) {
  const { me } = useView(), act = useAction();
  const [rows, set] = useState(null);
  const measure = async () => go(["jobs", (await post(["configs", name, "validate"], { body: { measure: true } })).id]);
  return [
    <p class="buttons">
      <Action act={act} name="measure" label={T.measure} disabled={!may(me, "import")} onAct={measure} />
      <Action act={act} name="devices" label={T.onDevices} onAct={async () => set((await get(["configs", name, "memory"], { query: { devices: true } })).holds)} />
    </p>,
    <p class="soft small">{T.measures}</p>,
    <Failure of={act} />,
    rows ? <Table label={T.onDevices} heads={T.deviceHeads} rows={rows.map((one) => [one.device, bytes(one.memory), answer(one), one.whole_on ?? "–"])} /> : null,
  ];
}

function answer({ answer: word, tokens, kv_cache_dtype: cache, reason }) {
  const told = word === "part" ? T.partly(tokens, cache !== "auto") : T.answers[word];
  return <span title={reason}>{told}</span>;
}
