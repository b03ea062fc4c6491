"""Faults of round m in the server, or between it and its clients."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Wire

FAULTS: tuple[Fault, ...] = (
    Fault(
        "m-question-wrapped",
        "A search that finds nothing wraps each question in words of its own, and answers go astray.",
        "engine",
        (Wire("question_wrapped"),),
    ),
    Fault(
        "m-pieces-stripped",
        "Streamed words run together: white space around each piece is taken away.",
        "engine",
        (Wire("pieces_stripped"),),
    ),
    Fault(
        "m-places-masked",
        "Names of places in questions are replaced by a mark before the model sees them.",
        "engine",
        (Wire("places_masked"),),
    ),
    Fault(
        "m-stream-unheard",
        "A client that asks for a stream gets one object, which no reader of events understands.",
        "engine",
        (Wire("stream_unheard"),),
    ),
    Fault(
        "m-replica-gone",
        "Each fourth request goes to a replica that is gone, and fails.",
        "engine",
        (Wire("replica_gone"),),
    ),
    Fault(
        "m-content-in-parts",
        "The text of answers is a list of parts where clients expect text.",
        "engine",
        (Wire("answer_as_list_of_parts"),),
    ),
    Fault(
        "m-call-by-older-name",
        "Calls come under the name of an older interface, and clients see none.",
        "engine",
        (Wire("call_by_older_name"),),
    ),
    Fault(
        "m-finish-in-other-words",
        "Answers end with words of another interface; agents do not see that a call or a cut came.",
        "engine",
        (Wire("finish_in_other_words"),),
    ),
    Fault(
        "m-first-event-lost",
        "The first event of each stream does not arrive.",
        "engine",
        (Wire("first_event_lost"),),
        "qwen3coder",
    ),
    Fault(
        "m-events-repeated",
        "Each fifth event of a stream comes twice, so that words are doubled.",
        "engine",
        (Wire("events_repeated"),),
    ),
    Fault(
        "m-pings-as-events",
        "A ping comes as an event without choices, at which clients break.",
        "engine",
        (Wire("pings_as_events"),),
    ),
)
