"""Judging what a template writes of conversations, and what a tokenizer makes of texts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.chat_template.request_coverage.findings import CoverageField, CoverageKind
from importer.engines import get, install, tokenizer
from importer.proof.result import Proof
from importer.reasons import Reason
from importer.validation import cause, diagnosis
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Pass, Stage
from importer.validation.probe import Rests
from importer.validation.probes.message_forms import message_forms
from importer.validation.probes.prompt import (
    _counted,
    _turns,
    judge_template_coverage,
    judge_tokenizer,
    prompt_rendered,
    template_coverage,
)
from importer.validation.prompts import SYSTEM, Prompt
from importer.validation.remedy import Need
from importer.validation.rendering import PromptRendering
from importer.validation.tokens import KINDS, TEXT
from tests.analysing import analysed
from tests.coverage_faults import FAULTS
from tests.facts import as_reason
from tests.judging import MODEL, asked, copied, rendering, said, words
from tests.models.formats import FORMATS
from tests.tiers import one_of_each

OF_ANOTHER = Proof("mlx", "1", "the import's", verdicts={}, written={})  # the file was edited since
OPEN: list[PromptRendering] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().__exit__(None, None, None)


def context(folder: Path, *, tool_parser: str | None = None, **more: Any) -> Context:
    render = rendering(folder)
    OPEN.append(render)
    promise = Expectations(tool_parser=tool_parser)
    return Context(promise, "m", Client("http://127.0.0.1:1"), render=render, **more)


def edited(folder: Path, old: str, new: str) -> Path:
    """The demo model's small files, with another text in the template."""
    for file in ("config.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(MODEL / file, folder)
    text = (MODEL / "chat_template.jinja").read_text(encoding="utf-8")
    assert old in text
    (folder / "chat_template.jinja").write_text(text.replace(old, new), encoding="utf-8")
    return folder


HELD = "messages[headed:]"
SAID = "{%- else -%}\n    {{- message.content or '' -}}"


@pytest.mark.parametrize(
    ("old", "new", "kind", "field", "change"),
    one_of_each([
        (HELD, "messages", CoverageKind.DOUBLED, CoverageField.SYSTEM, Need.SYSTEM_ONCE),
        (HELD, f"{HELD} | reverse", CoverageKind.OUT_OF_ORDER, CoverageField.USER, Need.RENDER_EVERYTHING),
        ("~ preface", "~ preface[:40]", CoverageKind.CUT, CoverageField.SYSTEM, Need.RENDER_EVERYTHING),
        (SAID, SAID.replace("or ''", "| e"), CoverageKind.ALTERED, CoverageField.USER, Need.RENDER_UNALTERED),
        (
            "(arguments if arguments is string else arguments | tojson)",
            "arguments | tojson(ensure_ascii=true)",
            CoverageKind.ASCII_ESCAPED, CoverageField.ARGUMENT, Need.NO_ESCAPING,
        ),
        (
            "{%- if tools -%}", "{%- if tools | length -%}",
            CoverageKind.FAILS, CoverageField.SYSTEM, Need.TAKE_CONVERSATION,
        ),
    ], tier="slow"),
)  # fmt: skip
def test_every_defect_of_a_template_is_a_fact(
    tmp_path: Path, old: str, new: str, kind: CoverageKind, field: CoverageField, change: Need | None
) -> None:
    ctx = context(edited(tmp_path, old, new), tool_parser="any", proof=OF_ANOTHER)
    found = template_coverage.run(ctx)
    assert isinstance(found, Fail)
    assert found.attribution == "configuration"
    assert (kind, field) in [(one.kind, one.fields["field"]) for one in (found.reason, *found.notes)]
    assert found.stage is Stage.TEMPLATE
    assert found.remedy is not None
    need = found.remedy.fields.get("needs")
    assert change is None or (isinstance(need, Reason) and need.kind is change)


@pytest.mark.parametrize(
    ("name", "must"),
    [
        ("the second system turn is refused", "clients must merge system turns"),
        ("later system turn refused", "clients must send the system turn first"),
        ("a developer is refused", "clients must send the role system"),
        ("system turn dropped", "clients must put instructions into a user's turn"),
        ("calls dropped", ""),
        ("descriptions of tools dropped", ""),
        ("description as HTML", ""),
        ("system turn dropped beside tools", None),
        ("the last four turns only", None),
        ("answers dropped", None),
        ("first tool only", None),
    ],
)
def test_what_a_vendors_template_does_not_take_is_a_sentence(name: str, must: str | None) -> None:
    """Only a lost ordinary turn (``None``) breaks the contract."""
    fault = next(one for one in FAULTS if one.name == name)
    outcome = judge_template_coverage(analysed(fault.text), Expectations(tool_parser="any"))
    assert isinstance(outcome, Fail if must is None else Pass), outcome
    if must is not None:
        assert must in words(outcome)


def test_a_role_without_a_place_is_a_sentence_and_one_lost_beside_tools_a_fault(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "beside").mkdir()
    none = context(edited(tmp_path / "none", "~ preface", "~ ''"), tool_parser="any")
    beside = edited(tmp_path / "beside", "~ preface", "~ ('' if tools else preface)")
    outcome = template_coverage.run(none)
    assert isinstance(outcome, Pass)
    assert "clients must put instructions into a user's turn" in words(outcome)
    assert isinstance(template_coverage.run(context(beside, tool_parser="any")), Fail)
    for proof, needed, kind in ((None, False, NotApplicable), (None, True, Fail), (OF_ANOTHER, False, Fail)):
        ctx = replace(none, proof=proof)
        lost = diagnosis.left_out(ctx, replace(diagnosis.SYSTEM_WORDS, needed=needed), 9)
        assert isinstance(lost, kind)


def test_a_date_is_no_time_of_day(tmp_path: Path) -> None:
    old = "'<|im_start|>system\\n' ~"
    folder = edited(tmp_path, old, f"{old} strftime_now('%d %B %Y') ~")
    assert isinstance(_turns(context(folder)), Pass)


def test_a_refusal_over_which_the_template_broke_is_not_clean(tmp_path: Path) -> None:
    ctx = context(edited(tmp_path, "{%- if tools -%}", "{%- if tools | length -%}"))
    with pytest.raises(RequestRefused):
        ctx.refused(RequestRefused(404, "no len()"), SYSTEM)
    assert message_forms.rests_on is Rests.REQUESTS


def test_another_template_than_the_proved_one_is_told_and_the_model_is_not_to_blame() -> None:
    declined = Inconclusive(as_reason("the model answered without a call"), Stage.DRAWN)
    ctx = context(MODEL)
    assert ctx.render is not None
    for digest, part in ((ctx.render.digest, "model"), ("another", "configuration")):
        asked = context(MODEL, proof=Proof("mlx", "1", digest, verdicts={}, written={}))
        assert cause.by_proof(declined, asked).attribution == part


@pytest.mark.engine
@pytest.mark.slow
def test_what_tokenizers_make_of_texts(tmp_path: Path) -> None:
    python = install.need(get("mlx")).python
    for recipe in FORMATS.values():
        found = tokenizer.asker(python, recipe.folder)((TEXT, TEXT, KINDS, TEXT))
        assert found is not None
        assert judge_tokenizer(found) is None
    data = json.loads((MODEL / "tokenizer.json").read_text())
    for change in ({"normalizer": {"type": "Lowercase"}}, {"model": {**data["model"], "merges": []}}):
        (tmp_path / "tokenizer.json").write_text(json.dumps({**data, **change}))
        found = tokenizer.asker(python, tmp_path)((TEXT, TEXT, KINDS, TEXT))
        assert found is not None
        assert isinstance(judge_tokenizer(found), Fail)


def test_who_leaves_something_out_of_the_prompt(tmp_path: Path) -> None:
    settings = json.loads((MODEL / "tokenizer_config.json").read_text())
    older = json.dumps(settings | {"chat_template": "{{ messages }}"})
    cases = {
        "engine": copied(tmp_path / "whole"),
        "configuration": copied(tmp_path / "two", tokenizer_config__json=older),
        "configuration ": copied(tmp_path / "none", chat_template__jinja="{{ messages }}"),
    }
    for part, folder in cases.items():
        with rendering(folder) as render:
            ctx = Context(Expectations(), "m", Client("http://127.0.0.1:1"), render=render)
            told = diagnosis.left_out(ctx, diagnosis.TOOLS, 9)
            assert told.attribution == part.strip(), folder
    ctx = Context(Expectations(), "m", Client("http://127.0.0.1:1"))
    assert diagnosis.left_out(ctx, diagnosis.TOOLS, 9).attribution == "configuration"


def test_what_a_template_and_its_repository_say(tmp_path: Path) -> None:
    settings = json.loads((MODEL / "tokenizer_config.json").read_text())
    claims = json.dumps(settings | {"tool_parser_type": "glm47", "chat_template": "{{ messages }}"})
    with rendering(copied(tmp_path / "m", tokenizer_config__json=claims)) as render:
        assert render.claimed == "glm47"
        assert render.others == ("tokenizer_config.json",)
        assert render.knows("enable_thinking")
        assert not render.knows("thinking")
    with rendering(MODEL) as render:
        assert (render.claimed, render.others) == (None, ())


def test_a_prompt_that_nobody_can_render_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = asked(lambda _: said("Hi."), monkeypatch)
    assert isinstance(prompt_rendered.run(ctx), NotApplicable)
    assert ctx.counted(Prompt("x", ())) is None


def test_counts_that_no_engine_gives_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = asked(lambda _: said("Hi."), monkeypatch, tool_parser="x")  # its completions end at a closed port
    with rendering(MODEL) as render:
        assert isinstance(_counted(replace(ctx, render=render), render), NotApplicable)
