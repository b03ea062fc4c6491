// Names of devices as their makers write them, by maker.

import { bytes } from "./format.js";
import { TEXTS } from "./text.js";

const ACRONYMS = /^(cpu|dgx|rtx|tpu)$/;

function word(part) {
  if (/^\d+g$/.test(part)) return `${part.slice(0, -1)} GB`;
  if (/^[a-z]{2,}$/.test(part) && !ACRONYMS.test(part)) return part[0].toUpperCase() + part.slice(1);
  return part.toUpperCase().replace(/^RTX(?=\d)/, "RTX ");
}

// "8xh100-80g" as "8 × H100 80 GB".
export function device(name) {
  const [, count, one] = /^(?:(\d+)x)?(.*)$/.exec(name);
  const label = one.split("-").map(word).join(" ");
  return count ? `${count} × ${label}` : label;
}

// Groups for a field of choice: by maker the devices with their memory; names of ``more`` that no group has stand first.
export function grouped(devices, more = []) {
  const known = new Set(devices.map((one) => one.name)), kinds = [...new Set(devices.map((one) => one.kind))];
  const others = [...new Set(more)].filter((name) => name && !known.has(name)).map((name) => [name, device(name)]);
  const groups = kinds.map((kind) => ({
    label: TEXTS.common.makers[kind] ?? kind,
    options: devices.filter((one) => one.kind === kind).map((one) => [one.name, one.memory ? `${device(one.name)} (${bytes(one.memory)})` : device(one.name)]),
  }));
  return [...others, ...groups];
}
