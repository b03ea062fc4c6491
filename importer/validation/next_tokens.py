"""The probability of a text token by token, by the likeliest next tokens that an engine shows.

mlx-lm returns no probabilities of a prompt. It shows the eleven likeliest tokens of an answer, each by
its number. So each token of a known text is looked up among those that may follow the text before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.validation.context import Context
from importer.validation.forced import neutral
from importer.validation.likelihood import ScoredText
from importer.validation.reply import Reply
from importer.validation.tokenized import redrawn, tokens_of

TOPS = 11  # the most that mlx-lm allows


def scored(ctx: Context, prompt: str, answer: str, fields: Mapping[str, Any]) -> ScoredText | None:
    """Return the answer with its nats after the prompt; ``None`` where engine or tokenizer show no numbers.

    A token that is not among the likeliest counts as the least of these, so the nats are a lower bound. One
    is left out where the text before it has other tokens by itself. ``fields`` go with each request.
    """
    known = None if ctx.promise.lacks("logprobs") else tokens_of(ctx, (prompt, prompt + answer))
    if known is None or known[1][: len(known[0])] != known[0]:
        return None
    own = known[1][len(known[0]) :]
    again = redrawn(ctx, (own,))
    if again is None or not own:
        return None
    begun, count, nats = 0, 0, 0.0
    for place, (number, start) in enumerate(zip(own, (0, *again[0].ends), strict=False)):
        body = {"model": ctx.model, "prompt": prompt + answer[:start], "max_tokens": 1, "logprobs": True}
        reply = ctx.client.completion({**body, "top_logprobs": TOPS, **neutral(ctx), **fields}, ctx.log)
        likeliest = shown(reply)
        if not likeliest or reply.usage.prompt is None:
            return None
        begun = begun or reply.usage.prompt
        if reply.usage.prompt == begun + place:
            count += 1
            nats -= likeliest.get(number, min(likeliest.values()))
    return ScoredText(prompt, answer, count, round(nats, 4)) if count else None


def shown(reply: Reply) -> dict[int, float]:
    """Return the logarithms of the likeliest first tokens, by their numbers; none where there are none."""
    first = reply.logprobs[0] if reply.logprobs else None
    listed = first.get("top_logprobs") if isinstance(first, Mapping) else None
    entries = [entry for entry in listed or () if isinstance(entry, Mapping)]
    return {
        entry["id"]: float(entry["logprob"])
        for entry in entries
        if type(entry.get("id")) is int and isinstance(entry.get("logprob"), int | float)
    }
