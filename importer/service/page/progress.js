// A job as it goes: its steps, what it is at, how it ended, and what may be done about it.

import { get, post } from "./api.js";
import { code, el, fill, link, mark, shown, soft, table } from "./dom.js";
import { problem, run } from "./problem.js";
import { watch } from "./stream.js";

const STEPS = {
  import: { resolve: "find the commit", decide: "read files, tables and template", prove: "ask the engine's parsers", store: "write the document" },
  validation: { weights: "find the weights", run: "start the engine and ask every probe", store: "keep what was found" },
  recheck: { compare: "compare each document with an import now" },
};
const KEPT = 8; // lines of what was said

export const open = (job) => job.state === "queued" || job.state === "running";

// A node that follows the job until it ends, then calls ``ended`` with it. One that is tried again goes on here, or the
// page is made anew by ``renew``.
export function follow(job, signal, ended = () => {}, renew = null) {
  const parts = [el("p", { "aria-live": "polite" }), el("div"), el("div")];
  const state = { job, step: job.step, said: [], last: 0, parts, signal, ended, renew };
  begin(state);
  return el("div", { class: "job" }, parts);
}

// A document's validation, put where it is to be seen; the page is made anew when it is over.
export function attend(node, job, { signal, again }) {
  const over = (ended) => { if (ended.state === "succeeded") again(); };
  fill(node, el("h2", {}, "Validation"), follow(job, signal, over));
}

function begin(state) {
  draw(state);
  foot(state);
  if (open(state.job)) pursue(state);
}

async function pursue(state) {
  const { job: { id }, signal } = state;
  try {
    for await (const event of watch(id, signal, state.last)) {
      state.last = event.number;
      if (event.data.job !== id) await refresh(state);
      else if (event.type === "step") Object.assign(state, { step: event.data.step, job: { ...state.job, state: "running" } });
      else if (event.type === "progress" && event.data.message) state.said.push(event.data.message);
      else if (event.type === "queued") Object.assign(state, { step: null, said: [] });
      draw(state);
    }
    if (signal.aborted) return;
    state.job = await get(["jobs", id], { signal });
    draw(state);
    foot(state);
    state.ended(state.job);
  } catch (error) {
    if (!signal.aborted) state.parts[2].append(problem(error));
  }
}

// A list: its counts, at most once in a while.
async function refresh(state) {
  if (Date.now() - (state.looked ?? 0) < 700) return;
  state.looked = Date.now();
  state.job = await get(["jobs", state.job.id], { signal: state.signal });
}

function draw(state) {
  const { job, said, parts: [head, middle] } = state;
  fill(head, mark(job.state), " ", soft(now(state)));
  const before = open(job) ? said.slice(-KEPT, -1) : [];
  fill(middle, job.counts ? counts(job) : steps(state),
    before.length ? el("ul", { class: "plain mono soft small", "aria-label": "What it said before" }, before.map((line) => el("li", {}, line))) : null);
}

// What may be done: drawn only when that changes, so that a button stays where it is.
function foot(state) {
  const again = (job) => {
    if (state.renew) return state.renew();
    Object.assign(state, { job, step: null, said: [] });
    begin(state);
  };
  const { job } = state;
  fill(state.parts[2], job.links.retry ? failure(job, again) : null, open(job) ? cancel(job) : null);
}

function now({ job, step, said }) {
  if (job.state === "queued") return job.message ?? (job.kind === "validation" ? "waiting for a worker that has the engine, the device and the memory" : "waiting for its turn");
  if (job.state === "running") return said.at(-1) ?? STEPS[job.kind]?.[step] ?? "";
  if (job.attempt > 1) return `attempt ${job.attempt}`;
  return "";
}

function steps({ job, step }) {
  const names = Object.entries(STEPS[job.kind] ?? {});
  const at = names.findIndex(([name]) => name === step);
  const over = job.state === "succeeded";
  return el("ol", { class: "steps" }, names.map(([name, says], number) => {
    const stands = over || number < at ? "done" : number === at && job.state !== "queued" ? job.state : "ahead";
    return el("li", { class: stands, "aria-current": stands === "running" ? "step" : null }, el("strong", {}, name), " ", soft(says));
  }));
}

function counts(job) {
  return el("p", {}, Object.entries(job.counts).filter(([, n]) => n).map(([name, n]) => [mark(name, `${n} ${name}`), " "]));
}

function cancel(job) {
  const place = el("div");
  const button = el("button", { type: "button", on: { click: () => run(button, place, () => post(["jobs", job.id, "cancel"])) } }, "Cancel");
  return [button, place];
}

function failure(job, again) {
  const place = el("div");
  const retry = (label, body) => {
    const button = el("button", { type: "button", on: { click: () => run(button, place, async () => again(await post(["jobs", job.id, "retry"], { body }))) } }, label);
    return button;
  };
  const { candidates, conflicts } = job.error ?? {};
  return el("div", {},
    job.error ? problem({ said: job.error }, !(candidates || conflicts)) : null,
    candidates ? [el("p", {}, "Which one is it to be for?"),
      table("Candidates", ["backend", "engine"], candidates.map((c) => [retry(c.backend, { backend: c.backend }), [c.engine, c.message ? soft(`: ${c.message}`) : null]]), "several")] : null,
    conflicts ? [clashes(conflicts), el("p", { class: "buttons" }, retry("Keep mine", { take: "mine" }), retry("Take theirs", { take: "theirs" }))] : null,
    candidates || conflicts ? null : el("p", { class: "buttons" }, retry(job.kind === "imports" ? "Try again what has not succeeded" : "Try again", {})),
    place);
}

// Where an edit and an import differ: what was imported before, what a person made of it, what is new.
export function clashes(found) {
  return table("Conflicts", ["value", "before", "mine", "theirs"], found.map((c) => [code(c.path),
    ...["base", "mine", "theirs"].map((side) => (side in c ? code(shown(c[side])) : soft("absent")))]));
}
