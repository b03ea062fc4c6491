"""The probe of stop words: those of the document end answers, and stand in none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import TOKENS, Context
from importer.validation.expectations import Expectations, no_chat, no_tools
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.prompts import BOTH_ANSWERED, COUNT, GREETING, SUM, TWO_CITIES
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply


class StopWordsReason(ReasonKind):
    """The reasons of ``stop-words``."""

    NOT_SET = "not-set", "the document has no stop words"
    NOT_IN_CALLS = "not-in-calls", "no stop word within calls"
    BETWEEN_CALLS = (
        "between-calls",
        "the stop word {word!r} stands between two calls: the second is never written",
    )
    IN_ANSWER = "in-answer", "the stop word {word!r} stands within an answer, before {after!r}"
    IN_THOUGHT = "in-thought", "the stop word {word!r} stands within a thought, before {after!r}"
    IN_TEXT = "in-text", "the stop word {word!r} stands within what the model writes, before {after!r}"
    NONE = "none", "no stop word within {answers} answers"


NAME = "stop-words"
LESSON = "A stop word that was meant for another model cut answers in the middle, with finish_reason stop."
QUESTIONS = (GREETING, SUM, COUNT)


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or no stop words."""
    stops = words(promise) or promise.stopwords
    return no_chat(promise) or (None if stops else Reason(StopWordsReason.NOT_SET))


def words(promise: Expectations) -> tuple[str, ...]:
    """Return the stop words that clients send."""
    sent = promise.client_sampling.get("stop") or ()
    return (sent,) if isinstance(sent, str) else tuple(map(str, sent))


def run(ctx: Context) -> Outcome:
    """Judge two calls as the template writes them, then answers without stop words: none may hold one."""
    failure = None if no_tools(ctx.promise) else judge_calls(between(ctx), ctx.promise.stopwords)
    if failure is not None or not words(ctx.promise):
        return failure or Pass(Reason(StopWordsReason.NOT_IN_CALLS))
    shown: Mapping[str, Any] = (
        {} if ctx.promise.lacks("logprobs") else TOKENS
    )  # a parser takes markers out of answers
    return judge([ctx.ask(prompt, stop=None, **shown) for prompt in QUESTIONS], words(ctx.promise))


def between(ctx: Context) -> str:
    """Return the text of the template between the arguments of two calls in one turn."""
    question, rendered = TWO_CITIES.messages[-1]["content"], ctx.rendered(BOTH_ANSWERED) or ""
    behind = rendered.partition(question)[2]
    first, second = (word.capitalize() for word in TWO_CITIES.expects)
    calls = behind.partition(BOTH_ANSWERED.expects[0])[0].partition(first)[2]
    return calls.rpartition(second)[0]


def judge_calls(text: str, stops: tuple[str, ...]) -> Fail | None:
    """Return the fault where a stop word ends an answer between two calls."""
    word = next((w for w in stops if w and w in text), None)
    if word is None:
        return None
    reason = Reason(StopWordsReason.BETWEEN_CALLS, word=word)
    return Fail(reason, "configuration", Reason(Remedy.TAKE_OUT_STOPWORD, word=word))


def judge(replies: Sequence[Reply], stops: tuple[str, ...]) -> Outcome:
    """Judge answers that no stop word has ended."""
    for reply in replies:
        for place, text in (
            (StopWordsReason.IN_ANSWER, reply.content),
            (StopWordsReason.IN_THOUGHT, reply.reasoning),
            (StopWordsReason.IN_TEXT, reply.written),
        ):
            word = next((w for w in stops if w in text), None)
            after = text.partition(word)[2].strip() if word else ""
            if word and after:
                remedy = Reason(Remedy.TAKE_OUT_STOPWORD, word=word)
                seen = Reason(place, word=word, after=after[:40])
                return Fail(seen, "configuration", remedy, trials=len(replies))
    return Pass(Reason(StopWordsReason.NONE, answers=len(replies)), trials=len(replies))
