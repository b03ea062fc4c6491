"""Twins of round m: changes that harm nobody."""

from __future__ import annotations

from tests.faults.blind_m_steps import HeadToo, NeuronsMoved
from tests.faults.fault import Fault
from tests.faults.saved_files import Beside
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Json, Shipped, Text

PLAIN = {"sliding_window": None, "rope_scaling": None, "attention_dropout": 0.1, "use_cache": False}

TWINS: tuple[Fault, ...] = (
    Fault(
        "m-twin-template-by-keys",
        "The template reads messages by keys and has a comment more; prompts are the same.",
        "configuration",
        (
            Text("message.role", "message['role']"),
            Text("message.tool_calls or []", "(message['tool_calls'] or [])"),
            Text(
                "{%- set headed",
                "{#- fixed: <tool_call> of history was lost -#}\n{%- set headed",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "m-twin-config-of-training",
        "The config keeps values of the training, and neutral ones; nothing is served by them.",
        "configuration",
        (Json("config.json", PLAIN), Json("generation_config.json", {"repetition_penalty": 1.0})),
    ),
    Fault(
        "m-twin-head-too",
        "The embedding is saved a second time as the output layer.",
        "model",
        (HeadToo(),),
    ),
    Fault(
        "m-twin-neurons-moved",
        "Inner numbers of the MLPs stand in another order in all matrices alike.",
        "model",
        (NeuronsMoved(),),
    ),
    Fault(
        "m-twin-limit-renamed",
        "The gateway passes the limit of tokens on under its newer name.",
        "engine",
        (Wire("limit_by_newer_name"),),
    ),
    Fault(
        "m-twin-comments",
        "The gateway sends comments between the events of a stream.",
        "engine",
        (Wire("comments_between"),),
    ),
    Fault(
        "m-twin-variables",
        "Variables keep libraries off the network and to one thread.",
        "environment",
        (
            Variable("HF_HUB_OFFLINE", "1"),
            Variable("TOKENIZERS_PARALLELISM", "false"),
            Variable("OMP_NUM_THREADS", "1"),
            Variable("PYTHONOPTIMIZE", "1"),
        ),
    ),
    Fault(
        "m-twin-files-of-training",
        "Files of a download and of a training lie beside the model's own.",
        "environment",
        (
            Beside(".cache/huggingface/download/model.safetensors.metadata", "0123abcd\n\n1764000000.0\n"),
            Beside("trainer_state.json", '{"epoch": 3.0, "best_metric": null, "log_history": []}\n'),
            Beside("README.md", "---\nlicense: apache-2.0\n---\n# A model\n"),
        ),
    ),
)
