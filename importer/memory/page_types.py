"""Types of vLLM's pool: the page of a layer, the layers of a group, the blocks that all groups share."""

from __future__ import annotations

from math import ceil
from typing import Literal

from importer.frozen import frozen

Kind = Literal["full", "latent", "window", "chunk", "state", "cross"]


@frozen
class KVPage:
    """One layer's page: ``tokens`` of a block in ``size`` bytes.

    ``reach``  the window, the chunk, the encoder's tokens, or the blocks of a state.
    ``exact``  further values that are equal for layers with one block table.
    """

    kind: Kind
    tokens: int
    size: int
    reach: int = 0
    exact: tuple[int, ...] = ()


@frozen
class Group:
    """Layers with one block table: a sequence has the same number of blocks in all of them."""

    pages: tuple[KVPage, ...]

    @property
    def size(self) -> int:
        """Return the bytes of all its pages in one block."""
        return sum(p.size for p in self.pages)

    def blocks(self, context: int, in_flight: int) -> int:
        """Return the blocks of one sequence of ``context`` tokens, with ``in_flight`` tokens scheduled."""
        return max(_blocks(p, context, in_flight) for p in self.pages)


@frozen
class Pool:
    """The groups of a model, and the bytes of one block of the pool that they share."""

    groups: tuple[Group, ...]
    block: int

    def blocks(self, context: int, in_flight: int, states: bool | None = None) -> int:
        """Return the blocks of one sequence; ``states`` selects the blocks of states, or the others."""
        chosen = [g for g in self.groups if states is None or (g.pages[0].kind == "state") == states]
        return sum(g.blocks(context, in_flight) for g in chosen)

    def sequence(self, context: int, in_flight: int) -> int:
        """Return the bytes of one sequence in the pool."""
        return self.block * self.blocks(context, in_flight)

    def concurrency(self, memory: int, context: int, in_flight: int) -> float:
        """Return how many full sequences run at once in ``memory`` bytes: vLLM's maximum concurrency."""
        each = self.blocks(context, in_flight)
        return memory // self.block / each if self.block and each else 0.0

    def tokens(self, memory: int, context: int, in_flight: int) -> int:
        """Return the size of the cache in vLLM's log: the tokens of all full sequences in ``memory``."""
        return int(self.concurrency(memory, context, in_flight) * context)


def _blocks(page: KVPage, context: int, in_flight: int) -> int:
    if page.kind == "state":
        return page.reach
    if page.kind == "cross":
        return ceil(page.reach / page.tokens)
    if page.kind == "window":
        return ceil(min(page.reach - 1 + in_flight, context) / page.tokens) + 1
    if page.kind == "chunk":
        return ceil(min(page.reach + in_flight, context) / page.tokens)
    return ceil(context / page.tokens)
