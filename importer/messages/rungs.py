"""Sentences about the rungs of an exchange: what was compared, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


def _served_otherwise(fields: Mapping[str, Any]) -> str:

    change = f": {fields['change']}" if fields.get("change") else ""
    return f"the answer is not what the parsers read of its tokens{change}"


TEXTS: dict[str, dict[str, Text]] = {
    "FactReason": {
        "rendered": "the template renders it",
        "refuses": "the template refuses it: {says}",
        "no-template-here": "no template is at hand",
        "counted-alike": "the engine counts {tokens} tokens, as the tokenizer does in the template's text",
        "counted-otherwise": "the engine counts {engine} tokens, and the template's text has {template}",
        "not-counted": "the tokens of the prompt are not known",
        "written": "the model writes: {text}",
        "written-otherwise": "no parser that reads the template's form reads what the model writes: {text}",
        "not-proved": "the form of the template is not proved",
        "read-right": "asked without the server, the parsers in use read it right",
        "read-right-by": "asked without the server, {parser} reads it right and the parser in use does not",
        "read-wrong": "asked without the server, the parsers in use do not read it right",
        "not-read": "the parsers could not be asked without the server",
        "served-as-read": "the answer is what the parsers read of its tokens",
        "served-otherwise": _served_otherwise,
        "other-draw": "the tokens of this answer are not shown",
        "streams-apart": "in pieces, its parsers read {different} of {of} streams otherwise",
        "streams-alike": "in pieces, its parsers read all {of} streams as they read the whole",
    },
    "AnswerChange": {
        "thoughts-left-out": "thoughts are left out",
        "thoughts-in-text": "thoughts stand in the content",
        "text-in-thoughts": "the content stands among the thoughts",
        "calls-left-out": "calls are left out",
        "calls-in-text": "calls stand in the content",
        "calls-added": "of {own} calls it makes {came}",
        "other-name": "for the tool {own!r} it names {came!r}",
        "other-arguments": "for the arguments {own!r} it has {came!r}",
        "other-end": "for the finish_reason {own!r} it has {came!r}",
        "part-left-out": "the {part} is left out",
        "begun-again": "the {part} begins again in the middle",
        "repeated": "the {part} comes twice",
        "pieces-repeated": "pieces of the {part} come twice",
        "all-in-each-piece": "each piece of the {part} has all that came before it",
        "end-lost": "the end of the {part} is lost",
        "beginning-lost": "the beginning of the {part} is lost",
        "letters-broken": "letters of the {part} are broken",
        "letters-lost": "letters beyond ASCII are lost from the {part}",
        "latin-1": "the {part} is UTF-8 that was read as Latin-1",
        "escaped": "the {part} comes with escapes: {came!r}",
        "html-escaped": "the {part} is escaped as for a web page",
        "spaces-changed": "white space in the {part} is changed",
        "text-added": "something is added to the {part}: {came!r}",
        "field-renamed": "it writes {came} for the field {own}",
        "words-changed": "the {part} has other words: {came!r} in place of {own!r}",
    },
}
