// The key of this tab: kept until the tab is closed, or until it is forgotten.

import { useRef } from "preact/hooks";
import { key } from "../api.js";
import { Title, say } from "../components/index.js";
import { go } from "../router.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";

const T = TEXTS.keys;

export function KeyForm({ done, wrong = false }) {
  return (
    <section>
      <Title>{wrong ? T.refused : T.needed}</Title>
      <p id="key-why">{T.why}<code>{T.command}</code>{T.stays}</p>
      <Asked done={done} wrong={wrong} />
    </section>
  );
}

function Asked({ done, wrong = false, told = "key-why" }) {
  const field = useRef(null);
  const submit = (event) => {
    event.preventDefault();
    key.set(field.current.value.trim());
    done();
  };
  return (
    <form class="line" onSubmit={submit}>
      <label for="key">{T.label}</label>
      <input type="password" id="key" name="key" autocomplete="off" required spellcheck="false" ref={field}
        aria-describedby={told} aria-invalid={wrong ? "true" : undefined} />
      <button class="main">{T.use}</button>
    </form>
  );
}

export function View() {
  const { me, again } = useView();
  if (me.name === null) return <KeyForm done={() => go(["documents"])} />;
  if (key.get() === null) {
    return <section><Title>{T.title}</Title><p id="key-why">{T.local}</p><Asked done={() => go(["documents"])} /></section>;
  }
  const forget = () => { key.forget(); say(T.forgotten); again(); };
  return (
    <section>
      <Title>{T.title}</Title>
      <p>{T.yours}<strong>{me.name}</strong>{T.may(me.scopes.join(", "))}</p>
      <button type="button" onClick={forget}>{T.forget}</button>
    </section>
  );
}
