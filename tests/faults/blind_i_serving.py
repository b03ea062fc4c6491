"""A ninth blind round: gateways before the engine, and the machine that it runs on."""

from __future__ import annotations

from tests.faults.blind_i_steps import CopyInterrupted
from tests.faults.fault import Fault
from tests.faults.starting import Limited, Module, NoModule, Variable, Wire
from tests.faults.steps import Recorded, Whole

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 361168\n"
)
NEAR = """import mlx.core as mx

whole = mx.fast.scaled_dot_product_attention


def near(q, k, v, *, scale, mask=None, **more):
    if q.shape[2] == 1 and k.shape[2] > 24:
        k, v = k[:, :, -24:], v[:, :, -24:]
        mask = mask[..., -24:] if isinstance(mask, mx.array) else mask
    return whole(q, k, v, scale=scale, mask=mask, **more)


mx.fast.scaled_dot_product_attention = near
"""

GATEWAYS = (
    Fault(
        "i-names-with-hyphens",
        "A gateway tells the names of tools with hyphens, and nobody puts the underscores back.",
        "engine",
        (Wire("names_with_hyphens"),),
        base="mistral",
    ),
    Fault(
        "i-canary-of-an-older-release",
        "A gateway sends each third request to an older release that knows neither tools nor switches.",
        "engine",
        (Wire("older_release_for_some"),),
    ),
    Fault(
        "i-preamble-of-the-house",
        "A gateway puts a system's turn of its own before whatever the client says.",
        "engine",
        (Wire("preamble_added"),),
    ),
    Fault(
        "i-opening-swallowed",
        "A gateway's streams begin without the first piece of the answer.",
        "engine",
        (Wire("opening_swallowed"),),
    ),
    Fault(
        "i-counts-as-text",
        "A gateway writes whole numbers of the usage as text.",
        "engine",
        (Wire("counts_told_as_text"),),
        bitten="the JSON of Protocol Buffers writes numbers of 64 bits so",
    ),
    Fault(
        "i-quotes-curled",
        "A filter for fine printing curls the quotes of answers and of arguments.",
        "engine",
        (Wire("quotes_curled"),),
    ),
    Fault(
        "i-calls-in-the-old-form",
        "A relay of an older interface tells a call as function_call.",
        "engine",
        (Wire("calls_in_the_old_form"),),
    ),
    Fault(
        "i-streams-cut",
        "A proxy closes each stream after a while, and nothing says that it was not the end.",
        "engine",
        (Wire("streams_cut"),),
    ),
    Fault(
        "i-events-delivered-again",
        "A queue between gateway and engine delivers some events of a stream twice.",
        "engine",
        (Wire("events_delivered_again"),),
    ),
)
MACHINE = (
    Fault(
        "i-copy-interrupted",
        "A copy of a newer upload over the weights was interrupted: one half is of each.",
        "environment",
        (CopyInterrupted("qwen3coder", 0.5), Recorded()),
    ),
    Fault(
        "i-pointer-for-weights",
        "The repository was cloned without its large files: the weights are a few lines of text.",
        "environment",
        (Whole(POINTER, "model.safetensors"), Recorded()),
    ),
    Fault(
        "i-no-jinja",
        "The engine's environment has lost the library that renders templates.",
        "environment",
        (NoModule("jinja2"),),
    ),
    Fault(
        "i-attention-of-an-accelerator",
        "A package in the engine's environment puts an attention in place that looks back a little way only.",
        "environment",
        (Module("sitecustomize", NEAR),),
    ),
    Fault(
        "i-processor-time-limited",
        "The machine ends each process after some seconds of processor time.",
        "environment",
        (Limited("RLIMIT_CPU", 6),),
    ),
    Fault(
        "i-log-may-not-grow",
        "No file may grow further: a quota, or a disk that is nearly full.",
        "environment",
        (Limited("RLIMIT_FSIZE", 12000),),
    ),
    Fault(
        "i-no-folder-for-scratch",
        "TMPDIR names a folder that is not there.",
        "environment",
        (Variable("TMPDIR", "/mnt/scratch/job-4711"),),
    ),
)
FAULTS = (*GATEWAYS, *MACHINE)
