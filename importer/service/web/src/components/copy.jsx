// Copies a text: a command, a digest, a line for a file of settings.

import { TEXTS } from "../text.js";
import { say } from "./toast.jsx";

const SHOWN = 7; // characters

export function CopyButton({ text, what, label = TEXTS.common.copy }) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    say(TEXTS.common.copied);
  };
  if (!navigator.clipboard) return null; // over plain HTTP from another machine there is none
  return <button type="button" class="quiet" aria-label={`${TEXTS.common.copy}: ${what}`} onClick={copy}>{label}</button>;
}

// The first characters of a digest or a commit, as people compare them; the button copies all of it.
export const Short = ({ text, what }) => (
  <span class="nowrap"><code title={text}>{text.replace(/^\w+:/, "").slice(0, SHOWN)}</code>{" "}<CopyButton text={text} what={what} /></span>
);
