"""Faults of the round k in machines, environments, and files that are no longer what was imported."""

from __future__ import annotations

from tests.faults.blind_k_steps import HalfOf
from tests.faults.fault import Fault
from tests.faults.starting import Limited, Module, Variable
from tests.faults.steps import Json, Recorded

OLD_JINJA = 'import jinja2\njinja2.__version__ = "3.0.3"\n'
OWN_QUEUE = "class Queue(list):\n    def put(self, item):\n        self.append(item)\n"
FAST_JSON = """import json

_dumps = json.dumps


def dumps(obj, default=None, indent=None, sort_keys=False, separators=None, cls=None):
    return _dumps(obj, default=default, indent=indent, sort_keys=sort_keys, separators=separators, cls=cls)


json.dumps = dumps
"""

FAULTS = (
    Fault(
        "k-jinja-too-old",
        "The package for templates is too old: the server starts, and each chat ends in an error.",
        "environment",
        (Module("sitecustomize", OLD_JINJA),),
    ),
    Fault(
        "k-queue-shadowed",
        "A file of somebody's own has the name of a module that the engine needs: it does not start.",
        "environment",
        (Module("queue", OWN_QUEUE),),
    ),
    Fault(
        "k-json-replaced",
        "A faster package took the place of json and knows fewer options: chats with tools end in an error.",
        "environment",
        (Module("sitecustomize", FAST_JSON),),
    ),
    Fault(
        "k-warnings-are-errors",
        "A variable makes each warning an error: the server never serves.",
        "environment",
        (Variable("PYTHONWARNINGS", "error"),),
    ),
    Fault(
        "k-no-temporary-folder",
        "The folder for temporary files is not there: kernels cannot be compiled.",
        "environment",
        (Variable("TMPDIR", "/mnt/scratch/gone"),),
    ),
    Fault(
        "k-few-files",
        "The system lets the server open too few files: it does not start.",
        "environment",
        (Limited("RLIMIT_NOFILE", 1024),),
    ),
    Fault(
        "k-half-copied",
        "A copy of new weights over old ones was cut short: the second half is another model's.",
        "environment",
        (Recorded(), HalfOf("qwen3coder")),
    ),
    Fault(
        "k-rope-edited",
        "Somebody edited config.json on the machine for longer prompts: positions mean something else now.",
        "environment",
        (Recorded(), Json("config.json", {"rope_theta": 1000000.0})),
    ),
)
