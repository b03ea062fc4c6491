"""Repositories that are made to cost time: what the whole program takes, and what it says of them."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.surroundings import bare
from tests.hubserver import HubServer, Repo

HEADING = f"{'what':44} {'CPU':>8} {'wall':>8} {'memory':>9}  answer"
CONFIG = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
CHATML = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
TOKENS, THINKS, LISTED = 34_000, 19_000, 700_000
MIB = 1024**2
# The peak of one process of several: the largest of the program and its children, not their sum.
UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Line:
    """One repository: CPU of the program and its children, wall time, the largest process, the answer."""

    what: str
    cpu: float
    wall: float
    memory: int
    answer: str

    def __str__(self) -> str:
        """As it is printed."""
        size = f"{self.memory // MIB} MiB"
        return f"{self.what:44} {self.cpu:6.2f} s {self.wall:6.2f} s {size:>9}  {self.answer}"


def rows() -> Iterable[Line]:
    """Each repository at a local Hub, imported by a process of its own; the demo's size for comparison."""
    declared = {"added_tokens_decoder": {str(n): {"content": f"<t{n}>"} for n in range(TOKENS)}}
    texts: dict[str, Mapping[str, Any]] = {
        "an ordinary repository": {"chat_template.jinja": CHATML},
        f"{TOKENS:,} declared tokens": {"chat_template.jinja": CHATML, "tokenizer_config.json": declared},
        f"<, then think {THINKS:,} times, in a template": {
            "chat_template.jinja": "{{ messages[-1].content }}<" + "think" * THINKS
        },
        "a table's rule of 100 KB in the card": {"README.md": f"|a|b|\n|{'-' * 100_000}x"},
        "a table's rule of 400 KB in the card": {"README.md": f"|a|b|\n|{'-' * 400_000}x"},
    }
    for what, files in texts.items():
        yield _imported(what, Repo({"config.json": CONFIG, **files}))
    siblings = [{"rfilename": f"f{n}.safetensors"} for n in range(LISTED)]
    yield _imported(f"{LISTED:,} listed files", Repo({"config.json": CONFIG}, info={"siblings": siblings}))


def _imported(what: str, repo: Repo) -> Line:
    command = [sys.executable, "-m", "importer", "org/model", "--dry-run", "--json"]
    with HubServer({"org/model": repo}) as hub, tempfile.TemporaryDirectory() as home:
        environment = bare(HF_ENDPOINT=hub.url, IMPORTER_HOME=home, HF_HUB_CACHE=home)
        began = time.monotonic()
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            told = json.loads(process.stdout.read())
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
    return Line(what, _cpu(used), wall, used.ru_maxrss * UNIT, _answer(told, process.returncode))


def _cpu(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def _answer(told: Mapping[str, Any], code: int) -> str:
    error = told.get("error")
    return "a document" if error is None else f"{error['kind']}, exit {code}"
