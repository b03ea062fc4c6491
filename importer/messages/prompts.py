"""Sentences about prompts of engines beside those of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


def _excerpts(what: str) -> Text:
    def text(fields: Mapping[str, Any]) -> str:
        where = f"case {fields['case']}: {what.format(**fields)}"
        if fields.get("ours") is None:
            return where
        return f"{where}; expected {fields['ours']!r}, rendered {fields['theirs']!r}"

    text.__doc__ = "case {case}: " + what + "; expected {ours}, rendered {theirs}"
    return text


def _lost(fields: Mapping[str, Any]) -> str:
    """{engine} loses or refuses part of {count} of {of} conversations: {first}"""
    count = "one" if fields["count"] == 1 else str(fields["count"])
    return f"{fields['engine']} loses or refuses part of {count} of {fields['of']} conversations: {fields['first']}"


TEXTS: dict[str, dict[str, Text]] = {
    "PromptDifference": {
        "refused": "case {case}: refused with {words}",
        "dropped": _excerpts("{place} is absent from the prompt"),
        "parts-printed": _excerpts("the parts of {place} are printed as data"),
        "moved": _excerpts("the image does not stand between the texts of {place}"),
        "other": _excerpts("the prompt differs at {place}"),
        "value-form": _excerpts("a value at {place} is printed in another form"),
        "switched": "case {case}: the engine sets {variable} to {value} by itself",
        "key-order": _excerpts("keys at {place} stand in another order"),
        "whitespace": _excerpts("white space differs at {place}"),
        "only-engine": "case {case}: transformers refuses the conversation, the engine renders it",
    },
    "PromptVerdict": {
        "format": "{engine} with contents {form} renders {equal} of {of} conversations as transformers does; "
        "with its own choice {lost} lose text",
        "differ": "{engine} renders {equal} of {of} conversations as transformers does, and loses no text; {first}",
        "lost": _lost,
        "not-started": "the prompts of the frontend are not known: {problem}",
        "own-code": "the frontend renders {model_type} by its own code, not by a template",
        "other-prompt": "{engine} renders the prompt otherwise: {first}",
    },
}
