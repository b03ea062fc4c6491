"""Faults of round p in the machine: packages, variables, limits, files that changed after the import."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.rebuilt import Hole
from tests.faults.saved_files import Linked
from tests.faults.starting import Limited, Module
from tests.faults.steps import TEMPLATE, FileOf, Recorded

NO_FILE_READ = """import transformers

init = transformers.PreTrainedTokenizerBase.__init__


def without_template(self, *args, **kwargs):
    kwargs.pop("chat_template", None)
    init(self, *args, **kwargs)


transformers.PreTrainedTokenizerBase.__init__ = without_template
"""
OLD_JINJA = """import jinja2

jinja2.__version__ = "2.11.3"
"""
OWN_QUEUE = """import json


def jobs(path):
    with open(path) as file:
        return json.load(file)
"""
RETURNS_MAPPING = """import transformers

apply = transformers.PreTrainedTokenizerBase.apply_chat_template


def as_mapping(self, *args, **kwargs):
    kwargs["return_dict"] = kwargs.get("tokenize", True)
    return apply(self, *args, **kwargs)


transformers.PreTrainedTokenizerBase.apply_chat_template = as_mapping
"""

FAULTS = (
    Fault(
        "p-own-script-named-queue",
        "The server does not start, since a script of the operator hides a module of Python.",
        "environment",
        (Module("queue", OWN_QUEUE),),
    ),
    Fault(
        "p-template-file-unread",
        "Answers are noise, since the library of an older image does not read the file of the chat template.",
        "environment",
        (Module("sitecustomize", NO_FILE_READ),),
    ),
    Fault(
        "p-jinja-too-old",
        "Every chat ends in an error, since the template library was taken back to an old version.",
        "environment",
        (Module("sitecustomize", OLD_JINJA),),
    ),
    Fault(
        "p-library-returns-mapping",
        "Every chat ends in an error, since an updated library returns another kind of value.",
        "environment",
        (Module("sitecustomize", RETURNS_MAPPING),),
    ),
    Fault(
        "p-cache-pruned",
        "Chats have no template any more, since a clean-up of the cache took the file that a link leads to.",
        "environment",
        (Linked((TEMPLATE,)), Recorded()),
    ),
    Fault(
        "p-log-on-a-full-disk",
        "After some chats every client is cut off without an answer, since the log has no room to grow.",
        "environment",
        (Limited("RLIMIT_FSIZE", 3000),),
    ),
    Fault(
        "p-weights-with-a-hole",
        "Answers are noise, since a copy of the weights went on after the disk was full.",
        "environment",
        (Hole(0.45, 0.6), Recorded()),
        base="qwen3coder",
    ),
    Fault(
        "p-template-pulled",
        "Tool calls are lost, since the folder was updated to a template of another format.",
        "environment",
        (FileOf("qwen3coder", TEMPLATE), Recorded()),
    ),
)
