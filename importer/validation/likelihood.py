"""Teacher-forced likelihood: nats for each token of answers that were given once, by the weights now served.

An answer is the model's own greedy one at the first validation. The same texts are read again later: weights
that were rounded, noise, other positions and another tokenizer give them less probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from importer.frozen import frozen


@frozen
class ScoredText:
    """A rendered prompt and the answer behind it: its ``tokens``, and their ``nats`` together.

    The nats are minus the natural logarithm of the answer's probability after the prompt.
    """

    prompt: str
    answer: str
    tokens: int
    nats: float

    def to_json(self) -> dict[str, object]:
        """Return the text as a receipt has it."""
        return {"prompt": self.prompt, "answer": self.answer, "tokens": self.tokens, "nats": self.nats}


@dataclass(slots=True)
class Likelihood:
    """The texts of the first validated run with their figures, and the figures of this run.

    ``since`` is the time of that run; without ``reference`` this run may become the first.
    """

    reference: tuple[ScoredText, ...] = ()
    since: str | None = None
    measured: list[ScoredText] = field(default_factory=list)

    def to_json(self) -> dict[str, object] | None:
        """Return the receipt's entry; ``None`` where nothing was measured."""
        if not self.measured:
            return None
        texts = self.reference or self.measured
        return {
            "nats_per_token": per_token(self.measured, texts),
            "reference": per_token(self.reference, texts) if self.reference else None,
            "since": self.since,
            "texts": [text.to_json() for text in texts],
        }


def per_token(scored: Sequence[ScoredText], texts: Sequence[ScoredText]) -> float:
    """Return nats for each token of ``texts``: with another tokenizer, equal characters are other tokens."""
    return round(math.fsum(text.nats for text in scored) / sum(text.tokens for text in texts), 4)


def recorded(run: Mapping[str, object]) -> Likelihood:
    """Return the reference that a run of the receipt leaves: an earlier one's, or its own where it passed."""
    entry = run.get("likelihood")
    if not isinstance(entry, Mapping):
        return Likelihood()
    carried = entry.get("reference") is not None
    if not (carried or run.get("passed")):
        return Likelihood()
    try:
        texts = tuple(
            ScoredText(str(t["prompt"]), str(t["answer"]), int(t["tokens"]), float(t["nats"]))
            for t in entry["texts"]
        )
    except (KeyError, TypeError, ValueError):
        return Likelihood()
    usable = tuple(text for text in texts if text.tokens > 0 and math.isfinite(text.nats))
    since = entry.get("since") if carried else run.get("started")
    return Likelihood(usable, None if since is None else str(since))
