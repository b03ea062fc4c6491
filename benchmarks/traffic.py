"""What imports cost the Hub and this machine, counted at a local Hub that answers after a delay."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.row import Row
from benchmarks.surroundings import bare
from tests import template_texts as texts
from tests.hubserver import Content, Entry, HubServer

LATENCY = 0.1  # seconds before each answer
MANY, FEW = 200, 50
TEMPLATES = (
    texts.CHATML_JSON,
    texts.XML_PARAMETERS,
    texts.OFFER + texts.SWITCHED,
    texts.INST,
    texts.ALTERNATING,
)


def rows() -> Iterable[Row]:
    """One import in three states, then many at once with a template of their own each."""
    yield from _one()
    yield from _bulk()


def _one() -> Iterable[Row]:
    states: dict[str, tuple[list[str], int, int]] = {
        "first": ([], 8, 2), "unchanged commit": ([], 1, 1), "offline": (["--offline"], 0, 0),
        "--exact-fit": (["--exact-fit"], 2, 2), "--exact-fit again": (["--exact-fit"], 1, 1),
    }  # fmt: skip
    with HubServer({"org/model": _files(0)}, latency=LATENCY) as hub, tempfile.TemporaryDirectory() as home:
        for state, (words, requests, rounds) in states.items():
            hub.log.clear()
            seconds, _ = _import(["org/model", "--dry-run", "--json", *words], _environment(hub, home))
            asked = (len(hub.log), _rounds(hub.log))
            yield Row(
                f"one import, {state}: requests, sequential round trips",
                f"{asked[0]}, {asked[1]}",
                f"{requests}, {rounds}",
                asked[0] <= requests and asked[1] <= rounds,
            )
            yield Row(f"one import, {state}: {LATENCY * 1000:.0f} ms per answer", f"{seconds:.2f} s", "")


def _rounds(log: Sequence[Entry]) -> int:
    """Return the longest chain of requests, each begun after the answer to the one before."""
    count, free = 0, float("-inf")
    for entry in sorted(log, key=lambda entry: entry.end):
        if entry.start >= free:
            count, free = count + 1, entry.end
    return count


def _bulk() -> Iterable[Row]:
    repos = {f"org/model-{number}": _files(number) for number in range(MANY)}
    memory: dict[int, int] = {}
    with HubServer(repos, latency=LATENCY) as hub:
        for count in (FEW, MANY):
            with tempfile.TemporaryDirectory() as home:
                listed = Path(home) / "list.txt"
                listed.write_text("\n".join([*repos][:count]), encoding="utf-8")
                words = ["--from", str(listed), "--dry-run", "--dir", f"{home}/models"]
                seconds, memory[count] = _import(words, _environment(hub, home))
            yield Row(f"{count} references, no engine: per model", f"{seconds / count * 1000:.0f} ms", "")
            yield Row(f"{count} references: largest resident memory", f"{memory[count] / 1024:.0f} MiB", "")
    grown = memory[MANY] / memory[FEW]
    yield Row(f"memory at {MANY} references to that at {FEW}", f"{grown:.2f} x", "1.10 x", grown <= 1.1)


def _files(number: int) -> dict[str, Content]:
    """Six small files with a card, and a template that no other model has."""
    return {
        "config.json": {"model_type": "own", "max_position_embeddings": 4096},
        "generation_config.json": {"temperature": 0.6},
        "chat_template.jinja": f"{{# model {number} #}}" + TEMPLATES[number % len(TEMPLATES)],
        "tokenizer_config.json": {"eos_token": "<|im_end|>", "bos_token": "<s>"},
        "special_tokens_map.json": {"eos_token": "<|im_end|>"},
        "added_tokens.json": {"<|im_end|>": 1},
        "README.md": f"# model {number}\n\nIt answers.\n",
        "model.safetensors": b"\x02\0\0\0\0\0\0\0{}",
    }


def _environment(hub: HubServer, home: str) -> dict[str, str]:
    """A Hub and folders of its own; engines that the user has are not asked."""
    return bare(HF_ENDPOINT=hub.url, HF_HOME=f"{home}/hf", IMPORTER_HOME=f"{home}/home")


def _import(words: Sequence[str], environment: dict[str, str]) -> tuple[float, int]:
    """Seconds of the whole process; the largest resident memory of it or of its children, in KiB."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "importer", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begun
    if process.returncode != 0:
        raise SystemExit(f"importer {' '.join(words)} ended with {process.returncode}")
    # Linux counts in KiB, macOS in bytes.
    return seconds, usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
