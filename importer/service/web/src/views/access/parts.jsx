// A secret that is shown once, and a question before something ends.

import { useEffect, useRef } from "preact/hooks";
import { Action, CopyButton, Dialog, Failure, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.access;

export function Secret({ what, text, done }) {
  const head = useRef(null);
  useEffect(() => head.current.focus(), [text]);
  return (
    <div class="trouble asks" role="group" aria-label={what}>
      <p tabindex={-1} ref={head}><strong>{what}</strong>{" "}{T.once}</p>
      <p class="break"><code class="secret">{text}</code></p>
      <p class="buttons"><CopyButton text={text} what={what} /><button type="button" onClick={done}>{T.kept}</button></p>
    </div>
  );
}

export function Sure({ title, effect, yes, onYes, onClose }) {
  const act = useAction();
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{effect}</p>
      <p class="buttons"><Action act={act} name="yes" main label={yes} onAct={onYes} /></p>
      <Failure of={act} />
    </Dialog>
  );
}
