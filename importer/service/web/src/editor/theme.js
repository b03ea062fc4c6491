// Looks of the editor: the tokens of the page, that a shadow root inherits, so that dark and print follow.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { KINDS } from "./highlight.js";

const MONO = "ui-monospace, 'Cascadia Mono', Menlo, Consolas, monospace";

const colours = HighlightStyle.define(KINDS.map(({ tag, colour }) => ({ tag, color: `var(--${colour})` })));

const looks = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--ground)", fontSize: ".84rem", maxHeight: "40rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: MONO, lineHeight: "1.5", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", padding: ".6rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sheet)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--sheet)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--none-ground)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--sheet)", color: "var(--ink)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: MONO, maxHeight: "14rem" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--link)", color: "var(--ground)" },
  ".cm-completionDetail": { color: "inherit", opacity: ".85" },
  ".cm-completionInfo": { maxWidth: "22rem", whiteSpace: "pre-wrap", overflowWrap: "anywhere" },
  ".cm-diagnostic": { borderLeftColor: "var(--fail)", whiteSpace: "pre-wrap", overflowWrap: "anywhere", maxWidth: "30rem" },
  ".cm-lintRange-error": { backgroundImage: "none", borderBottom: "2px dotted var(--fail)" },
  ".cm-lintRange-active": { backgroundColor: "var(--fail-ground)" },
  ".cm-specialChar": { color: "var(--fail)" },
  ".cm-button, .cm-textfield": { background: "var(--ground)", color: "var(--ink)", border: "1px solid var(--none)", borderRadius: ".25rem" },
  "@media (max-width: 46rem)": { "&": { fontSize: "1rem" } },
  "@media print": { "&": { maxHeight: "none" }, ".cm-scroller": { overflow: "visible" } },
});

export const theme = [looks, syntaxHighlighting(colours)];
