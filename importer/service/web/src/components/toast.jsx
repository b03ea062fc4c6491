// What a screen reader hears, and others see for a while: said once the page has it, so that the next act is on what was
// said. What is said of a document goes when one leaves it.

import { useEffect, useState } from "preact/hooks";
import { here } from "../router.js";

const LONG = 6000; // milliseconds
let tell = () => {};
let timer;
let owner = null;

// The document that is shown, or null.
const shown = () => {
  const { parts: [page, name] } = here();
  return page === "documents" && name ? name : null;
};

export function say(text) {
  clearTimeout(timer);
  owner = shown();
  tell(text);
  timer = setTimeout(() => tell(""), LONG);
}

export function Toast() {
  const [text, set] = useState("");
  useEffect(() => {
    tell = set;
    const left = () => { if (owner !== null && owner !== shown()) set(""); };
    addEventListener("hashchange", left);
    return () => removeEventListener("hashchange", left);
  }, []);
  return <div id="said" role="status" aria-live="polite">{text}</div>;
}
