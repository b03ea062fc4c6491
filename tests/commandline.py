"""The command line as a user has it, here or in a process of its own; models, documents, a broken engine."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.cli.main import run
from importer.document import schema
from importer.document.receipt import Receipt, parse
from importer.document.store import Store
from importer.document.store import load as load_document
from importer.sandbox.pool import Sandbox
from tests.hubserver import Content, HubServer, Repo, isolate
from tests.waiting import PATIENCE

REPO = Path(__file__).parents[1]
TOKEN = "hf_goodgoodgood"
WARM = Sandbox(4)  # starting a child takes longer than most imports
atexit.register(WARM.close)


# Repositories of few files: without a chat template an import needs no renderer.
BASE: Mapping[str, Content] = {
    "config.json": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 512,
        "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
        "vocab_size": 100,
    },
    "generation_config.json": {"temperature": 0.6, "top_p": 0.9},
}  # fmt: skip
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHAT: Mapping[str, Content] = {**BASE, "chat_template.jinja": TEMPLATE}


@dataclass(frozen=True)
class Ran:
    """How a run ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> dict[str, Any]:
        """The one line of --json, checked against its schema."""
        assert self.out.endswith("\n"), (self.out, self.err)
        assert len(self.out.splitlines()) == 1, self.out
        data = json.loads(self.out)
        schema.check("report", data, "stdout")
        assert isinstance(data, dict)
        return data


@dataclass
class Desk:
    """Where a test works: the current folder, a Hub, the captured streams."""

    folder: Path
    hub: HubServer
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    held: ExitStack
    sandbox: Sandbox | None = field(default_factory=lambda: WARM)

    def __call__(self, *words: object) -> Ran:
        """Run in this process."""
        code = run([str(word) for word in words], self.sandbox)
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return Ran(code, out, err)

    def start(self, *words: object, module: str = "importer", **options: Any) -> subprocess.Popen[str]:
        """Run in a process of its own."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", module, *map(str, words)]
        options["env"] = {**os.environ, "PYTHONPATH": str(REPO), **options.get("env", {})}
        return subprocess.Popen(command, **{**pipes, "text": True, "cwd": self.folder, **options})

    def alone(self, *words: object, **options: Any) -> Ran:
        """Run in a process of its own until it ends."""
        with self.start(*words, **options) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert "Traceback" not in (out or "") + (err or "")
        return Ran(process.returncode, out or "", err or "")

    def directory(self, name: str, files: Mapping[str, Content]) -> Path:
        """A model's folder."""
        folder = self.folder / name
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes | str) else json.dumps(content)
            (folder / path).write_bytes(data if isinstance(data, bytes) else data.encode())
        return folder

    def files(self) -> dict[str, bytes]:
        """All documents and what lies beside them."""
        found = sorted((self.folder / "models").rglob("*"))
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in found if p.is_file()}

    def engine(
        self, name: str = "mlx", *, version: str = "0.0.1", does: str = "", package: bool = True
    ) -> Path:
        """An environment that claims to hold mlx-lm; ``does`` is all of that package's code."""
        site = self.folder / "site"
        described = site / f"mlx_lm-{version}.dist-info"
        described.mkdir(parents=True)
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mlx-lm\nVersion: {version}\n")
        if package:
            (site / "mlx_lm").mkdir()
            (site / "mlx_lm" / "__main__.py").write_text(does)
        python = self.folder / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        self.monkeypatch.setenv(f"IMPORTER_{name.upper()}_PYTHON", str(python))
        return python


KEPT = ("IMPORTER_HOME", "IMPORTER_PARSERS")  # a test that fetches parsers says so


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Desk]:
    """A desk with a Hub that has ``acme/base``, ``other/base`` and ``acme/chat``; no engine, no token."""
    repos = {"acme/base": Repo(BASE), "other/base": Repo(BASE), "acme/chat": Repo(CHAT)}
    with HubServer(repos, tokens=(TOKEN,)) as hub:
        isolate(monkeypatch, tmp_path, hub.url)
        for name in [n for n in os.environ if n.startswith("IMPORTER_") and n not in KEPT]:
            monkeypatch.delenv(name)
        monkeypatch.chdir(tmp_path)
        with ExitStack() as held:
            yield Desk(tmp_path, hub, monkeypatch, capsys, held)


def load(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


def document(desk: Desk, name: str = "base") -> Any:
    data = load(desk.folder / "models" / f"{name}.yaml")
    schema.check("document", data, name)
    return data


def receipt(desk: Desk, name: str = "base") -> Any:
    return whole_receipt(desk.folder / "models" / f"{name}.receipt.json")


def whole_receipt(path: Path) -> Any:
    """The data of a receipt with its side file."""
    schema.check("receipt", load(path), path)
    document = path.with_name(path.name.replace(".receipt.json", ".yaml"))
    return json.loads(load_document(document).need_receipt().to_text())


def state(desk: Desk, name: str = "base") -> tuple[str, str]:
    rows = [json.loads(line) for line in desk("list", "--json").out.splitlines()]
    row = next(r for r in rows if r["name"] == name)
    return row["review"], row["validation"]


def edit(desk: Desk, old: str, new: str) -> bytes:
    path = desk.folder / "models" / "base.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return path.read_bytes()


def amended(desk: Desk, **fields: Any) -> None:
    """Write other fields into the receipt, as importer writes them."""

    def change(receipt: Receipt) -> Receipt:
        return parse(json.loads(json.dumps(receipt.to_json() | fields, default=list)))

    Store(desk.folder / "models").amend("base", change)


def validated(desk: Desk, **fields: Any) -> None:
    """Write a run into the receipt: the test is about what becomes of it."""
    digest = load(desk.folder / "models" / "base.receipt.json")["digest"]
    run = {"digest": digest, "passed": True, "outcomes": [], "engine": {}, "seconds": {}}
    amended(desk, validation=run | fields)
