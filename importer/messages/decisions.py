"""Sentences about decisions: why a value was chosen, lost or left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


NOUNS = {"tool_parser": ("tool parser", "call tools"), "reasoning_parser": ("reasoning parser", "reason")}
LIMITS = "the parser hf rejects strict tools, a required or named tool choice and parallel_tool_calls=false"
MODES = {"thinking": "with thinking", "non_thinking": "without thinking"}


def _forbidden(fields: Mapping[str, Any]) -> str:
    says = f"{fields['engine']} forces another format on calls with this parser: it forbids {fields['words']}"
    free = ", ".join(fields["free"])
    return f"{says}; free of that, and reading the template too: {free}" if free else says


def _takes_another(fields: Mapping[str, Any]) -> str:
    return (
        f"{fields['engine']} chooses by itself and takes {fields['parser'] or 'none'} for this template, "
        "so a validation will show what it leaves unread"
    )


def _nothing_known(fields: Mapping[str, Any]) -> str:
    noun, verb = NOUNS[fields["field"]]
    nothing = f"nothing known says how this model would {verb}, so no {noun} is set"
    return "; ".join((*fields["notes"], nothing))


def _elsewhere(fields: Mapping[str, Any]) -> str:
    noun = NOUNS[fields["field"]][0]
    return (
        f"the {fields['frontend'].title()} frontend of {fields['engine']} has no {noun} {fields['parser']}; "
        f"the {fields['other'].title()} frontend has it"
    )


def _sets(fields: Mapping[str, Any]) -> str:
    chosen = "which way this model answers is not known"
    if fields["mode"] is not None:
        chosen = f"the document's is {MODES[fields['mode']]}"
    return f"{fields['source']} has values of their own for each way of answering; {chosen}"


def _templates(fields: Mapping[str, Any]) -> str:
    names = " or ".join(fields["templates"])
    return f"a chat template of ours ({names}) would offer it tools in words of ours"


DECIDE: dict[str, dict[str, Text]] = {
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
        "no-text": "it returns numbers, no text",
        "transcript": "it returns the text of a recording",
        "heard-later": "heard later",
        "user-refuted": "the proof refutes it: {problem}",
        "proof-agrees": "the proof agrees",
        "not-registered": lambda fields: (
            f"{fields['engine']} has no {NOUNS[fields['field']][0]} of that name"
        ),
        "known-to-have-none": "{source} knows this family to have none",
        "read-not-trained": "a template that {parsers} can read does not show that the model was trained "
        "for it",
        "refuted": "refuted: {problem}",
        "none-reads": "none of {engine}'s parsers reads what the template writes",
        "beaten": "{problem}",
        "same-effect": "{parsers:and} cannot be told apart from it: whole, streamed and in the grammar they "
        "read the same",
        "tools-unseen": "the template never shows the tools, and no other evidence names a parser",
        "only-liberal": "these read almost anything that looks like a call, and nothing else speaks for one "
        "of them",
        "unsettled": "the template writes no reasoning of its own, and a guessed block does not refute "
        "{parser}: {problem}",
        "forbidden": _forbidden,
        "thinks-opened": "the generation prompt opens a reasoning block with {marker}, so the model thinks",
        "thinks-switched": "the template switches reasoning by {switch}, so the model thinks",
        "loses-plain": "the template shows no reasoning, and its plain answer is lost: {problem}",
        "taken-by-itself": "{engine} takes it by itself",
        "takes-another": _takes_another,
    },
    "DerivedReason": {
        "derived": "a response template derived from the chat template makes hf read every case; the document holds it",
        "limits": LIMITS,
    },
    "PairReason": {
        "with-tools": "{engine} starts with hf for calls and reasoning, or for neither",
        "not-beside": "{engine} refuses hf beside another parser, and {parser} is set",
    },
    "FrontendReason": {
        "built-in": "the Rust frontend of {engine} reads this model by code of its own, and rejects every parser",
        "elsewhere": _elsewhere,
        "guessed": "the Rust frontend of {engine} takes {parser} by the model's name; "
        "vllm serve drops the option against it",
        "one-for-both": "{parser} reads calls and reasoning in one, and {engine} starts with it for both",
        "not-one-for-both": "{parser} reads calls and reasoning in one, and {tool_parser} reads the calls",
        "other-version": "proved by the parsers of {proved}; the document is for {version}",
    },
    "Unavailable": {
        "nothing-known": _nothing_known,
        "nothing-rendered": "not proved: there was nothing to render",
        "not-run-here": "not proved: the importer does not run {engine}, so its parsers were not asked",
        "not-known": "not proved: {engine} {version} is installed, and this importer does not know its parsers",
        "not-installed": "not proved: {engine} is not installed, so its own parsers did not read the "
        "template",
    },
    "ForeignReason": {
        "tools-given": "the user gives it tools with a chat template; it said: {said}",
        "of-a-file": "read from a chat template that the user gave, which shows nothing about the model",
        "of-ours": "read from a chat template of ours ({template}), which shows nothing about the model",
        "own-calls": "the calls are the model's own, and the words that offer the tools are ours",
        "would-offer": _templates,
    },
    "PinReason": {
        "default-unsaid": "{parser} reads every answer only where the template's own default is named, so the "
        "document names it",
    },
    "SamplingReason": {
        "for-other-answers": lambda fields: f"{fields['reason']}, for answers {MODES[fields['mode']]}",
        "both-ways-differ": "it differs with and without thinking, and which way this model answers is not "
        "known",
        "sets-of-both-ways": _sets,
        "fills-context": "an answer may fill the context, and a limit would end every answer",
        "cut-by-server": "{engine} ends every answer after {tokens} tokens unless told otherwise",
    },
}


FIELDS = {"tool_parser": "tool parsers", "reasoning_parser": "reasoning parsers"}


def _read(fields: Mapping[str, Any]) -> str:
    who = ", ".join(fields["parsers"]) or "none"
    more, vocabulary = " …" if fields["more"] else "", ", vocabulary assumed" if fields["assumed"] else ""
    return (
        f"{fields['count']} of {fields['of']} {FIELDS[fields['field']]} of {fields['engine']} {fields['version']} read "
        f"what the template writes: {who}{more}{vocabulary}"
    )


def _calls(number: int) -> str:
    return {0: "no call", 1: "one call"}.get(number, f"{number} calls")


def _splits(fields: Mapping[str, Any]) -> str:
    where = f"cut after token {fields['split']}" if fields["split"] else "token by token"
    return f"{fields['case']}: {fields['different']} of {fields['count']} splits differ, first {where}"


def _derived(fields: Mapping[str, Any]) -> str:
    of = f"{fields['engine']} {fields['frontend'] or ''}".strip()
    return f"proved on {of} and transformers: {', '.join(fields['fields'])} hf, {fields['cases']} cases"


PROOF: dict[str, dict[str, Text]] = {
    "JudgeReason": {
        "error": "{words}",
        "accident": "{words}",
        "other-count": lambda fields: f"read {_calls(fields['read'])} where {_calls(fields['stood'])} stood",
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
    "CompletenessReason": {
        "incomplete": "{case}: {problem}; {other} reads it",
        "loses-stream": "{case}: lost token by token; {other} loses less",
        "reads-unmarked": "it reads a call without its markers too",
    },
    "TemplateReason": {
        "proved": _derived,
        "limits": LIMITS,
        "not-derived": "its chat template shows no format that a response template could read",
        "incomplete": "no derived response template reads every case; {case}: {problem}",
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


TEMPLATE: dict[str, dict[str, Text]] = {
    "TemplateProblem": {
        "answer-absent": "the answer is not in what the template writes",
        "arguments-absent": "arguments are not in what the template writes",
        "arguments-garbled": "the template writes the argument so that nobody could read it back",
        "block-closed": "the prompt closes the block before anything is written",
        "call-absent": "the call is not in what the template writes",
        "message-printed": "the template prints the message itself",
        "reasoning-dropped": "reasoning beside a call is dropped",
        "refused": "{words}",
        "text-dropped": "text beside the call is dropped",
    },
    "RefusalReason": {
        "length": "writes more than {limit:,} characters",
        "memory": "needs more memory than a rendering may take",
        "raised": "{words}",
        "time": "took more than {seconds:g} s of processor time",
    },
    "OverrideReason": {
        "characters": "it holds characters that no file of text has",
        "empty": "the file is empty",
        "no-name": "the repository has no template of that name; it has {known}",
        "no-file": "file not found; known names: {known}",
        "not-text": "the file is not UTF-8 text",
        "nothing-to-dress": "the model has no chat template of its own whose turns could be kept; "
        "give a file",
        "too-long": "the file holds more than {limit:,} characters",
        "unreadable": "the file cannot be read ({problem})",
    },
    "OwnCallsReason": {
        "no-calls": "the model's own template writes no call",
        "hidden": "the model's own template does not show its system turn",
    },
    "DressReason": {
        "changed": "it would change what the model's own template writes without tools",
        "lost": "the model's own template does not show all that it is given, {text!r} is lost",
        "refused": "the model's own template does not go with it: {words}",
    },
}

TEXTS: dict[str, dict[str, Text]] = {**DECIDE, **PROOF, **TEMPLATE}
