"""The probe of usage: the counted tokens are the tokens of prompt and answer, whole and streamed."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import GREETING
from importer.validation.reply import Reply


class UsageReason(ReasonKind):
    """The reasons of ``usage-counts``."""

    NO_COUNT = "no-count", "the engine does not count tokens"
    FLAWED = "flawed", "{way}: {flaw}"
    PROMPTS_DIFFER = "prompts-differ", "prompt: {whole} tokens whole, {streamed} streamed"
    ANSWERS_DIFFER = "answers-differ", "the same answer: {whole} tokens whole, {streamed} streamed"
    TOKENIZER_DIFFERS = "tokenizer-differs", "prompt: {prompt} tokens, the tokenizer makes {counted}"
    COUNTED = "counted", "{prompt} tokens of prompt, {completion} of answer, whole and streamed"
    ODD = "odd", "counts {prompt} tokens of prompt and {completion} of answer"
    ANSWER_NOT_COUNTED = "answer-not-counted", "counts no token of an answer that has text"
    TOTAL = "total", "total_tokens is {total}, not {prompt} and {completion} together"


NAME = "usage-counts"
LESSON = "Streams came without counts, or with others than the whole answer: bills and limits were wrong."


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or an engine with other counts for streams."""
    return no_chat(promise) or promise.lacks("usage")


def run(ctx: Context) -> Outcome:
    """Compare the counts of one greeting."""
    whole, streamed = ctx.first(GREETING), ctx.first(GREETING, stream=True)
    return judge(whole, streamed, prompt_tokens(ctx))


def prompt_tokens(ctx: Context) -> int | None:
    """Return the tokens of the prompt by the tokenizer, where the engine has that path."""
    if ctx.promise.unsure("tokenize"):
        return None
    answer = ctx.client.post("/tokenize", {"model": ctx.model, "messages": list(GREETING.messages)}, ctx.log)
    count = answer.get("count") if isinstance(answer, dict) else None
    return count if isinstance(count, int) else None


def judge(whole: Reply, streamed: Reply, counted: int | None = None) -> Outcome:
    """Judge two answers to one prompt, and the tokenizer's count of it."""
    if whole.usage.prompt is None and whole.usage.completion is None:
        return NotApplicable(Reason(UsageReason.NO_COUNT))
    for name, reply in (("whole", whole), ("streamed", streamed)):
        flaw = _flaw(reply)
        if flaw is not None:
            return Fail(Reason(UsageReason.FLAWED, way=name, flaw=flaw), "engine")
    if whole.usage.prompt != streamed.usage.prompt:
        return Fail(
            Reason(UsageReason.PROMPTS_DIFFER, whole=whole.usage.prompt, streamed=streamed.usage.prompt),
            "engine",
        )
    counts = whole.usage.completion, streamed.usage.completion
    same = (whole.content, whole.reasoning) == (streamed.content, streamed.reasoning)
    if same and counts[0] != counts[1]:
        return Fail(Reason(UsageReason.ANSWERS_DIFFER, whole=counts[0], streamed=counts[1]), "engine")
    if counted is not None and counted != whole.usage.prompt:
        return Fail(
            Reason(UsageReason.TOKENIZER_DIFFERS, prompt=whole.usage.prompt, counted=counted), "engine"
        )
    reason = Reason(UsageReason.COUNTED, prompt=whole.usage.prompt, completion=whole.usage.completion)
    return Pass(reason, trials=2)


def _flaw(reply: Reply) -> Reason | None:
    usage = reply.usage
    if not usage.prompt or usage.completion is None:
        return Reason(UsageReason.ODD, prompt=usage.prompt, completion=usage.completion)
    if reply.content.strip() and not usage.completion:
        return Reason(UsageReason.ANSWER_NOT_COUNTED)
    totals = [u["total_tokens"] for u in (d.get("usage") for d in reply.raw) if isinstance(u, dict)
              and isinstance(u.get("total_tokens"), int)]  # fmt: skip
    if totals and totals[-1] != usage.prompt + usage.completion:
        return Reason(UsageReason.TOTAL, total=totals[-1], prompt=usage.prompt, completion=usage.completion)
    return None
