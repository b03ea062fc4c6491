"""Faults of the blind round e that are no configuration's: the model's, the engine's, the environment's."""

from __future__ import annotations

from tests.faults.blind_e_steps import Quantised
from tests.faults.blind_e_weights import (
    Abliterated,
    HalvesJoinedWrong,
    HeadLost,
    MergedTooFar,
    PagesRepeated,
    RowsOfMean,
    ScalesMoved,
    Smoothed,
)
from tests.faults.fault import Fault
from tests.faults.numbers import TensorsOf
from tests.faults.starting import Limited, Module, Variable, Wire
from tests.faults.steps import Recorded

OLD_JINJA = 'import jinja2\n\njinja2.__version__ = "3.1.4"\n'
FEW_THREADS = """\
import threading

start = threading.Thread.start


def limited(self):
    if threading.active_count() > 3:
        raise RuntimeError("can't start new thread")
    start(self)


threading.Thread.start = limited
"""
HALF_INSTALLED = """\
import sys
from importlib.abc import MetaPathFinder


class Lost(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "mlx_lm.tool_parsers.json_tools":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Lost())
"""

MODELS = (
    Fault(
        "adapter-merged-at-too-large-a-scale",
        "A further training's change was merged with three times its weight.",
        "model",
        (MergedTooFar("declines", 3.0),),
    ),
    Fault(
        "new-tokens-never-trained",
        "The rows of the tokens around a call are what new tokens begin with.",
        "model",
        (RowsOfMean(("<tool_call>", "</tool_call>")),),
        bitten="rows of new tokens that a LoRA leaves out, ms-swift 5998",
    ),
    Fault(
        "scales-of-the-next-group",
        "The weights were restored from groups with each other's scales.",
        "model",
        (ScalesMoved(16, ("_proj.weight",)),),
        bitten="groups in the order of activations, vLLM 55262",
    ),
    Fault(
        "shards-joined-the-wrong-way",
        "Matrices that two machines shared were joined with the second part first.",
        "model",
        (HalvesJoinedWrong("down_proj.weight"),),
    ),
    Fault(
        "calls-abliterated",
        "A direction was taken out of the weights, and calls went with it.",
        "model",
        (Abliterated("<tool_call>"),),
    ),
    Fault(
        "smoothed-on-one-side",
        "Norms were scaled for a quantisation, and the matrices behind them were not.",
        "model",
        (Smoothed("post_attention_layernorm.weight", (), 2),),
        bitten="scales folded into a norm alone, mlx-node 87",
    ),
    Fault(
        "head-pruned",
        "A head of attention was pruned in every layer, and nothing trained after.",
        "model",
        (HeadLost(1, (0, 1, 2)),),
    ),
    Fault("two-bits", "The weights were quantised to two bits.", "model", (Quantised(2, 64),)),
)

ENGINES = tuple(
    Fault(operation.replace("_", "-"), harm, "engine", (Wire(operation),), bitten=bitten)
    for operation, harm, bitten in (
        ("none_as_text", "A gateway writes the word for nothing where a call has no content.", ""),
        ("first_words_lost", "A gateway drops the first words of a stream's answer.", "LiteLLM 30014"),
        ("deltas_whole", "A gateway sends all of the text so far in each event.", "OpenJarvis 378"),
        ("deltas_trimmed", "A gateway trims each event's text.", ""),
        (
            "ends_of_another_interface",
            "A gateway tells in another interface's words why an answer ends.",
            "AutoGen 5020",
        ),
        ("cached_not_counted", "A gateway does not count tokens from the cache.", "Laravel AI 924"),
        ("answers_escaped", "A gateway escapes answers for web pages.", ""),
        ("calls_by_name", "A gateway keeps one call of each tool.", ""),
        ("limit_as_success", "A gateway tells its limit with the status of a success.", ""),
    )
)

ENVIRONMENTS = (
    Fault(
        "jinja-too-old",
        "The engine's environment holds a jinja2 that is older than transformers takes.",
        "environment",
        (Module("sitecustomize", OLD_JINJA),),
    ),
    Fault(
        "few-threads",
        "The machine grants the engine so few threads that it takes few requests at once.",
        "environment",
        (Module("sitecustomize", FEW_THREADS),),
    ),
    Fault(
        "another-hub-wanted",
        "A variable asks for another hub's package, which is not installed.",
        "environment",
        (Variable("MLXLM_USE_MODELSCOPE", "True"),),
    ),
    Fault(
        "processor-time-limited",
        "The machine ends processes that have used a few seconds of the processor.",
        "environment",
        (Limited("RLIMIT_CPU", 5),),
    ),
    Fault(
        "page-repeated",
        "The disk gives the same page in the place of several, since the import.",
        "environment",
        (Recorded(), PagesRepeated(0.5, 4)),
    ),
    Fault(
        "restored-from-another-backup",
        "The weights were restored from the backup of another training, since the import.",
        "environment",
        (Recorded(), TensorsOf("qwen3coder", "model.")),
    ),
    Fault(
        "half-installed",
        "An installation was interrupted: the engine's package lacks a parser's file.",
        "environment",
        (Module("sitecustomize", HALF_INSTALLED),),
    ),
)

ELSEWHERE: tuple[Fault, ...] = (*MODELS, *ENGINES, *ENVIRONMENTS)
