"""Faults of round p in the server and in what stands between it and its clients."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Wire

FAULTS = (
    Fault(
        "p-pieces-trimmed",
        "In streamed answers all words run together, since a proxy trims each piece.",
        "engine",
        (Wire("p_deltas_trimmed"),),
    ),
    Fault(
        "p-calling-turns-dropped",
        "The model forgets the calls that it made, since a gateway drops turns without content.",
        "engine",
        (Wire("p_calls_without_text_dropped"),),
        base="mistral",
    ),
    Fault(
        "p-cache-by-likeness",
        "Who asks nearly the same as somebody before gets the answer to the other question.",
        "engine",
        (Wire("p_nearly_the_same"),),
    ),
    Fault(
        "p-escaped-for-html",
        "Arguments of calls are no JSON, since a firewall escapes quotes in answers.",
        "engine",
        (Wire("p_escaped_for_pages"),),
    ),
    Fault(
        "p-names-masked",
        "The model guesses which city or whose name was meant, since a privacy filter masks them.",
        "engine",
        (Wire("p_names_masked"),),
    ),
    Fault(
        "p-one-replica-of-two-older",
        "Every second answer has its tool call as text, since one of two servers runs an older version.",
        "engine",
        (Wire("p_old_replica"),),
    ),
    Fault(
        "p-stop-words-of-the-gateway",
        "Answers are empty behind the thoughts, since a gateway adds an empty line to the stop words.",
        "engine",
        (Wire("p_stops_added"),),
    ),
    Fault(
        "p-streams-mixed",
        "Two people who are answered at the same time find words of each other in their answers.",
        "engine",
        (Wire("p_streams_mixed"),),
    ),
    Fault(
        "p-stream-cut-at-buffer",
        "Longer streamed answers break off without a word, since a proxy passes on four kilobytes.",
        "engine",
        (Wire("p_cut_at_buffer"),),
    ),
    Fault(
        "p-stream-begun-again",
        "Streamed answers say their beginning twice, since a gateway tries again in the middle.",
        "engine",
        (Wire("p_begun_again"),),
    ),
    Fault(
        "p-stream-as-one-body",
        "Who wants a stream gets none and sees nothing, since a cache answers with a whole body.",
        "engine",
        (Wire("p_said_at_once"),),
        base="glm",
    ),
)
