"""Blind round o, environment: the machine, its packages, limits, and files that changed after the import."""

from __future__ import annotations

from tests.faults.blind_o_steps import LogDiskFull, OldRecord, OldRelease
from tests.faults.fault import Fault
from tests.faults.rebuilt import Hole
from tests.faults.starting import Limited, Module
from tests.faults.steps import FileOf, Gone, Recorded

QUEUE = '''"""Jobs to do this week."""

JOBS = ["backup", "rotate logs"]


def add(job):
    JOBS.append(job)
'''

FAULTS = (
    Fault(
        "o-template-not-copied",
        "The folder was copied by the patterns *.json and *.safetensors: the chat template stayed behind.",
        "environment",
        (Gone("chat_template.jinja"), Recorded()),
    ),
    Fault(
        "o-queue-shadowed",
        "Somebody's queue.py lies in a folder of PYTHONPATH, and hides Python's own: nothing starts.",
        "environment",
        (Module("queue", QUEUE),),
    ),
    Fault(
        "o-old-tokenizers",
        "An older release of a package lies before the engine's own, and transformers refuses it.",
        "environment",
        (OldRecord("tokenizers", "0.13.3"),),
    ),
    Fault(
        "o-old-jinja",
        "An update of another program put Jinja back: every chat ends in an error.",
        "environment",
        (OldRelease("jinja2", "3.0.3"),),
    ),
    Fault(
        "o-log-disk-full",
        "The disk of the log is full a while after the start, and each request dies where it is logged.",
        "environment",
        (LogDiskFull(3000),),
    ),
    Fault(
        "o-blocks-zeroed",
        "A bad block of the disk reads as zeros in the middle of the weights since the import.",
        "environment",
        (Hole(0.35, 0.6), Recorded()),
        base="mistral",
    ),
    Fault(
        "o-tokenizer-of-the-neighbour",
        "Somebody copied the tokenizer of another model into the folder after the import.",
        "environment",
        (FileOf("glm", "tokenizer.json"), Recorded()),
        base="qwen3coder",
    ),
    Fault(
        "o-processor-seconds",
        "The machine ends programs after some seconds of processor time: the server dies while in use.",
        "environment",
        (Limited("RLIMIT_CPU", 2),),
    ),
)
