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
from importer.proof.result import ParserVerdict, Proof
from importer.validation import call_forms
from importer.validation.client import Client
from importer.validation.context import Context, Shared
from importer.validation.evidence_sources import Background, Journal
from importer.validation.expectations import Expectations, promise_of
from importer.validation.outcome import NotShown, Outcome, Pass, ProbeRow
from importer.validation.probe import ProbeOptions
from importer.validation.probes.cache import prefix_cache
from importer.validation.probes.server import health, settings_read_back
from importer.validation.probes.tools import tool_call
from importer.validation.prompts import (
    GREETING,
    SUM,
    SUM_SILENT,
    TRIP,
    TWO_CITIES,
    TWO_USERS,
    WEATHER,
    WEATHER_ANSWERED,
)
from importer.validation.run import validate
from tests.facts import as_reason
from tests.judging import remedy, words
from tests.validation.test_validation_server_engine import held

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
def test_where_only_the_likeliest_token_is_shown_it_is_not_taken_for_the_one_drawn(
    mlx_engine: Installed,
) -> None:
    made = document("mlx") | {"parameters": {"model": "./model", "temperature": 1.9}}
    with running("mlx", mlx_engine, made, MODEL) as (_, ctx):
        for _ in range(4):
            seen = Context(ctx.promise, ctx.model, ctx.client, Shared(), render=ctx.render).look(GREETING)
            if seen is not None:
                words = seen.content.split()
                assert all(word in seen.written for word in words), (seen.written, seen.content)


@pytest.mark.nightly
def test_mlx_vlm_has_no_completions_and_shows_its_tokens(mlx_vlm_engine: Installed) -> None:
    made = document("mlx-vlm", "tool_parser:json_tools", "reasoning_parser:think")
    with running("mlx-vlm", mlx_vlm_engine, made, MODEL) as (_, ctx):
        assert ctx.raw(WEATHER) is None
        seen = ctx.look(WEATHER)
        assert seen is not None
        assert '{"name": "get_weather", "arguments": {"location": "Paris"}}' in seen.written


@pytest.mark.nightly
def test_a_template_that_refuses_is_blamed_in_its_own_words(mlx_engine: Installed, tmp_path: Path) -> None:
    model = Path(shutil.copytree(MODEL, tmp_path / "model"))
    template = model / "chat_template.jinja"
    twice = "messages | length > 1 and messages[1].role == 'user'"
    strict = f"{{%- if {twice} -%}}{{{{ raise_exception('roles must alternate') }}}}{{%- endif -%}}"
    template.write_text(strict + template.read_text())

    class Strict:
        name, lesson, alone, tasks, feature, concerns = "strict", ".", False, (), None, ()

        def needs(self, promise: Expectations, /) -> None:
            return None

        def run(self, ctx: Context, /) -> Outcome:
            ctx.ask(TWO_USERS)
            return Pass(as_reason("taken"))

    made = document("mlx")
    with running("mlx", mlx_engine, made, model) as (served, ctx):
        known = Background(render=ctx.render, journal=ctx.journal)
        report = validate(made, served, known, ProbeOptions([health, Strict()]))
    outcome = report.rows[1].outcome
    assert (outcome.outcome, outcome.attribution) == ("fail", "configuration")
    assert "the chat template refuses it: roles must alternate" in words(outcome)


def verdict(parser: str, **failed: str) -> ParserVerdict:
    return ParserVerdict(parser, parser, () if failed else ("one-call",), failed, ("one-call",))


def odd(*options: str, **more: Any) -> dict[str, Any]:
    """A document for vLLM, without a cache; by itself with a parser that reads none of the model's calls."""
    chosen = options or ("tool_parser:pythonic", "reasoning_parser:qwen3")
    return {**document("vllm-cpu", *chosen), "engine_args": {"enable_prefix_caching": False}, **more}


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


@pytest.mark.nightly
@pytest.mark.xdist_group("vllm")
def test_vllm_with_other_settings_than_the_documents_and_the_wrong_parser(vllm_engine: Installed) -> None:
    """Two tests on one server: a start costs 20 s of processor. A validation ends it, and comes last."""
    with running("vllm-cpu", vllm_engine, odd(), MODEL) as (served, ctx):
        what_its_log_says_is_held_against_the_document(served)
        the_wrong_parser_is_told_the_right_one(served, ctx)


def what_its_log_says_is_held_against_the_document(served: EngineServer) -> None:
    """A cache that is switched off is no fault."""
    own = held(served, odd(), settings_read_back, prefix_cache)
    assert own == {"settings-read-back": ("pass", None), "prefix-cache": ("not-applicable", None)}
    for other in (
        odd("tool_parser:mistral", "reasoning_parser:qwen3"),
        odd("reasoning_parser:qwen3"),
        odd("tool_parser:pythonic"),
        odd(parameters={"temperature": 0.2}),
    ):
        found = held(served, other, settings_read_back)
        assert found == {"settings-read-back": ("fail", "configuration")}, other


def the_wrong_parser_is_told_the_right_one(served: EngineServer, ctx: Context) -> None:
    listed = (verdict("hermes"), verdict("pythonic", **{"one-call": "read no call where one call stood"}))
    assert ctx.render is not None
    proof = Proof("vllm", "0.32.0", ctx.render.digest, {"tool_parser": listed}, {})
    compare(ctx, calls_read=False)
    known = Background(render=ctx.render, proof=proof, journal=ctx.journal)
    report = validate(odd(), served, known, ProbeOptions([health, tool_call]))
    outcome = report.rows[1].outcome
    assert (outcome.outcome, outcome.attribution) == ("fail", "configuration"), outcome
    assert remedy(outcome).startswith("Set tool_parser:hermes in options")
    assert "pythonic does not" in remedy(outcome)
