"""Faults of servers, of the way they were started, and of gateways before them."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Arguments, Wire

FLAGS_OF_MLX = dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "it has no such options")

ENGINE = (
    Fault(
        "f-cache-without-tools-in-its-key",
        "The gateway's cache answers a question with tools as it was answered without them.",
        "engine",
        (Wire("tools_not_in_the_key"),),
        bitten="the cache's key leaves out tools, tool_choice and response_format, OmniRoute 12734 and 12307",
    ),
    Fault(
        "f-gateway-masks-names",
        "A filter for personal data masks names and places on the way in, and unmasks nothing.",
        "engine",
        (Wire("names_masked"),),
        bitten="masked values reach arguments of calls, LiteLLM 30723",
    ),
    Fault(
        "f-gateway-strips-unknown-fields",
        "The gateway lets through the fields of an old list, without switches, limits and counts.",
        "engine",
        (Wire("unknown_stripped"),),
        bitten="strip_unknown drops max_completion_tokens and chat_template_kwargs, semantic-router 2128",
    ),
    Fault(
        "f-replica-of-last-month",
        "Behind the balancer one of three replicas was never restarted, and knows no tools.",
        "engine",
        (Wire("stale_replica"),),
    ),
    Fault(
        "f-gateway-streams-begin-again",
        "The gateway gives up a slow stream and begins another, behind what it has already passed on.",
        "engine",
        (Wire("stream_begun_again"),),
        bitten="a retry repeats deltas that were already sent, nanobot 4038",
    ),
    Fault(
        "f-log-clips-answers",
        "Who writes the gateway's log shortens long texts in the answer that goes on to the client.",
        "engine",
        (Wire("long_texts_clipped"),),
    ),
    Fault(
        "f-gateway-appends-a-rule",
        "A guardrail of the gateway adds a system's turn behind the last question.",
        "engine",
        (Wire("guardrail_appended"),),
    ),
    Fault(
        "f-started-with-a-cache-of-two-bits",
        "The unit file starts the server with keys and values of two bits, to save memory.",
        "engine",
        (Arguments(("--kv-bits", "2", "--kv-group-size", "32", "--quantized-kv-start", "0")),),
        apart=FLAGS_OF_MLX,
    ),
    Fault(
        "f-started-hot",
        "The unit file's sampling, hot and without a limit of words, comes behind the document's.",
        "engine",
        (Arguments(("--temp", "1.6", "--top-k", "0", "--top-p", "1.0")),),
        apart=FLAGS_OF_MLX,
    ),
)
