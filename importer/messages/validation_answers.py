"""Sentences about answers, thoughts and their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "PlainChatReason": {
        "call-not-offered": "a tool call arrived where no tool was offered",
        "all-reasoning": "content is empty: the whole answer arrived as reasoning",
        "no-word": "the model ended its turn without a word",
    },
    "CompletionReason": {
        "chats": "the model chats",
        "nothing": "the model had nothing to add",
        "went-on": "went on {text!r}",
    },
    "SimpleAnswersReason": {
        "right": "{right} of {asked} are right",
        "unbroken": "the template begins an answer without the {rest!r} that stands before earlier ones",
        "wrong": "{missed} of {asked} simple questions are answered wrong",
        "unknown-marker": "the template's {marker} is no token of the tokenizer's",
        "gap": "counting to ten, the model leaves out {gap!r} and goes on",
    },
    "HistoryReason": {
        "not-said": "the answer does not say what was told: {content!r}",
    },
    "ReasoningApartReason": {
        "switched-off": "the document switches thinking off",
        "in-content": "the model thinks, and its thoughts are in the content",
        "other-field": "no thought arrives as reasoning, and {field!r} holds a text",
        "not-apart": "the model thinks, and no thought arrives as reasoning",
        "answer-inside": "the answer is inside the reasoning, content is empty",
        "apart": "thought {reasoning!r}, answered {content!r}",
    },
    "ReasoningCutReason": {
        "no-thought-now": "the model answers without a thought this time",
        "in-content": "the cut thought is in the content: {content!r}",
        "in-both": "the cut thought is in the content, too",
        "cut": "thought {reasoning!r}, no content, finish_reason 'length'",
        "not-said": "the thought was cut, and finish_reason is {finish_reason!r}, not 'length'",
    },
    "ReasoningOffReason": {
        "no-switch": "the template has no switch for thinking",
        "switch-lost": "the switch does not reach the prompt",
        "switch-unknown": "nobody can tell whether its template has a switch",
        "inverted": (
            "the template closes the thinking block where it is asked to think, and not where it is "
            "told not to"
        ),
        "left-open": "told not to think, the template opens {marker} and does not close it",
        "as-reasoning": "the answer arrives as reasoning",
        "thinks": "the model thinks though it is told not to",
    },
    "SpecialTokensReason": {
        "none": "no markup in what is served",
        "pieces": "pieces of words as {piece!r} are in the {place}",
        "call-marker": "the call marker {marker} is in the {place}",
        "stops-and-shows": "the engine stops at {token} and shows it in the {place}",
        "stray": "{token} is in the {place}",
        "only-streamed": "only when streamed",
    },
    "StopStringsReason": {
        "no-middle": "the answer has no middle to stop in: {content!r}",
        "shown": "the stop string is shown",
        "cut-out": "the stop string is cut out, and the answer goes on after it",
        "part-shown": "a part of the stop string is shown: {shown!r}",
        "not-whole": "the text before the stop string is not whole: it ends in {shown!r}",
        "ends": "ends before {stop!r}",
        "other": "the model wrote something else this time: {shown!r}",
    },
    "StopWordsReason": {
        "not-set": "the document has no stop words",
        "not-in-calls": "no stop word within calls",
        "between-calls": "the stop word {word!r} stands between two calls: the second is never written",
        "in-answer": "the stop word {word!r} stands within an {place}, before {after!r}",
        "in-thought": "the stop word {word!r} stands within a thought, before {after!r}",
        "none": "no stop word within {answers} answers",
    },
    "StreamReason": {
        "not-done": "the stream ends without [DONE]",
        "alike": "both are alike",
        "same-ones": "answers vary from one to the next; both ways give the same ones",
        "same-parts": "answers vary from one to the next; both ways give the same parts",
        "differs": "{name} differs: whole {whole!r}, streamed {streamed!r}",
    },
    "StructuredReason": {
        "not-json": "the content is not JSON: {text!r}",
        "in-thought": "the content is not JSON (the reasoning holds an object): {text!r}",
        "unfit": "the content does not fit the schema: {problem}",
        "fits": "fits the schema: {text}",
    },
    "GuidedReason": {
        "other": "the answer is not what was asked for: {text!r}",
        "bound": "{text}",
    },
    "SamplingArrivesReason": {
        "nothing-at-start": "the document sets no value at the start that shows",
        "nothing-shows": "the document sets no value that would show",
        "too-cold": "the temperature is too low to show",
        "no-seed": "the engine takes no seed: {error}",
        "alike": "{count} answers alike",
        "never-alike": "the engine never repeats itself, whatever is sent",
        "differ": "{different} answers of {asked} differ; with the document's values sent they are one",
        "seed-ignored": "a seed does not decide what the model writes",
        "seeds-differ": (
            "for {differ} of {steady} seeds the answer is another once the document's values are sent"
        ),
        "seeds-alike": "{alike} of {steady} seeds give the answer that the document's values give",
        "varied": "{different} answers of {asked} differ",
        "one-answer": "the model gives one answer, whether the temperature is sent or not",
        "not-varied": "{asked} answers are one; with the document's values sent {different} differ",
        "no-effect": "{name} changes nothing in what the model writes",
        "heard": "{name} is heard without being sent",
        "unheard": "{name} is not heard unless it is sent",
        "not-told": "it was started without {names:and}",
        "name-never-alike": "{name}: the engine never repeats itself",
    },
    "TokenLimitReason": {
        "too-many": "{count} tokens where {limit} were allowed",
        "cut": "cut at {limit} tokens, finish_reason 'length'",
        "not-said": "the answer was cut, and finish_reason is {finish_reason!r}, not 'length'",
    },
}
