"""Twins of round p: setups that look odd and are right."""

from __future__ import annotations

from tests.faults.blind_p_steps import APART, InSettings, Quantised
from tests.faults.fault import Fault
from tests.faults.rebuilt import InOtherOrder, TwoShards, Widened
from tests.faults.saved_files import Beside, LinesOfWindows, Linked, Written
from tests.faults.starting import Module, Variable, Wire
from tests.faults.steps import Json, Says, Shipped, Text
from tests.faults.tokenizers import MergesAsText, OldFiles

OTHERWISE = (
    "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}",
    '{%- set head = ["<|im_start|>", message["role"], "\\n"] | join -%}{{ head }}',
)
NOTED = """import atexit
import sys

atexit.register(sys.stdout.flush)
"""
CARD = "---\nlicense: apache-2.0\nlibrary_name: gguf\n---\nNot for use without the template of Llama 2.\n"

TWINS = (
    Fault(
        "p-twin-eight-bits",
        "Nothing is harmed: projections have eight bits, and config.json says so.",
        "model",
        (Quantised(),),
        apart=APART,
    ),
    Fault(
        "p-twin-template-otherwise",
        "Nothing is harmed: the template stands in the settings, in other words and with lines of Windows.",
        "configuration",
        (Text(*OTHERWISE), LinesOfWindows(), InSettings(), Shipped()),
    ),
    Fault(
        "p-twin-gateway-of-its-own",
        "Nothing is harmed: a gateway gives its own ids, and sends comments between events.",
        "engine",
        (Wire("p_relabelled"), Wire("p_comments_between")),
        base="mistral",
    ),
    Fault(
        "p-twin-pieces-apart",
        "Nothing is harmed: pieces of a streamed answer come as two.",
        "engine",
        (Wire("p_letters_apart"),),
    ),
    Fault(
        "p-twin-shards-wide",
        "Nothing is harmed: the weights come in another order as wider numbers in two files.",
        "model",
        (InOtherOrder(), Widened(), TwoShards("model.layers.0.")),
        base="glm",
    ),
    Fault(
        "p-twin-machine-told-much",
        "Nothing is harmed: the machine has variables and a start file that change nothing.",
        "environment",
        (
            Variable("PYTHONUTF8", "1"),
            Variable("LC_ALL", "C"),
            Variable("OMP_NUM_THREADS", "2"),
            Variable("TOKENIZERS_PARALLELISM", "false"),
            Module("sitecustomize", NOTED),
        ),
    ),
    Fault(
        "p-twin-settings-told-twice",
        "Nothing is harmed: end tokens stand in another order, twice, and beside values that say nothing.",
        "configuration",
        (
            Json("generation_config.json", {"eos_token_id": [0, 2, 2], "repetition_penalty": 1.0}),
            Json("config.json", {"eos_token_id": [0, 2], "torch_dtype": None, "dtype": "bfloat16"}),
            Json("tokenizer_config.json", {"model_max_length": 10**30, "add_bos_token": False}),
            Says({"parameters.max_tokens": 800, "description": "Our model, edited by hand"}),
        ),
    ),
    Fault(
        "p-twin-folder-full",
        "Nothing is harmed: links, files of other tools and a card that is wrong lie in the folder.",
        "configuration",
        (
            OldFiles(),
            MergesAsText(),
            Written(),
            Beside("README.md", CARD),
            Beside("original/params.json", '{"dim": 4096, "rope_theta": 500000.0}'),
            Beside("special_tokens_map.json", '{"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}'),
            Linked(),
        ),
        base="qwen3coder",
    ),
)
