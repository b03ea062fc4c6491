// What a screen reader hears, and others see for a while.

import { useEffect, useState } from "preact/hooks";

const LONG = 6000; // milliseconds
let tell = () => {};
let timer;

export function say(text) {
  clearTimeout(timer);
  tell(text);
  timer = setTimeout(() => tell(""), LONG);
}

export function Toast() {
  const [text, set] = useState("");
  useEffect(() => { tell = set; }, []);
  return <div id="said" role="status" aria-live="polite">{text}</div>;
}
