// A person's word on the document as they see it, its release, and its validation.

import { post } from "./api.js";
import { code, el, moment, say } from "./dom.js";
import { run } from "./problem.js";
import { attend } from "./progress.js";

export function review(context) {
  const { found, name, me, again } = context;
  const note = el("textarea", { id: "note", rows: 2, maxlength: 4000 });
  const failed = el("div");
  const word = (action, done) => async () => {
    const text = note.value.trim();
    if (action === "reject" && !text) {
      note.setAttribute("aria-invalid", "true");
      note.focus();
      throw new Error("A rejection says why: write a note first.");
    }
    const body = { digest: found.digest, ...(text ? { note: text } : {}) };
    const now = await post(["configs", name, action], { body, match: found.etag });
    say(`${name} is ${now.state}${now.reason ? `: ${now.reason}` : ""}.`);
    await again();
    done?.();
  };
  const release = async () => {
    const text = note.value.trim();
    const body = { digest: found.digest, ...(text ? { note: text } : {}) };
    const now = await post(["configs", name, "releases"], { body, match: found.etag });
    say(`The gallery serves release ${now.release.release} of ${name}.`);
    await again();
  };
  const validate = async () => {
    const job = await post(["configs", name, "validate"], { body: {} });
    attend(document.getElementById("running"), job, context);
    say("The validation is asked for.");
  };
  const may = (scope) => me.scopes.includes(scope) || me.scopes.includes("admin");
  const button = (label, scope, kind, action) => {
    const made = el("button", { type: "button", class: kind, disabled: !may(scope), on: { click: () => run(made, failed, action) } }, label);
    return made;
  };
  const blocked = ["approve", "import", ...(found.state === "ready" ? ["publish"] : [])].filter((scope) => !may(scope));
  return el("section", { class: "review", "aria-label": "Review" },
    el("div", { class: "field" }, el("label", { for: "note" }, "Note"), note),
    el("p", { class: "buttons" },
      button("Approve", "approve", "main", word("approve")), button("Reject", "approve", "", word("reject")), button("Validate", "import", "", validate),
      found.state === "ready" ? button("Release", "publish", "main", release) : null),
    blocked.length ? el("p", { class: "soft small" }, `Your key may not ${blocked.join(" or ")}.`) : null,
    failed);
}

// Every word that was said, the newest first.
export function words(said) {
  return el("ul", { class: "plain" }, [...said].reverse().map((w) => el("li", { class: "break" },
    el("strong", {}, w.state), ` by ${w.by}, ${moment(w.at)}`, w.note ? `: ${w.note}` : "",
    w.digest ? el("div", { class: "soft small" }, "of ", code(w.digest)) : null)));
}
