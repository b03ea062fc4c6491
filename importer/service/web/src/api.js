// Asking the service. The key lies in this tab's session and travels in a header, never in an address.

import { TEXTS } from "./text.js";

const T = TEXTS.api;
const PLACE = "importer-key";
const BASE = new URL("v1/", document.baseURI);

export class Problem extends Error {
  constructor(said, status) {
    super(said.detail ?? said.title ?? T.answered(status));
    Object.assign(this, { said, status, kind: said.kind });
  }
}

export const key = {
  get: () => sessionStorage.getItem(PLACE),
  set: (text) => sessionStorage.setItem(PLACE, text),
  forget: () => sessionStorage.removeItem(PLACE),
};

export function headers(more = {}) {
  const own = key.get();
  return own === null ? more : { Authorization: `Bearer ${own}`, ...more };
}

export function address(parts, query = {}) {
  const url = new URL(parts.map(encodeURIComponent).join("/"), BASE);
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") url.searchParams.append(name, one);
  }
  return url;
}

// The answer; raises Problem with the server's own words.
export async function ask(method, parts, { query, body, text, match, type, signal } = {}) {
  const more = {};
  if (match) more["If-Match"] = match;
  if (body !== undefined) more["Content-Type"] = "application/json";
  if (text !== undefined) more["Content-Type"] = type ?? "application/yaml";
  const answer = await reached(fetch(address(parts, query), {
    method, signal, headers: headers(more), body: text ?? (body === undefined ? undefined : JSON.stringify(body)),
    cache: "no-store", credentials: "same-origin", redirect: "error",
  }));
  if (!answer.ok) throw new Problem(await words(answer), answer.status);
  return answer;
}

export async function reached(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ kind: "unreachable", detail: T.unreachable, hint: T.again }, 0);
  }
}

export async function words(answer) {
  try {
    return await answer.json();
  } catch {
    return { detail: T.answered(answer.status) };
  }
}

// What a key with these scopes may do.
export const may = (me, scope) => me.scopes.includes(scope);

export const get = async (parts, options) => (await ask("GET", parts, options)).json();
export const post = async (parts, options) => (await ask("POST", parts, options)).json();

// A document with the tag that a change of it has to name.
export const tagged = async (answer) => ({ ...(await answer.json()), etag: answer.headers.get("ETag") });
export const whole = async (name, signal) => tagged(await ask("GET", ["configs", name], { signal }));
