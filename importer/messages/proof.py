"""Sentences about proofs: what an engine's parsers read of a template, and what they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text

FIELDS = {"tool_parser": "tool parsers", "reasoning_parser": "reasoning parsers"}


def _read(told: Mapping[str, Any]) -> str:
    who = ", ".join(told["parsers"]) or "none"
    more, vocabulary = " …" if told["more"] else "", ", vocabulary assumed" if told["assumed"] else ""
    return (
        f"{told['count']} of {told['of']} {FIELDS[told['field']]} of {told['engine']} {told['version']} read "
        f"what the template writes: {who}{more}{vocabulary}"
    )


def _calls(number: int) -> str:
    return {0: "no call", 1: "one call"}.get(number, f"{number} calls")


def _splits(told: Mapping[str, Any]) -> str:
    where = f"cut after token {told['split']}" if told["split"] else "token by token"
    return f"{told['case']}: {told['different']} of {told['count']} splits differ, first {where}"


TEXTS: dict[str, dict[str, Text]] = {
    "JudgeReason": {
        "error": "{words}",
        "accident": "{words}",
        "other-count": lambda told: f"read {_calls(told['read'])} where {_calls(told['stood'])} stood",
        "no-answer": "did not return the answer as content",
        "no-reasoning": "read no reasoning",
        "other-reasoning": "read the reasoning {got}, not {want}",
        "no-content": "left no content",
        "other-content": "left the content {got}, not {want}",
        "other-name": "read the name {got}, not {want}",
        "not-json": "returned arguments that are no JSON: {got}",
        "not-an-object": "returned arguments that are no object",
        "lost-argument": "lost the argument {name}",
        "other-value": "returned {name} = {got}, not {want}",
        "invented-argument": "invented the argument {name}",
    },
    "ProofReason": {
        "read": _read,
        "not-proved": "not proved: {why}",
        "nothing-rendered": "there was nothing to render",
        "no-calls": "the template renders no tool calls",
        "no-thinking": "the template renders no reasoning",
        "own-renderer": "{engine} renders this model by its own code (tokenizer mode {mode}), not by a "
        "template",
        "engine-failed": "{problem}",
        "case": "{case}: {problem}",
        "whole-only": "whole-only ({cases:;})",
        "not-replayed": "{case}: not replayed, {words}",
        "splits-differ": _splits,
        "recorded": "{text}",
    },
}
