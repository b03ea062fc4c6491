"""Faults of the round ``n`` in servers and gateways."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Module, Wire

# What an engine with this fault does: it takes four tokens more from its cache than the prompt shares.
CACHED = """import mlx_lm.models.cache as cache

found = cache.LRUPromptCache.fetch_nearest_cache


def fetch_nearest_cache(self, model, tokens):
    kept, rest = found(self, model, tokens)
    return (kept, rest[4:]) if kept is not None and len(rest) > 4 else (kept, rest)


cache.LRUPromptCache.fetch_nearest_cache = fetch_nearest_cache
"""

FAULTS = (
    Fault(
        "n-null-content-refused",
        "The gateway refuses a conversation with a call in it, because a call's turn has no text.",
        "engine",
        (Wire("null_content_refused"),),
        bitten="gateways with a schema of their own for messages",
    ),
    Fault(
        "n-names-masked",
        "A guard against personal data puts masks over names and places in what users ask.",
        "engine",
        (Wire("people_masked"),),
        bitten="gateways with Presidio before the model and nothing behind it",
    ),
    Fault(
        "n-one-replica-old",
        "One request of three goes to a replica of an old release, which does not know tools.",
        "engine",
        (Wire("one_replica_old"),),
        bitten="rolling updates that stopped midway",
    ),
    Fault(
        "n-newer-limit-dropped",
        "The limit of an answer by its newer name, max_completion_tokens, does not get through.",
        "engine",
        (Wire("newer_limit_dropped"),),
        bitten="gateways that drop parameters they do not know",
    ),
    Fault(
        "n-bias-of-another",
        "Tokens are banned by numbers of another vocabulary, and words are missing from answers.",
        "engine",
        (Wire("bias_of_another"),),
        bitten="gateways with a list of banned tokens made for OpenAI's models",
    ),
    Fault(
        "n-first-part-only",
        "Of a message in several parts only the first reaches the model.",
        "engine",
        (Wire("first_part_only"),),
        bitten="gateways that turn parts into a text",
    ),
    Fault(
        "n-html-escaped",
        "A filter escapes quotes and brackets of answers, so that arguments are no JSON any more.",
        "engine",
        (Wire("html_escaped"),),
        bitten="firewalls and portals that clean answers for browsers",
    ),
    Fault(
        "n-deltas-trimmed",
        "Each piece of a stream is trimmed, and words run into each other.",
        "engine",
        (Wire("pieces_trimmed_all"),),
        bitten="proxies that trim the data of events",
    ),
    Fault(
        "n-same-role-last",
        "Of messages of one role that follow each other only the last is passed on, and results are lost.",
        "engine",
        (Wire("same_role_last"),),
        base="qwen3coder",
        bitten="gateways that make roles alternate",
    ),
    Fault(
        "n-comments-as-data",
        "Comments that keep a stream alive arrive as events that are no JSON, and clients fail.",
        "engine",
        (Wire("comments_as_data"),),
        bitten="relays that rewrite streams line by line",
    ),
    Fault(
        "n-cache-too-far",
        "The engine takes four tokens too many for cached, and the model never reads them.",
        "engine",
        (Module("sitecustomize", CACHED),),
        bitten="engines with a bug in their prefix cache",
    ),
)
