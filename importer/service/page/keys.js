// The key of this tab: kept until the tab is closed, or until it is forgotten.

import { key } from "./api.js";
import { el, say } from "./dom.js";

export function form(done, wrong = false) {
  const field = el("input", { type: "password", id: "key", name: "key", autocomplete: "off", required: true, spellcheck: "false",
    "aria-describedby": "key-why", "aria-invalid": wrong ? "true" : null });
  const submit = (event) => {
    event.preventDefault();
    key.set(field.value.trim());
    done();
  };
  return el("section", {},
    el("h1", { tabindex: -1 }, wrong ? "This key is not accepted" : "An API key is needed"),
    el("p", { id: "key-why" }, "This server answers only with a key. Ask its operator, who makes one with ",
      el("code", {}, "importer api-keys create NAME"), ". It stays in this tab and is forgotten with it."),
    el("form", { class: "line", on: { submit } }, el("label", { for: "key" }, "API key"), field,
      el("button", { class: "main" }, "Use this key")));
}

export function show({ me, again }) {
  if (me.name === null || key.get() === null) {
    const home = () => { if (location.hash.startsWith("#/key")) location.hash = "#/documents"; else again(); };
    if (me.name === null) return form(home);
    return el("section", {}, el("h1", { tabindex: -1 }, "API key"),
      el("p", {}, "On this machine itself no key is needed. With one you act under its name."), form(home).lastChild);
  }
  const forget = () => { key.forget(); say("The key is forgotten."); again(); };
  return el("section", {}, el("h1", { tabindex: -1 }, "API key"),
    el("p", {}, "You use the key of ", el("strong", {}, me.name), ", which may: ", me.scopes.join(", "), "."),
    el("button", { type: "button", on: { click: forget } }, "Forget it"));
}
