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
from importer.validation.prompts import (
    GREETING,
    SUM,
    SUM_SILENT,
    TRIP,
    TWO_CITIES,
    WEATHER,
    WEATHER_ANSWERED,
)
from tests.facts import as_reason

pytestmark = pytest.mark.engine
MODELS = Path(__file__).parents[1] / "models"
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


@pytest.mark.nightly
def test_a_beginning_that_the_tokenizer_adds_is_not_sent_twice(mlx_engine: Installed, tmp_path: Path) -> None:
    """A real Llama's tokenizer puts the beginning before any text, and its template writes it as well."""
    begin = "<|begin_of_text|>"
    model = Path(shutil.copytree(MODELS / "llama3", tmp_path / "model"))
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    number = next(t["id"] for t in tokenizer["added_tokens"] if t["content"] == begin)
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": begin, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {begin: {"id": begin, "ids": [number], "tokens": [begin]}},
    }
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps(settings | {"bos_token": begin}))
    with running("mlx", mlx_engine, document("mlx"), model) as (_, ctx):
        raw = ctx.raw(GREETING)
        sent = [e for e in ctx.log if e.path == "/v1/completions"]
        counts = [json.loads(e.received)["usage"]["prompt_tokens"] for e in sent]
        chat = ctx.first(GREETING)
        assert counts == [(chat.usage.prompt or 0) + 1, chat.usage.prompt]
        assert sent[0].request is not None
        assert str(sent[0].request["prompt"]).startswith(begin)
        assert chat.content
        assert chat.content in (raw or "")


@pytest.mark.nightly
def test_mlx_vlm_has_no_completions_and_shows_its_tokens(mlx_vlm_engine: Installed) -> None:
    made = document("mlx-vlm", "tool_parser:json_tools", "reasoning_parser:think")
    with running("mlx-vlm", mlx_vlm_engine, made, MODEL) as (_, ctx):
        assert ctx.raw(WEATHER) is None
        seen = ctx.look(WEATHER)
        assert seen is not None
        assert '{"name": "get_weather", "arguments": {"location": "Paris"}}' in seen.written


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
