"""Sentences about what goes wrong around the probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "AnswerFailure": {
        "unreachable": "the connection failed: {problem}",
        "timed-out": "no whole answer within {seconds:.0f} s",
        "refused": "the engine answered {status}: {says}",
        "reports-error": "the engine reports an error: {says}",
        "died": "the engine died: {says}",
        "log-lacks": "its log: {lacking}",
        "log-raised": "its log: {raised}",
        "template-refuses": "the chat template refuses it: {says}",
    },
    "JournalReason": {
        "log-gone": "its log is gone",
    },
    "PromiseReason": {
        "not-offered": "the engine does not offer: {names}",
        "offer-unknown": "nobody knows whether the engine offers it",
        "base-model": "a base model completes text and does not chat",
        "no-tool-parser": "the document names no tool parser",
        "no-reasoning-parser": "the document names no reasoning parser",
        "no-context": "the document names no longest context",
    },
    "CommonReason": {
        "result-unseen": "the tool's result does not reach the prompt: a longer one makes it no longer",
        "tools-unseen": "the tools do not reach the prompt: a second one makes it no longer",
        "thought-unread": "the model thinks and no parser takes the thoughts",
        "call-unread": "the model wrote a call that no parser took",
        "still-writing": "the model was still writing at the limit of tokens",
        "next-turn": "the answer does not end: it goes on into another turn",
        "goes-on": "the answer does not end: the model writes {token} and the engine goes on",
        "nothing-arrived": "the model wrote {tokens} tokens and nothing of them arrived",
        "not-counted": "the engine does not count the prompt's tokens",
        "at-limit": "the answer came to the limit of tokens",
        "turns-unseen": "earlier turns do not reach the prompt",
        "answered": "answered {content!r}",
        "empty": "the answer is empty",
        "not-stopped": "finish_reason is {finish_reason!r}, not 'stop'",
        "not-rendered": "nobody can tell what the template writes",
        "given-twice": "the answer is given twice, as reasoning and as content",
        "still-thinking": "the model was still thinking at the limit of tokens",
        "no-thought": "the model answered without a thought",
        "done-before": "the model was done before the limit",
        "prompt-changed": "the tokenizer makes {changed!r} of the prompt",
        "thinking-marker": "the thinking marker {marker} is in the {place}",
        "not-proved": "the template beside the weights is not the one that was proved",
        "no-template": "there is no chat template beside the weights",
        "whole-is-right": "the whole answer is right",
        "refused-cleanly": "refused cleanly: {error}",
        "unended": "by itself the model ends no thought here",
        "not-asked": "not asked: {why}",
    },
    "BlameReason": {
        "another-read": "the template would render it, and the engine reads another one",
        "left-out": "the model's template renders it, and the engine leaves it out",
        "other-numbers": "{key} {value} has the model reckon with other numbers than its own",
        "thought-unended": "here the model itself does not end its thought",
        "no-whole-call": "in its template's own format the model writes no whole call",
    },
    "SpoiltReason": {
        "passes-without": "without {name} {value:g} it passes",
    },
    "SilenceReason": {
        "no-answers": "not asked: {probes} probes before it had no answer within {seconds:g} s",
    },
    "ClientReason": {
        "not-json": "the answer of {path} is not JSON",
        "too-large": "the answer is larger than {limit} bytes",
    },
    "ReplyReason": {
        "goes-on": "the stream goes on after [DONE]",
        "cut": "the stream was cut before its end",
        "not-json": "the engine sent what is not JSON: {start!r}",
        "not-object": "{part} is not an object",
        "no-choices": "the answer has no list of choices",
        "no-choice": "the answer has no choice",
        "not-text": "`{key}` is not text",
        "calls-no-list": "`tool_calls` is not a list",
        "call-without-index": "a streamed tool call has no index",
        "no-number": "`{key}` is not a number of tokens",
        "logprobs-no-list": "`logprobs.content` is not a list",
    },
    "EventReason": {
        "too-large": "an event of the stream is larger than {limit} bytes",
        "not-utf8": "the stream is not UTF-8",
    },
    "MessagesReason": {
        "chat-is-right": "/v1/chat/completions is right",
        "not-a-message": "the answer is no message of the assistant: {words}",
        "no-blocks": "the message has no list of blocks",
        "event-name": "an event's name is not its type, and Anthropic's clients go by it",
        "no-stop": "the stream ended without message_stop",
        "wrong-place": "{event} came at the wrong place of the stream",
        "wrong-index": "{name} has the index {index!r}, not {expected}",
        "wrong-block": "a {delta} is in a block of {block}",
        "block-not-object": "a block of the message is not an object",
        "input-not-object": "the input of a tool is not an object: {given}",
        "not-json": "the engine sent what is not JSON",
        "not-object": "the engine sent what is not an object",
        "field-not-object": "`{key}` of {part} is not an object",
        "field-not-text": "`{key}` of a block is not text",
    },
    "OwnReason": {
        "answer": "{text}",
    },
}
