"""Faults of the round j in the machine, the engine's environment, and files changed since the import."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Limited, Module, Variable
from tests.faults.steps import Json, Recorded, Text, Whole

OLD_JINJA = """
import jinja2
import transformers.utils.chat_template_utils as utils


def compiled(*arguments, **named):
    raise ImportError(
        "apply_chat_template requires jinja2>=3.1.0 to be installed. Your version is 3.0.3."
    )


jinja2.__version__ = "3.0.3"
utils._compile_jinja_template = utils._cached_compile_jinja_template = compiled
"""
RANDOM = '''
"""Draws a city for the demonstration."""

CITIES = ["Rome", "Oslo"]


def pick(number):
    return CITIES[number % len(CITIES)]
'''
ENDED_BY_TIMER = """
import os
import signal
import sys
import threading

if "server" in sys.orig_argv:
    timer = threading.Timer(15, os.kill, (os.getpid(), signal.SIGTERM))
    timer.daemon = True
    timer.start()
"""
POINTER = """version https://git-lfs.github.com/spec/v1
oid sha256:aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4
size 11422654
"""

MACHINE = (
    Fault(
        "j-warnings-as-errors",
        "A variable for tests makes each warning an error, and the server warns at its start.",
        "environment",
        (Variable("PYTHONWARNINGS", "error"),),
    ),
    Fault(
        "j-old-jinja",
        "The environment has a jinja2 that is too old for chat templates, and every chat is an error.",
        "environment",
        (Module("sitecustomize", OLD_JINJA),),
    ),
    Fault(
        "j-random-shadowed",
        "A script named random.py lies where Python looks first, and libraries import it.",
        "environment",
        (Module("random", RANDOM),),
    ),
    Fault(
        "j-pointer-for-tokenizer",
        "git pull without LFS has put a pointer in the tokenizer's place.",
        "environment",
        (Recorded(), Whole(POINTER, "tokenizer.json")),
    ),
    Fault(
        "j-end-token-pulled-away",
        "An update of generation_config.json lost the token that ends calls, and the model invents results.",
        "environment",
        (Recorded(), Json("generation_config.json", {"eos_token_id": [4, 0]})),
        base="glm",
    ),
    Fault(
        "j-results-shortened",
        "An operator changed the template after the import, so that of results a few letters are left.",
        "environment",
        (
            Recorded(),
            Text("message.content ~ '\\n</tool_response>", "message.content[:10] ~ '\\n</tool_response>"),
        ),
        base="qwen3coder",
    ),
    Fault(
        "j-few-files",
        "The service may open 1024 files at most, and the engine wants 2048 and does not start.",
        "environment",
        (Limited("RLIMIT_NOFILE", 1024),),
    ),
    Fault(
        "j-ended-by-timer",
        "A supervisor ends the engine soon after its start, in the middle of the work.",
        "environment",
        (Module("sitecustomize", ENDED_BY_TIMER),),
        bitten="services with RuntimeMaxSec",
    ),
)
