"""Faults of the round k in what stands between a client and its engine."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Wire

FAULTS = (
    Fault(
        "k-texts-encoded-twice",
        "Letters beyond ASCII, quotes and line breaks of messages reach the model as escapes.",
        "engine",
        (Wire("k_texts_encoded_twice"),),
    ),
    Fault(
        "k-newer-limit-dropped",
        "A limit by its newer name does not get through: answers are longer than was paid for.",
        "engine",
        (Wire("k_newer_limit_dropped"),),
        bitten="clients of OpenAI's newer libraries",
    ),
    Fault(
        "k-private-masked",
        "Names and numbers are masked on the way: the model never learns who asks, or what a tool measured.",
        "engine",
        (Wire("k_private_masked"),),
    ),
    Fault(
        "k-replica-down",
        "Each fifth request goes to a replica that is down, and fails.",
        "engine",
        (Wire("k_replica_down"),),
    ),
    Fault(
        "k-answers-alike",
        "A cache takes questions that begin alike for the same: who asks for Oslo is told of Rome.",
        "engine",
        (Wire("k_answers_alike"),),
    ),
    Fault(
        "k-names-camel",
        "Calls name a tool that the client does not have: getWeather for get_weather.",
        "engine",
        (Wire("k_names_camel"),),
    ),
    Fault(
        "k-content-in-parts",
        "Whole answers have a list of parts where clients expect a text.",
        "engine",
        (Wire("k_content_in_parts"),),
    ),
    Fault(
        "k-chunks-again",
        "Pieces of a stream arrive twice: words are repeated.",
        "engine",
        (Wire("k_chunks_again"),),
    ),
    Fault(
        "k-comments-as-data",
        "Signs of life in a stream arrive as events that are no JSON: clients break off.",
        "engine",
        (Wire("k_comments_as_data"),),
    ),
    Fault(
        "k-blank-lines-lost",
        "Events of a stream are not parted: clients that follow the format read one large broken event.",
        "engine",
        (Wire("k_blank_lines_lost"),),
    ),
    Fault(
        "k-stream-cut",
        "Streams of more than eight thousand bytes break off in the middle.",
        "engine",
        (Wire("k_stream_cut"),),
    ),
)
