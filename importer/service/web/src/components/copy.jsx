// Copies a text: a command, a digest, a line for a file of settings.

import { TEXTS } from "../text.js";
import { say } from "./toast.jsx";

export function CopyButton({ text, what, label = TEXTS.common.copy }) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    say(TEXTS.common.copied);
  };
  if (!navigator.clipboard) return null; // over plain HTTP from another machine there is none
  return <button type="button" class="quiet" aria-label={`${TEXTS.common.copy}: ${what}`} onClick={copy}>{label}</button>;
}
