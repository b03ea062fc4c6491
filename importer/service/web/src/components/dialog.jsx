// A question over the page: Escape closes it, and the focus returns to where it was.

import { useEffect, useRef } from "preact/hooks";
import { TEXTS } from "../text.js";

export function Dialog({ title, onClose, children }) {
  const node = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    node.current.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={node} aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
      <p class="buttons"><button type="button" onClick={() => node.current.close()}>{TEXTS.common.close}</button></p>
    </dialog>
  );
}
