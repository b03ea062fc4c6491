"""Traits of conversations; a shape is one conversation by its traits, of which ``covering`` makes a list.

A shape has one trait of each factor. The first trait of a factor is the simplest one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Trait(StrEnum):
    """What a request has or lacks, of all that OpenAI's API permits."""

    NO_LEAD = "no-lead"
    SYSTEM = "system"
    DEVELOPER = "developer"
    FIRST_TURN = "first-turn"
    EARLIER_TURNS = "earlier-turns"
    EARLIER_CALLS = "earlier-calls"
    HUNDREDS_OF_TURNS = "hundreds-of-turns"
    QUESTION_LAST = "question-last"
    RESULT_LAST = "result-last"
    TWO_CALLS = "two-calls"
    TWO_ROUNDS = "two-rounds"
    HUNDREDS_OF_CALLS = "hundreds-of-calls"
    ONLY_CALLS = "only-calls"
    WORDS_BESIDE_CALLS = "words-beside-calls"
    NO_REASONING = "no-reasoning"
    REASONING = "reasoning"
    ARGUMENTS = "arguments"
    NO_ARGUMENTS = "no-arguments"
    NO_NAMES = "no-names"
    NAMES = "names"
    RESULTS_NAMED = "results-named"
    RESULTS_UNNAMED = "results-unnamed"
    NO_TOOLS = "no-tools"
    TOOLS = "tools"
    DESCRIBED = "described"
    NO_DESCRIPTION = "no-description"
    NULL_DESCRIPTION = "null-description"
    PARAMETERS = "parameters"
    NO_PARAMETERS = "no-parameters"
    NULL_PARAMETERS = "null-parameters"
    NO_PROPERTIES = "no-properties"
    NO_REQUIRED = "no-required"
    NESTED = "nested"
    CHOICES = "choices"
    DEFAULTS = "defaults"
    TOOL_TEMPLATE = "tool-template"  # of no factor: the repository has another template for tools


Shape = tuple[Trait, ...]
T = Trait
FACTORS: tuple[tuple[Trait, ...], ...] = (
    (T.NO_LEAD, T.SYSTEM, T.DEVELOPER),
    (T.FIRST_TURN, T.EARLIER_TURNS, T.EARLIER_CALLS, T.HUNDREDS_OF_TURNS),
    (T.QUESTION_LAST, T.RESULT_LAST, T.TWO_CALLS, T.TWO_ROUNDS, T.HUNDREDS_OF_CALLS),
    (T.ONLY_CALLS, T.WORDS_BESIDE_CALLS),
    (T.NO_REASONING, T.REASONING),
    (T.ARGUMENTS, T.NO_ARGUMENTS),
    (T.NO_NAMES, T.NAMES),
    (T.RESULTS_NAMED, T.RESULTS_UNNAMED),
    (T.NO_TOOLS, T.TOOLS),
    (T.DESCRIBED, T.NO_DESCRIPTION, T.NULL_DESCRIPTION),  # vLLM sends null for a key that a client left out
    (
        T.PARAMETERS, T.NO_PARAMETERS, T.NULL_PARAMETERS, T.NO_PROPERTIES, T.NO_REQUIRED, T.NESTED,
        T.CHOICES, T.DEFAULTS,
    ),
)  # fmt: skip
BASE: Shape = tuple(levels[0] for levels in FACTORS)
SIMPLEST = frozenset(BASE)
PLACE: Mapping[Trait, int] = {trait: n for n, levels in enumerate(FACTORS) for trait in levels}
CALLING = (T.RESULT_LAST, T.TWO_CALLS, T.TWO_ROUNDS, T.HUNDREDS_OF_CALLS, T.EARLIER_CALLS)
OF_CALLS = (T.WORDS_BESIDE_CALLS, T.NO_ARGUMENTS, T.RESULTS_UNNAMED)
LONG = (T.HUNDREDS_OF_TURNS, T.HUNDREDS_OF_CALLS)
# A trait and those that it needs one of; the first of them is given to a shape without any.
NEEDS: Mapping[Trait, tuple[Trait, ...]] = {
    **dict.fromkeys(OF_CALLS, CALLING),
    T.REASONING: (*CALLING, T.EARLIER_TURNS),
    # A name tells roles apart from each other, so there is more than one.
    T.NAMES: (T.EARLIER_TURNS, T.EARLIER_CALLS, T.HUNDREDS_OF_TURNS),
    **dict.fromkeys(CALLING, (T.TOOLS,)),
    **dict.fromkeys((*FACTORS[-2][1:], *FACTORS[-1][1:]), (T.TOOLS,)),
}
# Traits of what OpenAI's API leaves to the client, who can send a description, parameters, or a system turn.
OPTIONAL = frozenset({T.DEVELOPER, *FACTORS[-2][1:], *FACTORS[-1][1:5]})
# Traits that only requests with tools have.
NEEDS_TOOLS = frozenset({T.TOOLS, T.TOOL_TEMPLATE, *NEEDS} - {T.NAMES, T.REASONING})


def without(shape: Shape, trait: Trait) -> Shape:
    """Return the shape with the simplest trait in place of one."""
    return tuple(BASE[PLACE[trait]] if one is trait else one for one in shape)


def fits(shape: Shape) -> bool:
    """Return whether each trait of a shape has one of those that it needs."""
    return all(any(one in shape for one in NEEDS[trait]) for trait in shape if trait in NEEDS)


def special(shape: Shape) -> tuple[Trait, ...]:
    """Return the traits that are not the simplest ones."""
    return tuple(trait for trait in shape if trait not in SIMPLEST)
