"""Faults of the round ``n`` in machines, environments and files."""

from __future__ import annotations

from tests.faults.blind_n_steps import HalfCopied
from tests.faults.fault import Fault
from tests.faults.starting import Module, Variable
from tests.faults.steps import Gone, Recorded, Text, Whole

OLD_JINJA = 'import jinja2\n\njinja2.__version__ = "3.1.2"\n'
OLD_TOKENIZERS = """import tokenizers


class Tokenizer:
    @classmethod
    def from_file(cls, path):
        raise Exception("data did not match any variant of untagged enum ModelWrapper at line 1 column 9001")

    from_str = from_buffer = from_file


tokenizers.Tokenizer = Tokenizer
"""
FULL = """import errno
import sys


class Log:
    def __init__(self, file, room):
        self.file, self.room = file, room

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, text):
        self.room -= len(text)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(text)


sys.stderr = Log(sys.stderr, 4000)
"""
LOGIN = """<!DOCTYPE html>
<html><head><title>Sign in</title></head>
<body><form action="/login" method="post">Please sign in to reach the Internet.</form></body></html>
"""

FAULTS = (
    Fault(
        "n-jinja-old",
        "The environment has an older Jinja, with which each chat is refused.",
        "environment",
        (Module("sitecustomize", OLD_JINJA),),
        bitten="environments in which another package holds Jinja back",
    ),
    Fault(
        "n-tokenizers-old",
        "The environment has an older tokenizers, which cannot read the model's file.",
        "environment",
        (Module("sitecustomize", OLD_TOKENIZERS),),
        bitten="environments that were made before the model",
    ),
    Fault(
        "n-warnings-as-errors",
        "A variable turns warnings of Python into errors, and the engine never begins to serve.",
        "environment",
        (Variable("PYTHONWARNINGS", "error"),),
        bitten="shells of developers, where tests want it",
    ),
    Fault(
        "n-copy-stopped-halfway",
        "Newer weights were copied over the old ones in place, and the copy stopped halfway.",
        "environment",
        (HalfCopied("qwen3coder", 0.5), Recorded()),
        bitten="users of rsync --inplace",
    ),
    Fault(
        "n-log-disk-full",
        "The disk of the log is full, and requests break where the server writes about them.",
        "environment",
        (Module("sitecustomize", FULL),),
        bitten="servers that ran for weeks",
    ),
    Fault(
        "n-generation-config-gone",
        "Somebody took generation_config.json away, and with it the token that ends a turn of calls.",
        "environment",
        (Gone("generation_config.json"), Recorded()),
        base="glm",
        bitten="folders that were tidied up",
    ),
    Fault(
        "n-login-page-saved",
        "A download was repeated behind a login page, which was saved as the tokenizer's settings.",
        "environment",
        (Whole(LOGIN, "tokenizer_config.json"), Recorded()),
        bitten="hotels, and companies with a portal",
    ),
    Fault(
        "n-template-edited",
        "Somebody changed the template in the folder, and it shows no parameters of tools any more.",
        "environment",
        (
            Text(
                "{{- '- ' ~ function.name ~ ' ' ~ (function.parameters | default({}, true) | tojson) -}}",
                "{{- '- ' ~ function.name -}}",
            ),
            Recorded(),
        ),
        bitten="administrators who save tokens",
    ),
)
