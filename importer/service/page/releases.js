// Releases of a document: which one the gallery serves, what each changed, withdrawals and roll-backs.

import { get, post } from "./api.js";
import { changes, code, el, mark, moment, say, section, soft, table } from "./dom.js";
import { losses, TEXTS } from "./losses.js";
import { run } from "./problem.js";

export async function show(context) {
  const { name, route, signal } = context;
  const told = await get(["configs", name, "releases"], { query: { limit: 50, cursor: route.query.get("cursor") }, signal });
  const failed = el("div");
  return [
    el("p", { class: "soft" }, told.served === null ? "The gallery serves no release of this document."
      : `The gallery serves release ${told.served}. Imports, edits and reviews change the working copy alone.`),
    told.items.length ? section("Releases", table("Releases", ["release", "by", "when", "changes", TEXTS.losses, ""], told.items.map((one) =>
      row(one, context, failed)), "stack versions")) : null,
    failed,
  ];
}

function row(one, context, failed) {
  const out = one.withdrawn;
  return [
    [String(one.release), " ", one.served ? mark("published", "served") : out ? mark("rejected", "withdrawn") : null],
    one.by, el("span", { class: "nowrap" }, moment(one.at)),
    [one.why ? el("p", { class: "break" }, one.why) : null, one.changes?.length ? changes(one.changes) : soft(one.changes ? "none in the data" : "the first"),
      out ? el("p", { class: "break" }, `Withdrawn by ${out.by}, ${moment(out.at)}`, out.why ? `: ${out.why}` : "") : null,
      el("p", { class: "soft small break" }, code(one.digest))],
    one.losses.length ? losses(one.losses) : soft(TEXTS.none),
    out ? null : el("span", { class: "buttons" },
      one.served ? null : act("Roll back to it", ["rollback"], one, context, failed), act("Withdraw", ["withdraw"], one, context, failed)),
  ];
}

function act(label, step, one, { name, me, again }, failed) {
  const done = async () => {
    const now = await post(["configs", name, "releases", String(one.release), ...step], { body: {} });
    const served = now.config.release;
    say(served === null ? `The gallery has no entry of ${name}.` : `The gallery serves release ${served} of ${name}.`);
    await again();
  };
  const may = me.scopes.includes("publish") || me.scopes.includes("admin");
  const made = el("button", { type: "button", disabled: !may, "aria-label": `${label}: release ${one.release}`, on: { click: () => run(made, failed, done) } }, label);
  return made;
}
