"""Sentences about calls of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "CallReason": {
        "call-in-content": "the call was read, but its text is still in the content: {remains!r}",
        "not-finished": "finish_reason is {finish_reason!r}, not 'tool_calls'",
        "letters-changed": "letters changed on the way: {arguments!r}",
        "asks-other": "the call asks for something else: {arguments}",
        "called": "{name} {arguments}",
        "no-good-call": "there is no good call to go on from: see tool-call",
        "arrived-as": "the model wrote a call and it arrived as {place}: {quote!r}",
        "lost": "finish_reason says tool_calls and there is none: the parser lost it",
        "no-call": "the model answered without a call",
        "name-holds-more": "the call's name holds more than a name: {name!r}",
        "not-offered": "the model called {name!r}, which it was not offered",
        "no-id": "the call has no id, so no result can be given for it",
        "not-json": "the arguments are not JSON: {arguments!r}",
        "encoded-twice": "the arguments are encoded twice: {arguments!r}",
        "text-for-value": "a value is text where it is not meant to be: {message}",
        "argument-lost": "the model wrote {lost!r}, and the call arrived without it",
        "unfit": "the arguments do not fit the tool's schema: {problem}",
    },
    "CallsKeptReason": {
        "calls-unseen": "earlier calls do not reach the prompt: a longer one makes it no longer",
        "null-is-no-text": "null is no text",
        "null-is-text": (
            "a call's turn whose content is null makes {null} tokens of prompt, one without text {empty}"
        ),
        "other-form": "the template writes a call's arguments as {form}: {quote!r}; the model does not",
        "kept": "earlier calls reach the prompt",
    },
    "CutCallReason": {
        "not-counted": "the engine does not count the tokens of a call",
        "says-cut": "the answer says that it was cut",
        "half": "half a call is given out as a whole one: {arguments!r}",
        "whole": "the call was whole before the cut",
        "not-said": "the call was cut, and finish_reason says {finish_reason!r}",
    },
    "InventedToolReason": {
        "none": "no call of a tool that was not offered",
        "not-written": "{name!r} was called; nobody offered it and the model did not write it",
        "written": "{name!r} was called and nobody offered it",
    },
    "LaterTurnsReason": {
        "calls": "calls after {lengths} lengths of history",
    },
    "MessagesToolsReason": {
        "tools-unseen": "the tools do not reach the prompt: {here} tokens instead of {chat}",
    },
    "NoToolNeededReason": {
        "begins-a-call": "the model begins a call to say hello",
        "calls": "the model calls {name} to say hello",
    },
    "ParallelCallsReason": {
        "shared": "{count} calls share an id or an index",
        "arrived": "{count} calls: {names}",
        "lost": "the model wrote a call for {name} and it did not arrive",
        "one-at-a-time": "the model calls one tool at a time",
    },
    "ToolChoiceReason": {
        "required": "a call was required",
        "named": "{name} was named",
        "at-limit": "{asked}, and the answer came to the limit of tokens",
        "none-came": "{asked}, and none came: {content!r}",
        "other-called": "{asked}, and {called} was called",
        "called": "{asked}: {called}",
        "forbidden-called": "tools were forbidden, and {name} was called",
        "forbidden-kept": "tools were forbidden: no call",
    },
    "ToolResultReason": {
        "other-order": (
            "of two results the engine's answer tells {here}, and the model {there} by its template"
        ),
        "one-of-two": "of the results of two calls only one reaches the prompt",
        "calls-again": "the model calls the tool again",
        "not-used": "the answer does not use the result: {text!r}",
    },
    "ToolsInPromptReason": {
        "seen": "a second tool makes the prompt longer",
        "shown-later": "later questions show the tools as well",
        "not-shown-later": (
            "once a tool has answered, the template shows no tools any more: a second one changes nothing"
        ),
    },
    "TypedArgumentsReason": {
        "pointed": "a whole number arrives as {number}, and the model did not write it so",
    },
}
