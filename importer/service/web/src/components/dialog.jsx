// A question over the page. The browser keeps the focus in it and closes it by Escape; then the focus returns.

import { useEffect, useRef } from "preact/hooks";
import { TEXTS } from "../text.js";

export function Dialog({ title, onClose, children }) {
  const node = useRef(null);
  useEffect(() => {
    const before = document.activeElement, dialog = node.current;
    dialog.showModal();
    return () => {
      dialog.close(); // while it is open nothing else can have the focus
      if (before?.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog ref={node} aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
      <p class="buttons"><button type="button" onClick={() => node.current.close()}>{TEXTS.common.close}</button></p>
    </dialog>
  );
}
