"""Faults of round m in the machine, the engine's Python, and files since the import."""

from __future__ import annotations

from tests.faults.blind_m_steps import TailOf
from tests.faults.fault import Fault
from tests.faults.starting import Limited, Module
from tests.faults.steps import WEIGHTS, Recorded, Text, Whole

OLD = "import jinja2\n\njinja2.__version__ = '3.0.3'\n"
KEYS = "API_KEY = 'changeme'\nDATABASE = 'postgres://localhost/app'\n"
LIBC = """raise ImportError(
    "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found "
    "(required by /opt/engine/lib/python3.11/site-packages/tokenizers/tokenizers.abi3.so)"
)
"""
FULL = """import errno
import sys


class Full:
    def __init__(self, log):
        self.log, self.left = log, 5000

    def write(self, text):
        self.left -= len(text)
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.log.write(text)

    def __getattr__(self, name):
        return getattr(self.log, name)


sys.stderr = Full(sys.stderr)
"""
PAGE = """<!DOCTYPE html>
<html><head><title>Sign in</title></head>
<body><form action="/login"><p>Your session has expired. Please sign in to go on.</p></form></body></html>
"""
FIRST = "{%- set latest = namespace(question=-1) -%}\n"
CONFLICT = f"<<<<<<< HEAD\n{FIRST}=======\n{FIRST}>>>>>>> upstream/main\n"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "m-jinja-too-old",
        "The installed Jinja is too old for chat templates: no chat is answered.",
        "environment",
        (Module("sitecustomize", OLD),),
    ),
    Fault(
        "m-file-named-secrets",
        "A user's file named as a module of Python is found before it, and the engine does not start.",
        "environment",
        (Module("secrets", KEYS),),
    ),
    Fault(
        "m-libc-too-old",
        "The system's C library is too old for a package that was built elsewhere; nothing starts.",
        "environment",
        (Module("tokenizers", LIBC),),
    ),
    Fault(
        "m-cpu-seconds",
        "The system ends the engine when it has used its few seconds of processor time.",
        "environment",
        (Limited("RLIMIT_CPU", 4),),
    ),
    Fault(
        "m-log-disk-full",
        "The disk with the log is full, and requests fail when their line cannot be written.",
        "environment",
        (Module("sitecustomize", FULL),),
    ),
    Fault(
        "m-conflict-markers",
        "A merge on the machine left its markers in the template; they stand in each prompt.",
        "environment",
        (Recorded(), Text(FIRST, CONFLICT)),
    ),
    Fault(
        "m-login-page",
        "In the place of the weights lies a proxy's login page.",
        "environment",
        (Recorded(), Whole(PAGE, WEIGHTS)),
    ),
    Fault(
        "m-copied-in-part",
        "A copy onto the weights of another model broke off, and their last part is still the other's.",
        "environment",
        (Recorded(), TailOf("qwen3coder", 0.7)),
    ),
)
