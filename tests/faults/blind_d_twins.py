"""Changes that harm nobody, beside the faults of ``blind_d.py``: each passes every probe."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.rebuilt import InOtherOrder, Padded
from tests.faults.saved_files import Linked, Written
from tests.faults.starting import Wire
from tests.faults.steps import Json, Shipped, Text
from tests.faults.tokenizers import OldFiles

TWINS: tuple[Fault, ...] = (
    Fault(
        "twin-files-as-links",
        "All files of the model are links into a cache's folder of blobs.",
        "environment",
        (Linked(),),
    ),
    Fault(
        "twin-dtype-by-its-newer-name",
        "config.json was saved by a newer library, which writes dtype for torch_dtype.",
        "configuration",
        (Json("config.json", {"torch_dtype": None, "dtype": "bfloat16"}),),
    ),
    Fault(
        "twin-embedding-padded",
        "The embedding has sixty-four further rows of nought, as kernels like it.",
        "model",
        (Padded(64),),
    ),
    Fault(
        "twin-tensors-in-another-order",
        "The weights were saved by another tool, in another order of tensors.",
        "model",
        (InOtherOrder(),),
    ),
    Fault(
        "twin-files-of-slow-tokenizers",
        "vocab.json and merges.txt lie beside tokenizer.json and hold the same.",
        "configuration",
        (OldFiles(),),
    ),
    Fault(
        "twin-tokenizer-written-again",
        "tokenizer.json was written again with indents, and letters beyond ASCII as numbers.",
        "configuration",
        (Written(),),
    ),
    Fault(
        "twin-events-with-names",
        "A gateway names the events of streams, ends lines as the standard wants it, and adds a field.",
        "engine",
        (Wire("events_named"), Wire("told_more")),
    ),
    Fault(
        "twin-template-with-a-macro",
        "The template begins its turns by a macro, is indented otherwise, and writes the same.",
        "configuration",
        (
            Text(
                "{%- set headed",
                "{%- macro begin(role) -%}{{- '<|im_start|>' ~ role -}}{%- endmacro %}\n\n\n{%- set headed",
            ),
            Text(
                "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}",
                "{{- begin(message.role) -}}\n      {{- '\\n' -}}",
            ),
            Shipped(),
        ),
    ),
)
