"""Faults of round l whose part is ``engine``."""

from __future__ import annotations

from tests.faults.blind_l_machine_steps import Changed
from tests.faults.fault import Fault
from tests.faults.starting import Wire

UNTRIMMED = """
def trim_prompt_cache(cache, num_tokens):
    return num_tokens
"""

FAULTS = (
    Fault(
        "l-asked-alike",
        "A cache takes questions that share most words for the same, and answers for the wrong city.",
        "engine",
        (Wire("l_asked_alike"),),
        bitten="users of semantic caches",
    ),
    Fault(
        "l-names-in-camel-case",
        "A gateway writes get_weather as getWeather, and the client has no such tool.",
        "engine",
        (Wire("l_names_in_camel_case"),),
    ),
    Fault(
        "l-falsy-dropped",
        "A gateway drops false and 0 from requests, so that thinking cannot be switched off.",
        "engine",
        (Wire("l_falsy_dropped"),),
        bitten="`if value:` where `is not None` was meant",
    ),
    Fault(
        "l-pieces-overtake",
        "Pieces of a stream arrive in another order than they were written in.",
        "engine",
        (Wire("l_pieces_overtake"),),
    ),
    Fault(
        "l-first-part-only",
        "Of a message in several parts the first alone reaches the model.",
        "engine",
        (Wire("l_first_part_only"),),
        base="qwen3coder",
    ),
    Fault(
        "l-places-masked",
        "A filter for personal data masks names of places in arguments, and tools are asked for <LOCATION>.",
        "engine",
        (Wire("l_places_masked"),),
        base="mistral",
    ),
    Fault(
        "l-ends-at-timeout",
        "A proxy ends streams that last too long, without an end and without an error.",
        "engine",
        (Wire("l_ends_at_timeout"),),
        bitten="proxy_read_timeout of 60 seconds",
    ),
    Fault(
        "l-system-as-developer",
        "A gateway calls the system's role developer, a role that the model was never trained on.",
        "engine",
        (Wire("l_system_as_developer"),),
        base="qwen3coder",
    ),
    Fault(
        "l-pieces-trimmed",
        "Each streamed piece loses the spaces around it, and words run together.",
        "engine",
        (Wire("l_pieces_trimmed"),),
    ),
    Fault(
        "l-calls-glued",
        "Two calls of an answer come out as one with the arguments of both, which are no JSON.",
        "engine",
        (Wire("l_calls_glued"),),
        base="glm",
    ),
    Fault(
        "l-cache-untrimmed",
        "Where a prompt begins like an earlier one, the rest of that one is still read, too.",
        "engine",
        (Changed("mlx_lm.models.cache", UNTRIMMED),),
        bitten="prompts of other users that leak through a prefix cache",
    ),
)
