"""The prompts of each installed frontend beside transformers'.

Every chat template of ``FOLDER`` is rendered by each frontend and by importer, conversation by
conversation. The table counts repositories by finding; ``--out`` has every finding as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gen_defaults.paths import folder as existing
from gen_defaults.paths import output
from importer.chat_template import find
from importer.chat_template.analyze import analyze
from importer.chat_template.render import Renderer
from importer.chat_template.vocabulary import read_vocabulary
from importer.engines import get, install
from importer.engines.parsers import ParserWorker
from importer.engines.renderers import EngineRenderer, WorkerRenderer
from importer.engines.renderers.rust import RustRenderer, program
from importer.errors import ImporterError
from importer.hub import local
from importer.proof.prompts import Ours, compare
from importer.proof.result import AUTO, FrontendPrompts, PromptDifference
from importer.proof.tokens import rendering_tokens, tokens_of
from importer.signals.architecture import MODES, architectures
from importer.signals.modalities import read_modalities

WORKERS = {"vllm": "vllm-cpu", "mlx": "mlx", "mlx-vlm": "mlx-vlm"}


@dataclass(slots=True)
class Count:
    """The repositories of one frontend: by gravest finding of its default form and of the best one."""

    by_kind: Counter[str] = field(default_factory=Counter)
    best: Counter[str] = field(default_factory=Counter)
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)
    chosen: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)

    def add(self, prompts: FrontendPrompts, seconds: float) -> None:
        """Count one repository."""
        first = prompts.outcomes[AUTO]
        self.by_kind[gravest(first.findings)] += 1
        self.best[gravest(prompts.outcomes[prompts.best].findings)] += 1
        self.findings.update({(f.kind, str(f.fields["place"])) for f in first.findings})
        self.chosen[prompts.best] += 1
        self.seconds.append(seconds)


def gravest(findings: Sequence[Any]) -> str:
    """Return the gravest kind, ``equal`` where there is none."""
    order = [*PromptDifference]
    return min((f.kind for f in findings), key=order.index, default="equal")


def main(options: argparse.Namespace) -> int:
    """Measure and report; returns the exit status."""
    counts: dict[str, Count] = defaultdict(Count)
    out = options.out.open("w", encoding="utf-8") if options.out else None
    with ExitStack() as stack:
        engines = [*_engines(stack, options.only)]
        if not engines:
            sys.stderr.write("frontends: no engine is installed; see 'importer engine install'\n")
            return 1
        ours = stack.enter_context(Renderer())
        for folder in sorted(options.folder.iterdir())[: options.first]:
            for prompts, seconds in _repository(folder, engines, ours):
                if prompts.failed is not None:
                    counts[prompts.frontend].failed[prompts.failed.kind] += 1
                    continue
                counts[prompts.frontend].add(prompts, seconds)
                if out:
                    out.write(json.dumps(_line(folder.name, prompts, seconds)) + "\n")
    if out:
        out.close()
    sys.stdout.write(table(counts))
    return 0


def _engines(stack: ExitStack, only: Sequence[str]) -> Iterator[EngineRenderer]:
    """Yield every frontend that is installed here."""
    for engine, holder in WORKERS.items():
        found = install.find(get(holder))
        if found is not None and (not only or engine in only):
            worker = stack.enter_context(ParserWorker(engine, found.python))
            worker.version()
            yield WorkerRenderer(worker)
    path = program()
    if path is not None and (not only or RustRenderer.frontend in only):
        yield RustRenderer(path)


def _repository(
    folder: Path, engines: Sequence[EngineRenderer], renderer: Renderer
) -> Iterator[tuple[FrontendPrompts, float]]:
    """Yield the prompts of each frontend; nothing where there is no template that engines render."""
    try:
        snapshot = local.resolve(folder.name, folder)
        template, words = find.find(snapshot), read_vocabulary(snapshot)
    except ImporterError:
        return
    if template is None or any(a in MODES for a in architectures(snapshot)):
        return
    analysis = analyze(template, words, renderer)
    tokens = rendering_tokens(tokens_of(snapshot, template, words)[0], template, words)
    ours = Ours(template, words, renderer, analysis, "image" in read_modalities(snapshot))
    for engine in engines:
        start = time.perf_counter()
        yield compare(ours, tokens, engine), time.perf_counter() - start


def _line(name: str, prompts: FrontendPrompts, seconds: float) -> Mapping[str, Any]:
    return {
        "repository": name,
        "frontend": prompts.frontend,
        "best": prompts.best,
        "seconds": round(seconds, 3),
        "findings": {f: [r.to_json() for r in o.findings] for f, o in prompts.outcomes.items()},
    }


def table(counts: Mapping[str, Count]) -> str:
    """Return the table of frontends, and the time of one template."""
    kinds = ["equal", *PromptDifference]
    lines = [
        "| frontend | repositories | "
        + " | ".join(kinds)
        + " | not started | own code | median s | longest s |"
    ]
    lines.append("|---|--:|" + "--:|" * (len(kinds) + 4))
    for name, count in counts.items():
        times = sorted(count.seconds)
        cells = [str(count.by_kind[kind]) for kind in kinds]
        failed = " | ".join(str(count.failed[kind]) for kind in ("not-started", "own-code"))
        ends = f"{failed} | {times[len(times) // 2]:.2f} | {times[-1]:.2f}"
        lines.append(f"| {name} | {len(times)} | {' | '.join(cells)} | {ends} |")
        best = [str(count.best[kind]) for kind in kinds]
        lines.append(f"| {name}, best format | {len(times)} | {' | '.join(best)} | | | | |")
    for name, count in counts.items():
        lines += ["", f"{name}: formats {dict(count.chosen)}; repositories by finding and place:"]
        lines += [f"  {n:4} {kind} {place}" for (kind, place), n in count.findings.most_common()]
    return "\n".join(lines) + "\n"


def options(parser: argparse.ArgumentParser) -> None:
    """Add folder and choice."""
    parser.add_argument("folder", type=existing, help="the models' small files, in ORG__NAME/")
    parser.add_argument("--only", action="append", default=[], help="a frontend; may be repeated")
    parser.add_argument("--first", type=int, help="the first so many repositories alone")
    parser.add_argument("--out", type=output, metavar="FILE", help="write every finding as JSON lines")
