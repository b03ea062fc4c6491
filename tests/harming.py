"""What means harm, in words that a file can hold, and the command line that it is given to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from importer.cli.commands import COMMANDS
from importer.cli.main import run
from tests.hubserver import Content, HubServer, isolate

TOKEN = "hf_thisTokenMustNeverLeave"
CONFIG = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Sets a terminal's title, clears it, colours it by a one-byte sequence, turns the writing direction around.
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028\x85"
INJECTION = f"x\n- injected: true # {ESCAPES}"


@dataclass(frozen=True)
class Ran:
    """An import: its exit code and all that it said."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        (line,) = self.out.splitlines()
        return dict(json.loads(line))


Command = Callable[..., Ran]


def _placed(arguments: Sequence[str], output: str) -> Iterator[str]:
    """With ``--dir`` behind the command, or in front of a reference."""
    first, *rest = arguments
    yield from (first, "--dir", output, *rest) if first in COMMANDS else ("--dir", output, *arguments)


@pytest.fixture
def importer(
    importer_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command line, writing into ``out`` of this test's folder."""
    monkeypatch.setenv("IMPORTER_HOME", str(importer_home))

    def command(*arguments: str) -> Ran:
        code = run([*_placed(arguments, str(tmp_path / "out"))])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return command


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with HubServer({}, tokens=(TOKEN,)) as server:
        isolate(monkeypatch, tmp_path, server.url)
        yield server


def folder(path: Path, files: Mapping[str, Content]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, str | bytes) else json.dumps(content)
        (path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def calm(text: str) -> bool:
    """Whether a terminal would only print it."""
    return all(c.isprintable() or c == "\n" for c in text)
