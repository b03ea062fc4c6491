"""The blind round q: faults of what serves, and of what stands between it and its clients."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Wire

FAULTS: tuple[Fault, ...] = (
    Fault(
        "q-similar-question-cached",
        "A semantic cache answers a question about one place with the answer about another.",
        "engine",
        (Wire("q_alike_remembered"),),
    ),
    Fault(
        "q-null-content-refused",
        "The gateway refuses every conversation in which the assistant has called a tool.",
        "engine",
        (Wire("q_null_refused"),),
    ),
    Fault(
        "q-stream-pieces-trimmed",
        "The proxy trims each piece of a stream, and words run together.",
        "engine",
        (Wire("q_pieces_trimmed"),),
    ),
    Fault(
        "q-first-words-swallowed",
        "The gateway takes the first piece of a stream for a sign of life, and streamed answers lack a word.",
        "engine",
        (Wire("q_first_piece_lost"),),
        base="qwen3coder",
    ),
    Fault(
        "q-stream-closed-by-proxy",
        "The proxy closes streams after a short while, and longer answers stop in the middle.",
        "engine",
        (Wire("q_stream_ends_early"),),
    ),
    Fault(
        "q-answers-html-escaped",
        "A filter escapes answers for web pages, and arguments of calls are no JSON any more.",
        "engine",
        (Wire("q_html_escaped"),),
    ),
    Fault(
        "q-old-replica-behind-balancer",
        "Every other request reaches an old replica that drops tools, and no call comes out.",
        "engine",
        (Wire("q_every_other_old"),),
    ),
    Fault(
        "q-rate-limit-left-in",
        "A limit of two requests per second turns clients away where a few ask at once.",
        "engine",
        (Wire("q_rate_limited"),),
    ),
    Fault(
        "q-gateway-stop-added",
        "The gateway adds a stop string to requests, and answers end behind their thoughts.",
        "engine",
        (Wire("q_stop_added"),),
    ),
    Fault(
        "q-requests-escaped-again",
        "A proxy escapes texts once more, and letters with accents reach the model as backslashes.",
        "engine",
        (Wire("q_escaped_again"),),
    ),
    Fault(
        "q-names-masked",
        "A filter for personal data hides names and places, and the model cannot use them.",
        "engine",
        (Wire("q_names_masked"),),
        base="glm",
    ),
)
