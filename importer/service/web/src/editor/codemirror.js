// CodeMirror under the policy of the page. It lives in a shadow root: there its styles are constructed sheets, which
// style-src 'self' allows; in the document itself they would be a <style> element, which it does not.

import { autocompletion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, indentUnit } from "@codemirror/language";
import { diagnosticCount, lintGutter, lintKeymap, nextDiagnostic, previousDiagnostic, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { plain } from "../safe.js";
import { completions } from "./completion.js";
import { theme } from "./theme.js";

const ALSO_ODD = /[\u202a-\u202c\u2060-\u206f]/g; // beyond CodeMirror's own

// Puts an editor of a YAML text into the node. ``data`` are those of /v1/editor/{backend}, or null; ``written`` gets each
// new text. What it returns is the handle of a field: put, focus, mark, show, step, replace, end.
export function mount(node, { text, label, told, locked, data, written, save }) {
  const root = node.attachShadow({ mode: "open" });
  const view = new EditorView({ root, parent: root, state: EditorState.create({ doc: text, extensions: [
    lineNumbers(), lintGutter(), history(), drawSelection(), highlightActiveLine(), highlightActiveLineGutter(), bracketMatching(),
    highlightSelectionMatches(), highlightSpecialChars({ addSpecialChars: ALSO_ODD, render: odd }), indentUnit.of("  "), yaml(), theme,
    EditorView.lineWrapping,
    Prec.highest(keymap.of([{ key: "Escape", run: leavable }])), // before what an open list does with the key
    data ? autocompletion({ override: [completions(data)], icons: false }) : [],
    keymap.of([
      { key: "Mod-s", preventDefault: true, run: () => { save(); return true; } },
      { key: "Shift-F8", run: previousDiagnostic },
      ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab,
    ]),
    EditorState.readOnly.of(locked),
    EditorView.contentAttributes.of((one) => ({
      tabindex: "0", "aria-label": label, "aria-description": told, ...(locked ? { "aria-readonly": "true" } : {}),
      ...(diagnosticCount(one.state) ? { "aria-invalid": "true" } : {}),
    })),
    EditorView.updateListener.of((update) => {
      if (!update.docChanged) return;
      update.view.setTabFocusMode(false);
      written(update.state.doc.toString());
    }),
    EditorView.domEventHandlers({ blur: (_, one) => { one.setTabFocusMode(false); }, beforeinput: replaced }),
  ] }) });
  return {
    put: (whole) => {
      if (view.state.doc.toString() !== whole) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: whole } });
    },
    focus: () => view.focus(),
    mark: (errors, words) => view.dispatch(setDiagnostics(view.state, errors.map((error) => ({
      ...range(view.state.doc, error), severity: "error", message: plain(words(error)),
    })))),
    show: (error) => {
      const { from, to } = range(view.state.doc, error);
      view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    step: (back) => { (back ? previousDiagnostic : nextDiagnostic)(view); view.focus(); },
    replace: (error, word) => {
      view.dispatch({ changes: { ...range(view.state.doc, error), insert: word } });
      view.focus();
    },
    end: () => view.destroy(),
  };
}

// After Escape the next Tab leaves the field, however late it comes; writing on ends that.
function leavable(view) {
  view.setTabFocusMode(true);
  return false;
}

// A browser that replaces a selection itself keeps its looks as a style attribute, which the policy forbids.
function replaced(event, view) {
  if (event.inputType !== "insertText" || event.isComposing || view.state.readOnly || view.state.selection.main.empty) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(event.data ?? ""), { userEvent: "input.type", scrollIntoView: true });
  return true;
}

// A character that cannot be seen, or that reorders others, is spelled out, as in the rest of the page.
function odd(code) {
  const node = document.createElement("span");
  node.className = "cm-specialChar";
  node.textContent = plain(String.fromCharCode(code));
  return node;
}

// Where an error of the server's stands: lines and columns are from 1, and a column counts characters, not UTF-16.
function range(doc, { line, column, length }) {
  const row = doc.line(Math.min(Math.max(line ?? 1, 1), doc.lines)), letters = [...row.text], first = Math.max(0, (column ?? 1) - 1);
  const from = Math.min(row.to, row.from + letters.slice(0, first).join("").length);
  return { from, to: Math.min(row.to, from + letters.slice(first, first + (length ?? 1)).join("").length) };
}
