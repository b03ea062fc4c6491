// CodeMirror under the policy of the page. It lives in a shadow root: there its styles are constructed sheets, which
// style-src 'self' allows; in the document itself they would be a <style> element, which it does not.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { defaultHighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";

// Puts an editor of a YAML text into the node, and returns its view; ``label`` is its accessible name.
export function mount(node, text, label) {
  const root = node.attachShadow({ mode: "open" });
  const extensions = [
    lineNumbers(), history(), keymap.of([...defaultKeymap, ...historyKeymap]), yaml(), syntaxHighlighting(defaultHighlightStyle),
    EditorView.contentAttributes.of({ "aria-label": label }),
  ];
  return new EditorView({ state: EditorState.create({ doc: text, extensions }), root, parent: root });
}
