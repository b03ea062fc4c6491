"""Sentences about servers: context, counts, memory, settings, their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


VALIDATION_PROMPT: dict[str, dict[str, Text]] = {
    "PromptReason": {
        "begins-twice": "the template writes {bos} twice",
        "begins-once": "begins once",
        "nothing-taken": "no variable is the engine's own",
        "taken": "{variable} is the engine's to say to the template",
        "turn-begun": "the assistant's turn is begun",
        "no-turn": "the template begins no turn of the assistant, though {shown!r} stands before its words",
        "text-shown": "a question's words are in the prompt",
        "text-lost": "{words!r} does not reach the prompt: the template writes no content that is a plain text",
        "proved": "the template is the one that was proved",
        "all-known": "every variable is known",
        "unknown": "the template does not know {variable}: it changes nothing",
        "started": "the engine was started with the document's template variables",
        "not-started": (
            "the prompt has {plain} tokens, and {told} where a request names the document's variables"
        ),
        "history-alike": "calls and results are rendered as the template does",
        "history-differs": (
            "calls and results take {more} tokens, and {rendered} as the template renders them"
        ),
        "taken-for-yes": "the template takes {variable}, the text {value!r}, for yes",
        "switches-heeded": "no switch is taken for its contrary",
        "counted": "{tokens} tokens",
        "differs": "the prompt has {chat} tokens, and what the template renders {rendered}",
        "another-read": "the engine reads another template",
    },
    "TemplateWholeReason": {
        "defect": "in the chat template {problem}",
        "whole": "{checked} nonces reach the prompt unaltered and in order",
    },
    "PromptArrivesReason": {
        "altered": "{part}: {what}, so the prompt has {counted} tokens and not {expected}",
        "cut": "{part}: of {size} bytes a part is missing, {counted} tokens of {expected}",
        "differs": "{part}: the prompt has {counted} tokens, and the template's text {expected}",
        "refused": "{part}: {size} bytes are refused, and {taken} are answered: {error}",
        "filtered": "a text with markup, paths, statements and numbers is refused, and others are not: {error}",
        "other-tokens": "the engine makes other tokens of the same text in {conversations} conversations",
        "arrived": "{conversations} conversations have the tokens of the template's text",
    },
    "PromptCause": {
        "switched": "the prompt is that of the template with {switches}, which the document does not set",
        "other-template": "the prompt is what {argument} of the start renders: {text!r}",
        "servers-differ": "{trials} equal requests have prompts of {counts} tokens: servers that differ answer",
    },
    "OptionReason": {
        "not-forced": "the server heeds no logit_bias, so no answer can be forced",
        "ignored": "{option} {sent!r} has no effect",
        "other-length": (
            "{option} is {asked}, and the answer has {came} tokens and the finish_reason {finish_reason!r}"
        ),
        "capped": "{option} is {asked}, and the answer has {came} tokens: something caps answers",
        "letters-broken": "streamed, {asked!r} over and over comes as {came!r}",
        "buffered": (
            "a stream of {tokens} tokens came at once: its first byte after {first:.2f} of {seconds:.2f} s"
        ),
        "crossed": "a request for {asked!r} was given the answer {came!r}",
        "cold-differs": "{option} {sent}: {different} of {trials} answers differ",
        "seed-differs": "{option} {sent}: {different} of {trials} answers differ",
        "all-alike": "{option} {sent}: all of {trials} answers are one",
        "heeded": "{option} takes effect",
    },
    "TurnsReason": {
        "left-out": "see what is left out",
        "not-ended": "nothing ends an earlier answer in the prompt: {behind!r} stands behind it",
        "tag-harmless": "a tag of a user's cuts nothing off",
        "tag-cuts": "where a user writes </think>, the rest is not in the prompt: {words!r}",
        "empty-alike": "a call without arguments is written as others are",
        "empty-differs": "a call without arguments is no JSON in the prompt, and one with arguments is",
        "begin-alike": "answers begin alike",
        "begin-differs": "earlier answers begin with {earlier!r}, a new one with {new!r}",
        "ended-between": "{token} ends answers, and the template writes it between two calls of one turn",
        "ends-behind": "what ends a turn stands between no two calls",
        "no-clock": "the same an hour later",
        "dated": "prompts have the date of this machine's clock: {date}",
        "clock": "the template writes the time of day: no prompt begins like another, and no cache helps",
    },
    "SystemRoleReason": {
        "unseen": "the system's words do not reach the prompt",
        "counted": "prompts of {short} and {longer} tokens",
    },
    "ImagesReason": {
        "not-promised": "the document says nothing of images",
        "not-counted": "all are answered; whether an image is seen, no count of tokens tells",
        "no-more": "{more}: {tokens} tokens, {less}: {fewer}",
        "unseen": "the image does not reach the prompt: {counts}",
        "counted": "{name} {tokens}",
        "seen": "tokens of the prompt: {counts}",
    },
    "RoundTripReason": {
        "no-tokens": "/tokenize gives no list of tokens",
        "count-differs": "/tokenize counts {count} and gives {tokens}",
        "no-text": "/detokenize gives no text",
        "changed": "{text!r} came back as {back!r}",
        "alike": "{tokens} tokens there and back",
    },
    "TokenizerReason": {
        "kept": "every letter is kept",
        "changed": "the tokenizer makes {back!r} of {text!r}",
        "unused": "of {sampled} words of its vocabulary the tokenizer makes {reached}",
        "used": "{reached} of {sampled} words of the vocabulary are in use",
        "in-place": "no marker stands in another's place",
        "by-chance": "the tokenizer makes other tokens of the same text each time",
        "split": "the marker {marker} is no token of its own within a prompt",
        "others-drawn": "the model draws {tokens} tokens, and the tokenizer makes {other} of them otherwise in the same text, such as {example!r}",
        "as-drawn": "{same} of {tokens} tokens that the model drew are those of their text",
        "added-behind": "the tokenizer adds {token} behind each text by itself",
        "crossed": "the model closes a thought with {marker}: added tokens have each other's number",
    },
    "LikelihoodReason": {
        "no-text": "there is no rendered prompt, or no answer to it",
        "not-offered": "the engine returns no probabilities of a prompt's tokens",
        "measured": "{nats} nats for each of {tokens} tokens of its own answers; nothing to compare with yet",
        "as-before": "{nats} nats for each of {tokens} tokens; {before} in the first validated run",
        "worse": "{nats} nats for each of {tokens} tokens; {before} in the first validated run, and {margin} more at most",
    },
    "TokenRowReason": {
        "unknown": "the numbers of the tokens, or the rows of the embedding, are unknown",
        "inside": "the highest number is {highest}, and the embedding has {rows} rows",
        "beyond": "the embedding has {rows} rows, and none for {tokens:and}",
    },
    "FilesReason": {
        "not-known": "nobody wrote down what the files were",
        "same": "{count} files are as they were",
        "changed": "of {files:and} the document was made with another version",
        "broken": "{files:and} is not JSON; the engine may go on without it",
    },
}


Fields = Mapping[str, Any]


def noun(key: object) -> str:
    """A field of a document as a noun: ``tool parser``."""
    return str(key).replace("_", " ")


def _parser(fields: Fields) -> str:
    return f"{noun(fields['key'])} {fields['parser'] or 'none'}"


def _own_choice(fields: Fields) -> str:
    return f"{_parser(fields)} by its own choice"


def _other_parser(fields: Fields) -> str:
    runs = fields["runs"] or f"no {noun(fields['key'])}"
    return f"the engine runs with {runs}, the document says {fields['promised'] or 'none'}"


def _cut(fields: Fields) -> str:
    tokens = "few" if fields["tokens"] is None else fields["tokens"]
    return f"without max_tokens in the request an answer is cut after {tokens} tokens"


VALIDATION_SERVER: dict[str, dict[str, Text]] = {
    "HealthReason": {
        "models-answer": "/v1/models answers",
        "answers": "/health answers",
    },
    "FirstAnswerReason": {
        "began": "answered after {seconds:.2f} s",
        "measured": "{rate:.1f} tokens/s",
        "elsewhere": "the answer is judged by other probes",
        "too-slow": (
            "slow: {rate:.1f} tokens/s; all probes would take about {seconds:.0f} s, and the limit is {limit:.0f} s"
        ),
    },
    "EmbeddingReason": {
        "no-vectors": "{count} vectors arrived for {texts} texts",
        "other-size": "a vector has {size} values, the document promises {promised}",
        "not-numbers": "a vector holds a value that is no number",
        "differs": "the vectors of one text differ: cosine {cosine:.3f}",
        "same-for-all": "two different texts have the same vector",
        "other-length": "a vector has length {length:.3f}, the document promises 1",
        "vectors": "{size} values, length {length:.3f}",
        "tokens": "a vector for each of {count} tokens",
    },
    "RerankReason": {
        "no-scores": "{count} scores arrived for {texts} documents",
        "not-sorted": "the best document is not the first",
        "differs": "two requests gave different scores",
        "other-first": "the model puts {text!r} first",
        "best-first": "the right document is first, with {score:.3f}",
    },
    "ClassesReason": {
        "no-values": "{count} results arrived for {texts} texts",
        "other-count": "a text has {count} values, the document promises {promised}",
        "not-numbers": "a value is no number",
        "differs": "the values of one text differ",
        "values": "{count} values for a text",
    },
    "TranscriptionReason": {
        "no-text": "the answer has no text",
        "text": "text {text!r}",
    },
    "ModelListedReason": {
        "no-list": "/v1/models is not a list of models",
        "absent": "{model} is not among the models listed: {listed}",
        "listed": "{model} is listed",
    },
    "ContextLengthReason": {
        "not-told": "the engine does not tell its context",
        "other": "it serves {served:,} tokens, the document says {promised:,}",
        "same": "{served:,} tokens",
    },
    "LongPromptReason": {
        "too-long": "its context of {context:,} tokens is too long to overrun",
        "any-length": "the server takes a prompt of any length",
        "answered": "{words:,} words were answered: {content!r}",
    },
    "OwnLimitReason": {
        "all-cut": "answers are cut after {tokens} tokens where {allowed} are allowed",
        "any-limit": "the answer comes to any limit: see plain-chat",
        "cut": _cut,
        "ends": "ends by itself, finish_reason {finish_reason!r}",
    },
    "SettingsReason": {
        "nothing-said": "the engine says nothing of its settings",
        "refuted": "the document names {named}, which the proof refutes",
        "reads": "it does not tell its parsers; it reads the model's calls as {promised} does",
        "parsers-not-told": "the engine does not tell its parsers",
        "not-run": "it does not read the model's call: it does not run with {promised}",
        "other-sampling": "the engine samples with {key} {runs:g}, the document says {value:g}",
        "value": "{key} {value:g}",
        "values": "{values}",
        "parser": _parser,
        "own-choice": _own_choice,
        "other-parser": _other_parser,
        "no-value": "the document sets no sampling value at the start",
    },
    "CountTokensReason": {
        "no-number": "{prompt}: input_tokens is {before!r}",
        "differs": "{prompt}: {before} tokens counted before, {after} in the answer",
        "no-count": "the answers do not count their prompt",
        "counted": "{prompt} {tokens}",
        "same": "tokens before as in the answer: {counts}",
    },
    "UsageReason": {
        "no-count": "the engine does not count tokens",
        "flawed": "{way}: {flaw}",
        "prompts-differ": "prompt: {whole} tokens whole, {streamed} streamed",
        "answers-differ": "the same answer: {whole} tokens whole, {streamed} streamed",
        "tokenizer-differs": "prompt: {prompt} tokens, the tokenizer makes {counted}",
        "counted": "{prompt} tokens of prompt, {completion} of answer, whole and streamed",
        "odd": "counts {prompt} tokens of prompt and {completion} of answer",
        "answer-not-counted": "counts no token of an answer that has text",
        "total": "total_tokens is {total}, not {prompt} and {completion} together",
    },
    "LogProbabilitiesReason": {
        "not-shown": "the engine shows none",
        "flawed": "token {place}, {token!r}: {flaw}",
        "count-differs": "{entries} log-probabilities of {count} tokens",
        "other-tokens": "the tokens are not the answer's: {written!r}",
        "shown": "{entries} tokens, which make the answer",
        "no-number": "a log-probability is no number",
        "above-zero": "a log-probability is above zero: {value}",
        "not-in-order": "the best are not in order: {values}",
    },
    "MemoryPredictedReason": {
        "nothing-predicted": "nothing was predicted",
        "nothing-reported": "the engine reports nothing that was predicted",
        "weights": "the weights take more than predicted: {figures:;}",
        "cache": "the KV cache holds less than predicted: {figures:;}",
        "whole": "it takes more memory than predicted: {figures:;}",
        "as-predicted": "{figures:;}",
        "tokens": "{name}: {predicted:,} predicted, {reported:,} reported, {error:+z.1%}",
        "bytes": "{name}: {predicted:.2f} GiB predicted, {reported:.2f} GiB reported",
    },
    "MemoryFlatReason": {
        "too-short": "the context is too short for twenty turns",
        "not-seen": "the engine's memory cannot be seen from here",
        "changed": "{mebibytes:+.0f} MiB between turn {turn} and {last}, of {held:,.0f}",
        "grows": "its memory grows: {change}",
    },
    "PrefixCacheReason": {
        "too-short": "the context is too short to keep much of it",
        "none-asked-for": "the engine runs without a prefix cache, and the document asks for none",
        "refused": "a turn of {size} bytes is refused, and the context holds it: {error}",
        "failed": "with {count} at once on one prefix: {error}",
        "cut-in-silence": "of {words:,} words {tokens:,} tokens reach the prompt: it is cut in silence",
        "not-held": "the second turn's prompt does not hold the first: see history",
        "more-than-all": "{cached} of {prompt} tokens are cached",
        "not-found": "{cached} of its {prompt} tokens in the cache, {first} were there before",
        "changes": "with its beginning in the cache token {place} of an answer is another: {warm}; without: {cold}",
        "found": "{least} tokens and more of {first} found again",
        "times": "{warm:.2f} s to the first token instead of {cold:.2f} s",
        "too-fast": "the engine counts no cached tokens, and is too fast to tell: {times}",
        "slow": "the second turn does not find the first in a cache: {times}",
    },
    "SixteenReason": {
        "failed": "of {count} requests at once one failed: {error}",
        "mixed": "{prompt!r} got the answer to {other!r}",
        "failed-after": "after {count} requests at once a single one failed: {error}",
        "answered": "{good} of {count} answered as each alone",
    },
    "ClientLeavesReason": {
        "empty": "after clients had left, an answer came back empty",
        "slow": "after clients had left, an answer took {seconds:.1f} s instead of {before:.1f} s",
        "answered": "answered in {seconds:.1f} s after four clients had left",
    },
    "StopsReason": {
        "still-there": "processes of the engine are still there",
        "port-taken": "the port is still taken",
        "killed": "it did not end when asked and was killed after {seconds:.1f} s",
        "left": "{left:,} bytes are left in shared memory",
        "gone": "gone after {seconds:.1f} s, port free",
        "given-back": "gone after {seconds:.1f} s, port free, {mebibytes:,.0f} MiB back",
    },
}

TEXTS: dict[str, dict[str, Text]] = {**VALIDATION_PROMPT, **VALIDATION_SERVER}
