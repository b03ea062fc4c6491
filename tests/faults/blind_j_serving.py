"""Faults of the round j in the server, and in what stands between it and its clients."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Module, Wire

CACHE_OFF_BY_ONE = """
from mlx_lm.models.cache import LRUPromptCache

fetch = LRUPromptCache.fetch_nearest_cache


def fetched(self, model, tokens):
    cache, rest = fetch(self, model, tokens)
    return (cache, rest) if cache is None or len(rest) < 3 else (cache, rest[1:])


LRUPromptCache.fetch_nearest_cache = fetched
"""

SERVING = (
    Fault(
        "j-prefix-off-by-one",
        "Where the cache has a prompt's beginning, the engine leaves out the token behind it.",
        "engine",
        (Module("sitecustomize", CACHE_OFF_BY_ONE),),
    ),
    Fault(
        "j-first-event-skipped",
        "The gateway leaves out the first event of each stream, and with it the first words.",
        "engine",
        (Wire("j_first_event_skipped"),),
        base="mistral",
        bitten="clients of OpenAI, whose first event has the role alone",
    ),
    Fault(
        "j-deltas-cumulate",
        "Streams repeat all the text so far in each event, and clients join them all.",
        "engine",
        (Wire("j_deltas_cumulate"),),
        bitten="gateways in front of APIs with incremental_output off",
    ),
    Fault(
        "j-keys-in-camel-case",
        "A middleware renames the keys of answers, and clients find no calls and no end.",
        "engine",
        (Wire("j_keys_in_camel_case"),),
        base="qwen3coder",
    ),
    Fault(
        "j-answers-escaped",
        "A filter against scripts escapes quotes, and arguments are no JSON any more.",
        "engine",
        (Wire("j_answers_escaped"),),
    ),
    Fault(
        "j-empty-is-failure",
        "The gateway takes an answer without text, such as a call, for a failure.",
        "engine",
        (Wire("j_empty_is_failure"),),
        base="glm",
    ),
    Fault(
        "j-empty-turns-dropped",
        "The gateway leaves out turns without text, so that earlier calls are gone from the conversation.",
        "engine",
        (Wire("j_empty_turns_dropped"),),
    ),
    Fault(
        "j-places-masked",
        "A guard of personal data masks places and names in questions.",
        "engine",
        (Wire("j_places_masked"),),
        bitten="users of guards that do not put the words back",
    ),
    Fault(
        "j-first-system-kept",
        "The gateway keeps the first system turn for all later chats.",
        "engine",
        (Wire("j_first_system_kept"),),
        base="qwen3coder",
    ),
    Fault(
        "j-stream-ignored",
        "Clients that want a stream get one piece of JSON, and wait for events.",
        "engine",
        (Wire("j_stream_ignored"),),
    ),
    Fault(
        "j-replica-without-model",
        "One of four replicas does not have the model, and each fourth chat is an error.",
        "engine",
        (Wire("j_replica_without_model"),),
    ),
)
