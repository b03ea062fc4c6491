"""The tokens that are counted are the tokens that there are: whole and streamed, prompt and answer."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.promise import Promise, no_chat
from importer.validation.prompts import GREETING
from importer.validation.reply import Reply

NAME = "usage-counts"
LESSON = "Streams came without counts, or with others than the whole answer: bills and limits were wrong."


def needs(promise: Promise) -> str | None:
    """A chat, and an engine that counts alike both ways."""
    return no_chat(promise) or promise.lacks("usage")


def run(ctx: Context) -> Outcome:
    """Count one greeting in every way there is."""
    whole, streamed = ctx.first(GREETING), ctx.first(GREETING, stream=True)
    return judge(whole, streamed, prompt_tokens(ctx))


def prompt_tokens(ctx: Context) -> int | None:
    """How many tokens the tokenizer makes of the prompt, where it can be asked."""
    if ctx.promise.offers is None or ctx.promise.lacks("tokenize"):
        return None
    answer = ctx.client.post("/tokenize", {"model": ctx.model, "messages": list(GREETING.messages)}, ctx.log)
    count = answer.get("count") if isinstance(answer, dict) else None
    return count if isinstance(count, int) else None


def judge(whole: Reply, streamed: Reply, counted: int | None = None) -> Outcome:
    """Two answers to one prompt, and the tokenizer's count of it."""
    if whole.usage.prompt is None and whole.usage.completion is None:
        return NotApplicable("the engine does not count tokens")
    for name, reply in (("whole", whole), ("streamed", streamed)):
        flaw = _flaw(reply)
        if flaw is not None:
            return Fail(f"{name}: {flaw}", "engine")
    if whole.usage.prompt != streamed.usage.prompt:
        return Fail(f"prompt: {whole.usage.prompt} tokens whole, {streamed.usage.prompt} streamed", "engine")
    counts = whole.usage.completion, streamed.usage.completion
    same = (whole.content, whole.reasoning) == (streamed.content, streamed.reasoning)
    if same and counts[0] != counts[1]:
        return Fail(f"the same answer: {counts[0]} tokens whole, {counts[1]} streamed", "engine")
    if counted is not None and counted != whole.usage.prompt:
        return Fail(f"prompt: {whole.usage.prompt} tokens, the tokenizer makes {counted}", "engine")
    told = f"{whole.usage.prompt} tokens of prompt, {whole.usage.completion} of answer, whole and streamed"
    return Pass(told, trials=2)


def _flaw(reply: Reply) -> str | None:
    usage = reply.usage
    if not usage.prompt or usage.completion is None:
        return f"counts {usage.prompt} tokens of prompt and {usage.completion} of answer"
    if reply.content.strip() and not usage.completion:
        return "counts no token of an answer that has text"
    totals = [u["total_tokens"] for u in (d.get("usage") for d in reply.raw) if isinstance(u, dict)
              and isinstance(u.get("total_tokens"), int)]  # fmt: skip
    if totals and totals[-1] != usage.prompt + usage.completion:
        return f"total_tokens is {totals[-1]}, not {usage.prompt} and {usage.completion} together"
    return None
