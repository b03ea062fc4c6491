"""Completeness: which parsers read all that any of them reads, and which cannot be told apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from importer.chat_template.samples import IRREGULAR
from importer.proof.parser_verdict import ParserVerdict
from importer.reasons import Reason, ReasonKind


class CompletenessReason(ReasonKind):
    """Reasons why a parser reads less than another one."""

    INCOMPLETE = "{case}: {problem}; {other} reads it"
    LOSES_STREAM = "{case}: lost token by token; {other} loses less"
    READS_UNMARKED = "it reads a call without its markers too"


def attainable(verdicts: Iterable[ParserVerdict], *, streamed: bool = False) -> frozenset[str]:
    """Return the cases that a parser reads; one that reads calls without their markers sets no standard.

    With ``streamed`` those that one parser reads whole and token by token.
    """
    reading = [v for v in verdicts if v.reads]
    strict = [v for v in reading if not v.liberal] or reading
    return frozenset(case for v in strict for case in v.passed if not streamed or case not in v.stepwise)


def shortfall(verdict: ParserVerdict, attained: frozenset[str]) -> tuple[str, ...]:
    """Return the cases that the parser fails and another one reads."""
    return tuple(case for case in verdict.lost if case in attained)


def score(verdict: ParserVerdict, sound: frozenset[str], attained: frozenset[str]) -> tuple[int, int, int]:
    """Return how much a parser loses of what a sound model writes: of the cases that another one reads whole
    and streamed, of those that are lost in a stream, and of these in requests that set nothing.
    """
    streamed = {*regular(verdict.stepwise), *regular(shortfall(verdict, attained))}
    return len(regular(shortfall(verdict, sound))), len(streamed), len(streamed.intersection(verdict.default))


def lost_by_default(verdict: ParserVerdict) -> list[str]:
    """Return the regular cases of requests that set nothing, and that the parser loses token by token."""
    return [case for case in regular(verdict.stepwise) if case in verdict.default]


def regular(cases: Iterable[str]) -> list[str]:
    """Return the cases that a model writes in its own format."""
    return [case for case in cases if case not in IRREGULAR]


def ranked(
    verdicts: Sequence[ParserVerdict],
    closeness: Mapping[str, tuple[int, ...]],
    rarity: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[ParserVerdict, ...]:
    """Return the verdicts, the most complete first.

    Completeness is first the regular cases, whole and token by token (see ``score``), then the irregular
    ones. Among equals come parsers with the fewest losses in larger pieces, without a setting of the
    document, with the closest markers (the least ``closeness``), that need no token, and without a grammar
    that forbids the format. The first of those that are left equal is the one with the least ``rarity``.
    """
    rare = rarity or {}
    attained, sound = attainable(verdicts), attainable(verdicts, streamed=True)
    last = max(closeness.values(), default=())

    def key(verdict: ParserVerdict) -> tuple[Any, ...]:
        name = verdict.parser
        whole = shortfall(verdict, attained)
        return (
            not verdict.reads, verdict.liberal, *score(verdict, sound, attained), len(regular(whole)),
            len(whole), len(verdict.stepwise), verdict.losses, bool(verdict.setting),
            closeness.get(name, last), verdict.guessed, verdict.forbidden is not None, rare.get(name, ()),
            name,
        )  # fmt: skip

    return tuple(sorted(verdicts, key=key))


def complete(verdicts: Sequence[ParserVerdict]) -> list[str]:
    """Return the parsers that lose the fewest regular cases, whole and streamed, in the verdicts' order."""
    attained, sound = attainable(verdicts), attainable(verdicts, streamed=True)
    reading = [v for v in verdicts if v.reads]
    strict = [v for v in reading if not v.liberal] or reading
    scores = {v.parser: score(v, sound, attained) for v in strict}
    least = min(scores.values(), default=None)
    return [name for name, score in scores.items() if score == least]


def incomplete(verdicts: Sequence[ParserVerdict]) -> dict[str, Reason]:
    """Return for each parser that reads less than the first one its first case that this one reads."""
    attained, sound = attainable(verdicts), attainable(verdicts, streamed=True)
    best = set(complete(verdicts))
    first = next((v for v in verdicts if v.parser in best), None)
    found = {}
    for verdict in verdicts:
        if first is None or not verdict.reads or verdict.parser in best:
            continue
        # A setting of the document may spare the first parser a case: then another one reads it.
        lacking = regular(shortfall(verdict, frozenset(first.passed)))
        lacking = lacking or regular(shortfall(verdict, attained))
        streamed = [case for case in regular(verdict.stepwise) if case not in first.stepwise]
        less = score(verdict, sound, attained)[0] > score(first, sound, attained)[0]
        if lacking and (less or not streamed):
            other = next(v.parser for v in (first, *verdicts) if lacking[0] in v.passed)
            found[verdict.parser] = Reason(
                CompletenessReason.INCOMPLETE, case=lacking[0], problem=verdict.lost[lacking[0]],
                other=other, count=len(lacking),
            )  # fmt: skip
        elif streamed:
            found[verdict.parser] = Reason(
                CompletenessReason.LOSES_STREAM, case=streamed[0], other=first.parser
            )
        else:
            found[verdict.parser] = Reason(CompletenessReason.READS_UNMARKED)
    return found


def equals(verdicts: Sequence[ParserVerdict]) -> dict[str, tuple[str, ...]]:
    """Return for each passing parser the others that differ from it in nothing that the proof observes."""
    groups: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.reads and verdict.effect:
            groups.setdefault(verdict.effect, []).append(verdict.parser)
    return {
        name: tuple(other for other in names if other != name) for names in groups.values() for name in names
    }
