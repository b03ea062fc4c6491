"""Sentences about decisions: why a value was chosen, lost or left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text

FIELDS = {"tool_parser": ("tool parser", "call tools"), "reasoning_parser": ("reasoning parser", "reason")}
MODES = {"thinking": "with thinking", "non_thinking": "without thinking"}


def _forbidden(told: Mapping[str, Any]) -> str:
    says = f"{told['engine']} forces another format on calls with this parser: it forbids {told['words']}"
    free = ", ".join(told["free"])
    return f"{says}; free of that, and reading the template too: {free}" if free else says


def _takes_another(told: Mapping[str, Any]) -> str:
    return (
        f"{told['engine']} chooses by itself and takes {told['parser'] or 'none'} for this template, "
        "so a validation will show what it leaves unread"
    )


def _nothing_known(told: Mapping[str, Any]) -> str:
    noun, verb = FIELDS[told["field"]]
    nothing = f"nothing known says how this model would {verb}, so no {noun} is set"
    return "; ".join((*told["notes"], nothing))


def _sets(told: Mapping[str, Any]) -> str:
    chosen = "which way this model answers is not known"
    if told["mode"] is not None:
        chosen = f"the document's is {MODES[told['mode']]}"
    return f"{told['source']} has values of their own for each way of answering; {chosen}"


def _templates(told: Mapping[str, Any]) -> str:
    names = " or ".join(told["templates"])
    return f"a chat template of ours ({names}) would offer it tools in words of ours"


TEXTS: dict[str, dict[str, Text]] = {
    "WeighReason": {
        "set-by-user": "set by the user",
        "user-decides": "the user decides",
        "stands-beside": "{words} stands beside it",
        "heard-first": "{source} is heard first",
        "lost": "{why}; it said: {said}",
    },
    "ParserReason": {
        "base-model": "a base model completes text, so it gets no parser",
        "guard-model": "a guard model answers with a verdict",
        "ocr-model": "an OCR model answers with text",
        "translation-model": "a translation model answers with text",
        "heard-later": "heard later",
        "user-refuted": "the proof refutes it: {problem}",
        "proof-agrees": "the proof agrees",
        "not-registered": lambda told: f"{told['engine']} has no {FIELDS[told['field']][0]} of that name",
        "known-to-have-none": "{source} knows this family to have none",
        "read-not-trained": "a template that {parsers} can read does not show that the model was trained "
        "for it",
        "refuted": "refuted: {problem}",
        "none-reads": "none of {engine}'s parsers reads what the template writes",
        "only-liberal": "these read almost anything that looks like a call, and nothing else speaks for one "
        "of them",
        "forbidden": _forbidden,
        "taken-by-itself": "{engine} takes it by itself",
        "takes-another": _takes_another,
    },
    "Unavailable": {
        "nothing-known": _nothing_known,
        "nothing-rendered": "not proved: there was nothing to render",
        "not-run-here": "not proved: the importer does not run {engine}, so its parsers were not asked",
        "not-installed": "not proved: {engine} is not installed, so its own parsers did not read the "
        "template",
    },
    "ForeignReason": {
        "tools-given": "the user gives it tools with a chat template; it said: {said}",
        "of-a-file": "read from a chat template that the user gave, which shows nothing about the model",
        "of-ours": "read from a chat template of ours ({template}), which shows nothing about the model",
        "would-offer": _templates,
    },
    "PinReason": {
        "thought-unsaid": "the template does not think by default, and {parser} takes an answer for a "
        "thought unless the request says so, so the default is said here",
    },
    "SamplingReason": {
        "for-other-answers": lambda told: f"{told['reason']}, for answers {MODES[told['mode']]}",
        "both-ways-differ": "it differs with and without thinking, and which way this model answers is not "
        "known",
        "sets-of-both-ways": _sets,
        "fills-context": "an answer may fill the context, and a limit would end every answer",
        "cut-by-server": "{engine} ends every answer after {tokens} tokens unless told otherwise",
    },
}
