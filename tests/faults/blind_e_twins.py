"""Twins of the blind round e: changes that look like faults, and after which a client gets the same."""

from __future__ import annotations

from tests.faults.blind_e_steps import Edits, Quantised, SavedAsTrained, TemplateTwice
from tests.faults.blind_e_weights import NeuronsReordered, Smoothed
from tests.faults.fault import Fault
from tests.faults.saved_files import Beside
from tests.faults.starting import Variable, Wire
from tests.faults.steps import Shipped

READERS = ("mlp.gate_proj.weight", "mlp.up_proj.weight")

TWINS: tuple[Fault, ...] = (
    Fault(
        "twin-saved-as-trained",
        "The tokenizer was saved with the cut and the filling up of its training, which a chat does not use.",
        "configuration",
        (SavedAsTrained(64),),
    ),
    Fault(
        "twin-marked-for-training",
        "The template marks what the assistant says, for a training to find it; the text is the same.",
        "configuration",
        (
            Shipped(),
            Edits(
                (
                    (
                        "{{- message.content or '' -}}\n    {%- for call",
                        "{%- generation -%}{{- message.content or '' -}}{%- endgeneration -%}{%- for call",
                    ),
                )
            ),
        ),
    ),
    Fault(
        "twin-copies-beside",
        "Beside the files lie a conflicting copy of the template and an older configuration.",
        "environment",
        (
            TemplateTwice("chat_template (conflicted copy).jinja", "<|im_start|>", "<|start|>"),
            Beside("config.json.orig", '{"model_type": "llama"}'),
        ),
    ),
    Fault(
        "twin-smoothed-on-both-sides",
        "Norms were scaled for a quantisation, and the matrices behind them take it back.",
        "model",
        (Smoothed("post_attention_layernorm.weight", READERS, 2),),
    ),
    Fault(
        "twin-neurons-reordered",
        "The inner numbers of each MLP stand in another order, in all of its matrices.",
        "model",
        (NeuronsReordered(),),
    ),
    Fault(
        "twin-eight-bits",
        "The matrices are quantised to eight bits in small groups, which is close enough.",
        "model",
        (Quantised(8, 32),),
    ),
    Fault(
        "twin-content-in-parts",
        "A gateway sends each text as a list of one part.",
        "engine",
        (Wire("content_in_parts"),),
    ),
    Fault(
        "twin-offline",
        "Variables forbid the libraries to ask the hub.",
        "environment",
        (Variable("HF_HUB_OFFLINE", "1"), Variable("TRANSFORMERS_OFFLINE", "1")),
    ),
)
