"""What the engine's own parsers read of a template, as a decision on one of the two parsers has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from importer.frozen import frozen
from importer.reasons import Reason


@frozen
class Proved:
    """The verdicts on one kind of parser; ``asked`` is whether any parser was asked.

    ``reads``       parsers that read the template; ``complete`` those of them that read the most.
    ``refuted``, ``incomplete``  the others, with the reason.
    ``unjudged``    those that a fault of this machine kept from a verdict: they are not refuted.
    ``unsettled``   refuted ones whose markers the template writes. ``guessed`` read tokens that are assumed.
    ``liberal``     read almost anything that looks like a call.
    ``failed``      parser to its failed cases; ``streamed`` to those that it loses token by token.
    ``forbidden``   parser to what the engine's grammar forbids of the calls.
    ``equal``       parser to those of the same effect.
    ``pairs``       reasoning parser to the tool parsers beside which it loses an answer.
    ``pair``        the same, for the tool parser of this document.
    ``inferred``    the parser that the engine takes by itself, where it ``infers`` one.
    ``heeds``       reasoning parser to the variables of a request that it listens to.
    ``derived``     the parsers that a derived template serves; ``alone`` where the engine is not installed.
    """

    reason: Reason
    asked: bool = False
    reads: Sequence[str] = ()
    complete: Sequence[str] = ()
    refuted: Mapping[str, Reason] = field(default_factory=dict)
    incomplete: Mapping[str, Reason] = field(default_factory=dict)
    unjudged: Mapping[str, Reason] = field(default_factory=dict)
    unsettled: Sequence[str] = ()
    guessed: Sequence[str] = ()
    liberal: Sequence[str] = ()
    failed: Mapping[str, Mapping[str, Reason]] = field(default_factory=dict)
    streamed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    forbidden: Mapping[str, str] = field(default_factory=dict)
    equal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pairs: Mapping[str, Mapping[str, Reason]] = field(default_factory=dict)
    pair: Mapping[str, Reason] = field(default_factory=dict)
    infers: bool = False
    inferred: str | None = None
    heeds: Mapping[str, Sequence[str]] = field(default_factory=dict)
    derived: Sequence[str] = ()
    tools_rendered: bool = False
    alone: bool = False
