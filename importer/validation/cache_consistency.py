"""One prompt asked twice, without and with its beginning in a cache: the probabilities must be the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from importer.frozen import frozen
from importer.validation.context import Context
from importer.validation.expectations import UNKNOWN_CONTEXT
from importer.validation.prompts import Prompt, user
from importer.validation.reply import Reply

WORD = "again "
WORDS = 160  # more than the blocks of 128 tokens that some caches have
TOKENS = 3  # of each answer
TOPS = 3  # of the tokens at a place
LEAD = 1.0  # nat; rounding turns round no such lead
ROUNDED = 0.5  # nat that rounding may move a probability at least, and as many times as it is seen to
TIMES = 4
MOVED = 2.0  # nat that no rounding moves
LEAST = 1e6  # nat below 0: what is less probable is no number
OTHERS = 10  # prompts in between: as many as mlx-lm keeps
Tops = Mapping[str, float]


@frozen
class Change:
    """The first place of two answers, counted from one, whose probabilities are of different prompts."""

    place: int
    cold: Tops
    warm: Tops


class ColdAndWarm:
    """A prompt that no cache holds, asked at once; ``warm`` asks again behind another with its beginning."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        words = min(ctx.promise.room(WORDS), (ctx.promise.context or UNKNOWN_CONTEXT) // 4)
        self._text = f"{token_hex(2)} {WORD * words}Say hello."
        self._cold = self._asked()
        self._again = self._asked()  # all of it is in the cache now: what differs is rounding

    def change(self) -> Change | None:
        """Return what a cache has changed, or ``None``."""
        for number in range(OTHERS):
            self._ctx.ask(_prompt(f"{number} {token_hex(2)}"), max_tokens=1)
        self._ctx.ask(_prompt(f"{self._text} Now?"), max_tokens=1)
        return changed(self._cold, self._asked(), noise=moved(self._cold, self._again))

    def _asked(self) -> Reply:
        return self._ctx.ask(
            _prompt(self._text), max_tokens=TOKENS, temperature=0, logprobs=True, top_logprobs=TOPS
        )


def _prompt(text: str) -> Prompt:
    return Prompt("cold-and-warm", (user(text),))


def changed(cold: Reply, warm: Reply, *, noise: float = 0.0) -> Change | None:
    """Return the first place where two answers of the same tokens are not equally probable.

    ``noise``  nat by which rounding moves a probability, as far as it was seen.
    """
    most = min(MOVED, max(ROUNDED, TIMES * noise))
    for place, (one, other) in enumerate(zip(_tops(cold), _tops(warm), strict=False), 1):
        best, *rivals = sorted(one, key=lambda token: -one[token])
        if best != max(other, key=lambda token: other[token]):
            leads = all(one[best] - one[rival] > LEAD for rival in rivals)
            return Change(place, one, other) if leads else None
        if _apart(one, other) > most:
            return Change(place, one, other)
    return None


def moved(one: Reply, other: Reply) -> float:
    """Return by how many nat a token's probability moves at most, as far as both drew the same tokens."""
    furthest = 0.0
    for first, second in zip(_tops(one), _tops(other), strict=False):
        furthest = max(furthest, _apart(first, second))
        if max(first, key=lambda token: first[token]) != max(second, key=lambda token: second[token]):
            break
    return furthest


def _apart(one: Tops, other: Tops) -> float:
    return max((abs(one[token] - other[token]) for token in one.keys() & other.keys()), default=0.0)


def _tops(reply: Reply) -> Sequence[Tops]:
    """Return the likeliest tokens at each place, up to the first place without any."""
    places: list[Tops] = []
    for entry in reply.logprobs:
        listed = entry.get("top_logprobs") if isinstance(entry, Mapping) else None
        found = {str(top.get("token")): _number(top.get("logprob")) for top in _entries(listed)}
        numbers = {token: number for token, number in found.items() if number is not None}
        if not numbers:
            break
        places.append(numbers)
    return places


def _entries(listed: Any) -> Sequence[Mapping[str, object]]:
    return [top for top in listed if isinstance(top, Mapping)] if isinstance(listed, list) else []


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LEAST else None
