"""Sentences about the rungs of an exchange: what was compared, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text


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
        "served-otherwise": "the answer is not what the parsers read of its tokens",
        "other-draw": "the tokens of this answer are not shown",
        "streams-apart": "in pieces, its parsers read {different} of {of} streams otherwise",
        "streams-alike": "in pieces, its parsers read all {of} streams as they read the whole",
    },
}
