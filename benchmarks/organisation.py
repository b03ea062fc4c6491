"""``python -m benchmarks organisation``: an organisation of generated repositories, imported under limits.

A local Hub lists them and grants requests as the real one does, in shorter windows. The import is killed
twice and begun again. Time is counted as processor time of the importer and its children, so other work on
the machine changes little.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.row import HEADING, Row
from benchmarks.surroundings import bare
from benchmarks.traffic import TEMPLATES
from importer.engines import get, install
from tests.hubserver import Content, HubServer, Repo

NAME = "org"
TEMPLATE_SHARE = 0.03  # distinct templates for each repository: 300 of 10,000
QUOTAS = {"api": 1000, "resolvers": 5000}  # requests of a window of 300 s with a free account
REQUESTS, COMPUTE, GROWTH = 2.2, 40.0, 1.15  # budgets: requests, ms of processor time, memory
SHAPES = tuple((layers, hidden) for layers in (16, 24, 28, 32, 36, 48) for hidden in (1024, 2048, 4096))
# What an organisation holds, of 100: the kind and its number.
MIXTURE = {
    "chat": 56,
    "base": 12,
    "gguf": 15,
    "gated": 8,
    "image": 3,
    "embedding": 3,
    "gone": 2,
    "hostile": 1,
}
KINDS = [kind for kind, number in MIXTURE.items() for _ in range(number)]


def main(arguments: list[str]) -> int:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks organisation", description=__doc__)
    parser.add_argument("--repositories", type=int, default=1000, metavar="N")
    parser.add_argument(
        "--window", type=float, default=100.0, metavar="SECONDS", help="of the limits; the Hub: 300"
    )
    parser.add_argument("--unlimited", action="store_true", help="no limits at the Hub")
    parser.add_argument("--no-kills", action="store_true", help="let the import run undisturbed")
    chosen = parser.parse_args(arguments)
    print(HEADING)
    for row in rows(
        chosen.repositories, None if chosen.unlimited else chosen.window, kills=not chosen.no_kills
    ):
        print(row, flush=True)
    return 0


def rows(number: int, window: float | None, *, kills: bool) -> Iterator[Row]:
    """Yield the figures of one organisation."""
    repos, gone = repositories(number)
    quotas = None if window is None else {kind: (most, window) for kind, most in QUOTAS.items()}
    with HubServer(repos, quotas=quotas) as hub, tempfile.TemporaryDirectory() as home:
        hub.hidden = gone
        run = _Run(hub, Path(home), proved=_engine())
        begun = time.perf_counter()
        if kills:
            for share in (1 / 3, 2 / 3):
                run.killed_at(int(share * 1.6 * number))
        summary = run.whole()
        seconds = time.perf_counter() - begun
        yield from _figures(number, run, summary, seconds, window)
        few = max(50, number // 10)
        hub.quotas, folder = {}, Path(home) / "few"
        folder.mkdir()
        small = _Run(hub, folder, proved=run.proved, limit=few)
        small.whole()
        cost = (run.processor - small.processor) / (number - few) * 1000
        yield Row(f"that of each beyond the first {few:,}, new templates included", f"{cost:.0f} ms", "")
        again = _Run(hub, Path(home), proved=run.proved, folder="again")
        imported = again.whole()["imported"]
        cost = again.processor / number * 1000
        yield Row("that of each, all templates known", f"{cost:.0f} ms", f"{COMPUTE:.0f} ms", cost <= COMPUTE)
        yield Row("that of each imported one", f"{again.processor / max(1, imported) * 1000:.0f} ms", "")
        grown = run.memory / small.memory
        what = f"memory of {number:,} to that of {few:,}"
        yield Row(what, f"{grown:.2f} x", f"{GROWTH:.2f} x", grown <= GROWTH)
        yield Row("largest resident memory of the process", f"{run.memory / 1024:.0f} MiB", "")


def _figures(
    number: int, run: _Run, summary: Mapping[str, Any], seconds: float, window: float | None
) -> Iterator[Row]:
    asked = Counter(path.partition("?")[0] for path in run.hub.paths())
    answered = sum(e.status < 300 for e in run.hub.log)
    each = len(run.hub.log) / number
    yield Row(f"{number:,} repositories: imported, skipped, failed", f"{summary['imported']:,}, "
              f"{sum(summary['skipped'].values()):,}, {sum(summary['failed'].values()):,}", "")  # fmt: skip
    yield Row("skipped by kind", ", ".join(f"{k} {n}" for k, n in summary["skipped"].items()), "")
    yield Row("failed by kind", ", ".join(f"{k} {n}" for k, n in summary["failed"].items()) or "–", "")
    yield Row("requests for each repository of the list", f"{each:.2f}", f"{REQUESTS}", each <= REQUESTS)
    yield Row("requests for each imported one", f"{len(run.hub.log) / max(1, summary['imported']):.2f}", "")
    yield Row("requests that were refused by the limit", str(sum(e.status == 429 for e in run.hub.log)), "")
    cost = run.processor / number * 1000
    yield Row(
        "processor time for each, all processes", f"{cost:.0f} ms", f"{COMPUTE:.0f} ms", cost <= COMPUTE
    )
    cost = run.processor / max(1, summary["imported"]) * 1000
    yield Row("processor time for each imported one", f"{cost:.0f} ms", "")
    yield Row("whole run", f"{seconds:.0f} s, {number / seconds:.1f}/s", "")
    if window is not None:
        calls = sum(n for path, n in asked.items() if path.startswith("/api/"))
        least = max(0.0, (calls / QUOTAS["api"] - 1) * window)
        yield Row(
            f"of that the limit takes at least ({QUOTAS['api']} calls in {window:.0f} s)",
            f"{least:.0f} s",
            "",
        )
    twice = sum(n - 1 for path, n in asked.items() if n > 1 and path != "/api/models")
    yield Row("answered requests; files and repositories asked twice", f"{answered:,}; {twice}",
              f"{16 * run.kills}", twice <= 16 * run.kills)  # fmt: skip
    found = f"{run.documents():,}; {run.rewritten}"
    yield Row("documents; written after a kill although they were there", found,
              f"{16 * run.kills}", run.rewritten <= 16 * run.kills)  # fmt: skip


class _Run:
    """An import of the organisation, that may be killed and begun again."""

    def __init__(
        self,
        hub: HubServer,
        home: Path,
        *,
        proved: str | None,
        limit: int | None = None,
        folder: str = "models",
    ) -> None:
        self.hub, self.home, self.proved = hub, home, proved
        self.processor, self.memory, self.kills, self.rewritten = 0.0, 0, 0, 0
        self._words = [
            "--from-org",
            NAME,
            "--json",
            "--yes",
            "--dir",
            str(home / "models"),
            "--backend",
            "mlx",
        ]
        self._words += [] if limit is None else ["--limit", str(limit)]
        self._known: dict[str, int] = {}

    def killed_at(self, requests: int) -> None:
        """Kill a run once the Hub has had so many requests."""
        process = self._start(subprocess.DEVNULL)
        while len(self.hub.log) < requests and process.poll() is None:
            time.sleep(0.02)
        self._known = {p.name: p.stat().st_mtime_ns for p in self._models.glob("*.yaml")}
        os.killpg(process.pid, signal.SIGKILL)
        self._ended(process, -signal.SIGKILL)
        self.kills += 1

    def whole(self) -> dict[str, Any]:
        """Return the summary of a run that nobody kills."""
        with tempfile.TemporaryFile("w+") as out:
            self._ended(self._start(out), 0)
            out.seek(0)
            last = ""
            for line in out:
                last = line
        summary: dict[str, Any] = json.loads(last)["summary"]
        return summary

    def documents(self) -> int:
        """Return the number of documents."""
        return sum(1 for _ in self._models.glob("*.yaml"))

    def _start(self, out: Any) -> subprocess.Popen[str]:
        folders = {"HF_HOME": f"{self.home}/hf", "IMPORTER_HOME": f"{self.home}/home"}
        engine = {} if self.proved is None else {"IMPORTER_MLX_PYTHON": self.proved}
        environment = bare(HF_ENDPOINT=self.hub.url, **folders, **engine)
        command = [sys.executable, "-m", "importer", *self._words]
        return subprocess.Popen(
            command, env=environment, stdout=out, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )

    def _ended(self, process: subprocess.Popen[str], code: int) -> None:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != code:
            raise SystemExit(f"the import ended with {process.returncode}")
        self.processor += usage.ru_utime + usage.ru_stime
        self.memory = max(self.memory, usage.ru_maxrss)
        now = {n: (self._models / n).stat().st_mtime_ns for n in self._known}
        self.rewritten += sum(now[name] != at for name, at in self._known.items())


def _engine() -> str | None:
    """Return the Python of mlx-lm, whose parsers prove the templates; ``None`` where it is not installed."""
    found = install.find(get("mlx"))
    return None if found is None else str(found.python)


def repositories(number: int) -> tuple[dict[str, Repo], set[str]]:
    """Return generated repositories with an even mixture, and those that are gone when they are asked for."""
    chosen, repos, gone = random.Random(number), {}, set()
    templates = max(10, int(number * TEMPLATE_SHARE))
    kinds = (KINDS * (number // len(KINDS) + 1))[:number]
    chosen.shuffle(kinds)
    for place, kind in enumerate(kinds):
        name = f"{NAME}/model-{place}"
        repos[name] = _repository(place, kind, chosen.randrange(templates), chosen)
        if kind == "gone":
            gone.add(name)
    return repos, gone


def _repository(place: int, kind: str, template: int, chosen: random.Random) -> Repo:
    if kind == "gguf":
        return Repo({"model-Q4_K_M.gguf": b"GGUF", "README.md": f"# {place}"}, info={"tags": ["gguf"]})
    files: dict[str, Content] = {
        "config.json": _config(place, template, chosen),
        "model.safetensors": b"\2" + bytes(7),
    }
    if chosen.random() < 0.8:
        files["README.md"] = f"---\nlicense: apache-2.0\n---\n# Model {place}\nMade by {NAME}.\n"
    files |= {
        "tokenizer_config.json": _tokenizer(template % 40),
        "generation_config.json": _sampling(template % 12),
    }
    if kind == "image":
        files["model_index.json"] = {"_class_name": "FluxPipeline"}
        del files["config.json"]
    elif kind == "embedding":
        files |= {"modules.json": "[]", "sentence_bert_config.json": {"max_seq_length": 512}}
    elif kind == "hostile":
        hostile: Sequence[Content] = (
            "[" * 5000,
            "{",
            {"model_type": "x" * 10000},
            {"num_hidden_layers": 10**9},
        )
        files["config.json"] = hostile[place % len(hostile)]
    if kind in {"chat", "gated", "hostile"}:
        text = TEMPLATES[template % len(TEMPLATES)]
        files["chat_template.jinja"] = f"{{# format {template} #}}" + text
    config = files.get("config.json")
    shown = (
        {k: config[k] for k in ("model_type", "architectures") if k in config}
        if isinstance(config, dict)
        else {}
    )
    return Repo(files, gated=kind == "gated", info={"config": shown, "downloads": place, "tags": []})


def _config(place: int, template: int, chosen: random.Random) -> dict[str, Any]:
    layers, hidden = SHAPES[template % len(SHAPES)]
    own = {"_name_or_path": f"{NAME}/model-{place}"} if chosen.random() < 0.5 else {}
    return own | {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": hidden // 64, "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 151936, "intermediate_size": 3 * hidden, "torch_dtype": "bfloat16",
        "max_position_embeddings": 40960,
    }  # fmt: skip


def _tokenizer(number: int) -> dict[str, Any]:
    words = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", f"<own_{number}>")
    added = {str(i): {"content": w, "special": w.startswith("<|")} for i, w in enumerate(words, 151643)}
    return {"eos_token": "<|im_end|>", "bos_token": "<s>", "added_tokens_decoder": added}


def _sampling(number: int) -> dict[str, Any]:
    return {"temperature": round(0.1 * number, 1), "top_p": 0.95, "do_sample": True}
