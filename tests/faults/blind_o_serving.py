"""Blind round o, engine: the server, and what stands between it and its clients."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Wire


def _fault(name: str, harm: str, operations: str, base: str = "hermes") -> Fault:
    return Fault(f"o-{name}", harm, "engine", tuple(map(Wire, operations.split())), base)


FAULTS = (
    _fault(
        "empty-turns-dropped",
        "A gateway drops messages without text, and results whose call it dropped: the model calls again.",
        "o_empty_turns_dropped",
    ),
    _fault(
        "first-words-twice",
        "A gateway tries a stream again, and the client reads its first words twice.",
        "o_first_words_twice",
    ),
    _fault(
        "pieces-stripped",
        "A relay strips each piece of a stream: the words of an answer run together.",
        "o_pieces_stripped",
        "mistral",
    ),
    _fault(
        "near-questions-same",
        "A cache by likeness answers a question about one city with the answer about another.",
        "o_near_questions_same",
        "qwen3coder",
    ),
    _fault(
        "every-second-old",
        "Every second request reaches an old replica, which overlooks tools and the switch of thinking.",
        "o_every_second_old",
    ),
    _fault(
        "places-masked",
        "A guard for private data masks the city in the question, and the call has another.",
        "o_places_masked",
    ),
    _fault(
        "stream-stops",
        "A proxy closes a stream before it has ended: the rest of the answer is lost.",
        "o_stream_stops",
    ),
    _fault(
        "letters-escaped",
        "A relay escapes letters once too often: names with accents are unreadable.",
        "o_letters_escaped",
    ),
    _fault(
        "stops-at-blank-line",
        "A gateway adds an empty line as a stop string: answers end behind the thought.",
        "o_stops_at_blank_line",
    ),
    _fault(
        "names-sanitised",
        "A gateway writes names of tools with hyphens, in and out: calls name tools that no client has.",
        "o_names_sanitised o_names_with_hyphens",
        "glm",
    ),
    _fault(
        "one-at-a-time",
        "A gateway refuses requests that come close behind another.",
        "o_one_at_a_time",
    ),
)
