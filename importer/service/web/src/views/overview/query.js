// What the address says of the overview, and what of it the server is asked.

import { remembered } from "../../remembered.js";

// The facets in the order of the page; the server filters by each of these names.
export const FACETS = [
  "state", "attention", "backend", "family", "modality", "license", "quantization", "size", "validation", "review", "kind",
  "tool_parser", "reasoning_parser",
];
export const OPEN = 6; // facets that are open from the start
export const SORTED = "-attention";
export const PER_PAGE = 50;
const ONES = ["q", "model", "device", "tag", "cursor"];

// {q, device, fits, sort, cursor, state: [], …}; ``fits`` is the device that is counted for.
export function asked({ query }) {
  const ones = Object.fromEntries(ONES.map((name) => [name, query.get(name) ?? ""]));
  const many = Object.fromEntries(FACETS.map((name) => [name, query.getAll(name)]));
  const fits = ones.device || (query.get("fits") ?? remembered("device"));
  return { ...ones, ...many, fits, sort: query.get("sort") ?? SORTED };
}

// The filters alone, as the address and the server have them.
export function filters(query) {
  const found = {};
  for (const name of ["q", "model", "device", "tag", ...FACETS]) if (query[name]?.length) found[name] = query[name];
  return found;
}

// The address of these filters, from their first page on.
export function addressed(query, more = {}) {
  const { sort, fits, device } = { ...query, ...more };
  return { ...filters(query), sort: sort === SORTED ? "" : sort, fits: fits && fits !== device ? fits : "", ...more, cursor: more.cursor ?? "" };
}

export const filtered = (query) => Object.keys(filters(query)).length > 0;
