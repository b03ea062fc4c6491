// Buttons that ask the server for something: once at a time, and a failure is told beside them.

import { useRef, useState } from "preact/hooks";
import { Problem } from "./problem.jsx";

// ``const act = useAction()``: buttons with the same one share the place of its failure, <Failure of={act} />.
export function useAction() {
  const [state, set] = useState({ busy: null, error: null });
  const running = useRef(false);
  const run = async (name, action) => {
    if (running.current) return;
    running.current = true;
    set({ busy: name, error: null });
    try {
      await action();
      set({ busy: null, error: null });
    } catch (error) {
      set({ busy: null, error: error.name === "AbortError" ? null : error });
    } finally {
      running.current = false;
    }
  };
  const clear = () => { if (!running.current) set({ busy: null, error: null }); };
  return { ...state, run, clear };
}

// aria-disabled while it runs, so that the focus stays on it; disabled where it may not be pressed at all.
export function Action({ act, name, onAct, label, main = false, disabled = false, told, type = "button" }) {
  const busy = act.busy === name;
  const click = onAct && (() => act.run(name, onAct));
  return (
    <button type={type} class={main ? "main" : undefined} disabled={disabled} aria-disabled={busy ? "true" : undefined}
      aria-label={told} onClick={click}>{label}</button>
  );
}

export const Failure = ({ of: { error } }) => <div>{error ? <Problem error={error} /> : null}</div>;
