"""Sentences about the way in: what of a request a chat template loses, and who is hurt by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text

# A field of a request, and what its loss does.
FIELDS: Mapping[str, tuple[str, str]] = {
    "system": ("the system turn", "instructions of the operator have no effect"),
    "developer": ("the turn of a developer", "its instructions have no effect"),
    "role": ("the role of a turn", "the model takes its own words for the user's"),
    "later-system": ("a later system turn", "its instructions have no effect"),
    "system-part": ("a second text of the system turn", "its instructions have no effect"),
    "user": ("the text of the user", "the model answers another question"),
    "second-user": ("a second question in a row", "the model answers one of them"),
    "user-part": ("a second text of one question", "the model answers another question"),
    "answer": ("an earlier answer", "the model forgets its own words"),
    "answer-part": ("a second text of an earlier answer", "the model forgets its own words"),
    "words-beside-call": ("the text beside a call", "the model forgets its own words"),
    "reasoning": ("the reasoning before a call", "the model plans again after each result"),
    "image": ("an image", "the model answers without it"),
    "tool-name": ("the name of a tool", "the model cannot call it"),
    "tool-description": ("the description of a tool", "the model guesses its purpose"),
    "parameter": ("a parameter of a tool", "the model cannot set it"),
    "parameter-description": ("the description of a parameter", "the model guesses its meaning"),
    "enum": ("the permitted values of a parameter", "the model invents values"),
    "nested-parameter": ("a property inside an object", "the model invents names"),
    "nested-description": ("the description of a property", "the model guesses its meaning"),
    "required": ("the list of required parameters", "the model leaves some out"),
    "type": ("the type of a parameter", "the model guesses it"),
    "call": ("an earlier call", "the model cannot match the results"),
    "argument-name": ("the name of an argument in an earlier call", "the model repeats the fault"),
    "argument": ("an argument of an earlier call", "the model repeats the fault"),
    "nested-argument": ("an object in an earlier call", "the model repeats the fault"),
    "number": ("a number in an earlier call", "the model repeats the fault"),
    "boolean": ("a boolean in an earlier call", "the model repeats the fault"),
    "null": ("a null in an earlier call", "the model repeats the fault"),
    "empty": ("an empty value in an earlier call", "the model repeats the fault"),
    "result": ("the result of a tool", "the model answers without it"),
    "result-part": ("a second text of one result", "the model answers without it"),
}
# Where a request has a trait; see ``Trait``.
TRAITS: Mapping[str, str] = {
    "no-lead": "without a system turn",
    "system": "beside a system turn",
    "developer": "beside a developer's turn",
    "first-turn": "in a first turn",
    "earlier-turns": "after earlier turns",
    "earlier-calls": "after earlier calls",
    "hundreds-of-turns": "in hundreds of turns",
    "question-last": "before any result",
    "result-last": "beside a result",
    "two-calls": "beside two calls",
    "two-rounds": "in a second round of calls",
    "hundreds-of-calls": "in hundreds of calls",
    "only-calls": "without words beside calls",
    "words-beside-calls": "where calls have words beside them",
    "no-reasoning": "without reasoning",
    "reasoning": "beside reasoning",
    "arguments": "where calls have arguments",
    "no-arguments": "where calls have no arguments",
    "no-names": "where speakers have no names",
    "names": "where speakers have names",
    "results-named": "where results have names",
    "results-unnamed": "where results have no names",
    "no-tools": "without tools",
    "tools": "beside tools",
    "described": "where tools have descriptions",
    "no-description": "where a tool has no description",
    "null-description": "where the description of a tool is null",
    "parameters": "where tools have parameters",
    "no-parameters": "where a tool has no parameters",
    "null-parameters": "where the parameters of a tool are null",
    "no-properties": "where the parameters of a tool have no properties",
    "no-required": "where a tool has no list of required parameters",
    "nested": "where a parameter holds an object",
    "choices": "where a parameter has permitted values",
    "defaults": "where a parameter has a default",
    "tool-template": "by the repository's template for tools",
}
HIDDEN = {
    "lost": "the chat template never shows the tools to the model",
    "refused": "the chat template refuses requests with tools",
    "broken": "no request can be rendered with the chat template",
    "none": "the chat template has no place for tools",
}


def _nouns(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of one field or several, and the effect of the first."""
    field = fields["field"]
    names = [str(one) for one in field] if isinstance(field, tuple) else [str(field)]
    known = [FIELDS[name] for name in names if name in FIELDS]
    if not known:
        return "a request", "the model answers another one"
    return ", ".join(noun for noun, _ in known), known[0][1]


def _where(fields: Mapping[str, Any]) -> str:
    """Return the traits of the requests that are meant; nothing where all of them are."""
    traits = [TRAITS[str(trait)] for trait in fields.get("shape", ())]
    return f" {' and '.join(traits)}" if traits else ""


def _field(verb: str) -> Text:
    """Return a text: the fields, {field} of the request, then ``verb`` and the effect."""

    def text(fields: Mapping[str, Any]) -> str:
        nouns, effect = _nouns(fields)
        return f"{nouns} {verb}{_where(fields)}: {effect}"

    text.__doc__ = "{field} " + verb
    return text


def _refused(verb: str) -> Text:
    """Return a text: the fields, ``verb``, and the template's own words."""

    def text(fields: Mapping[str, Any]) -> str:
        return f"{_nouns(fields)[0]} {verb}{_where(fields)}: {fields['words']}"

    text.__doc__ = "{field} " + verb + ": {words}"
    return text


def _hidden(fields: Mapping[str, Any]) -> str:
    """{tools}, so {parser} has no call to read."""
    return f"{HIDDEN[fields['tools']]}, so {fields['parser']} has no call to read"


def _sometimes(fields: Mapping[str, Any]) -> str:
    """The chat template shows the tools only with or without a system turn ({with_system})."""
    beside = "with" if fields["with_system"] else "without"
    return f"the chat template shows the tools only in requests {beside} a system turn"


def _offer(fields: Mapping[str, Any]) -> str:
    """Return the names of {templates} and the {files} of {source}."""
    ours, files = fields["templates"], fields["files"]
    parts = [f"the template {name}" for name in ours if name.startswith("repository:")]
    parts += [f"the file {path} of {fields['source']}" for path in files]
    parts += [f"the template {name}" for name in ours if not name.startswith("repository:")]
    return f"{' or '.join(parts)} would show them"


TEXTS: dict[str, dict[str, Text]] = {
    "WayInReason": {
        "checked": "{checked} nonces were looked for in rendered prompts, with {findings} findings",
    },
    "WayInEffect": {
        "tools-hidden": _hidden,
        "tools-sometimes": _sometimes,
        "tools-off": "the chat template never shows tools, and nothing else names {parser}, so tools are off",
        "template-offered": _offer,
        "loses": "in the chat template {problem}",
    },
    "WayInKind": {
        "everything-lost": "no text of a conversation reaches the prompt",
        "fails": _refused("makes the rendering fail"),
        "needs-field": "{words} is needed, a field that no server sends",
        "syntax": "the Jinja is not valid, so each request fails: {words}",
        "too-costly": "a rendering exceeds the limits of time, memory or length",
        "tools-lost": "calls are shown, but the tools on offer are not",
        "tools-refused": "requests with tools are refused: {words}",
        "tools-only-without-system": "the tools are shown only without a system turn",
        "tools-only-with-system": "the tools are shown only with a system turn",
        "tools-lost-after-result": "the tools are gone after the first result: the model cannot call again",
        "tools-lost-later": "the tools are gone in later turns: the model cannot call again",
        "no-tools": "there is no place for tools",
        "text-arguments": "calls are complete only if the server leaves arguments as JSON text",
        "lost": _field("is lost"),
        "cut": _field("is cut short"),
        "html-escaped": _field("is escaped as HTML"),
        "ascii-escaped": _field("has escapes in place of letters that ASCII lacks"),
        "unescaped": _field("stands in quotes without escapes"),
        "python-repr": _field("is written as Python prints it"),
        "case-changed": _field("is in other letters, small or capital"),
        "altered": _field("is altered"),
        "doubled": _field("stands there twice"),
        "out-of-order": _field("stands out of order"),
        "trimmed": _field("loses the white space around it"),
        "refused": _refused("is refused"),
        "unseen": "the template writes invisible characters: {words}",
        "closed": "the prompt ends with {words}, the end of an answer, so the model has nothing to say",
    },
}
