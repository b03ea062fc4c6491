// Actions on documents: each document by its own request, and what was answered for each.

import { Problem, ask, get, post } from "../../api.js";
import { TEXTS } from "../../text.js";
import { filters } from "./query.js";

const MOST = 500; // documents of one action

// The request of the document's last import, for another version of its engine where one is named.
export async function reimport(name, backend, engineVersion) {
  const { request = {}, directory, reference } = await get(["configs", name, "receipt"]);
  const { revision, device, per_device, memory } = request;
  const kept = { revision, device, per_device, memory: memory && `${memory / 1024}K`, engine_version: engineVersion ?? request.engine_version };
  const body = Object.fromEntries(Object.entries(kept).filter(([, value]) => value));
  return post(["imports"], { body: { ...body, reference: directory || request.reference || reference, name, backend } });
}

export const recheck = ({ name }) => post(["configs", name, "recheck"]);
export const remove = ({ name, version }) => ask("DELETE", ["configs", name], { match: `"${version}"` });

const DO = {
  approve: ({ name, digest }, publish) => post(["configs", name, "approve"], { body: { digest, ...publish } }),
  validate: ({ name }) => post(["configs", name, "validate"]),
  recheck,
  reimport: ({ name, backend }) => reimport(name, backend),
  release: ({ name, digest }) => post(["configs", name, "release"], { body: { digest } }),
  withdraw: ({ name }) => post(["configs", name, "withdraw"]),
  delete: remove,
};

// The outcome of each; one that is refused leaves the others as they are.
export const each = (action, items, publish = {}) => oneByOne(items, (one) => DO[action](one, publish));

export async function oneByOne(items, act) {
  const found = [];
  for (const one of items) {
    try {
      const { id } = await act(one);
      found.push({ name: one.name, job: id });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      found.push({ name: one.name, refused: error });
    }
  }
  return found;
}

// Every document that the filters leave.
export async function every(query) {
  const page = await get(["configs"], { query: { ...filters(query), limit: MOST } });
  if (page.next) throw new Problem({ detail: TEXTS.actions.tooMany(page.total, MOST) }, 0);
  return page.items;
}
