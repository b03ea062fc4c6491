"""Starts that fail for no known cause: the setting that is in the way, or a standstill."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from importer.engines import logs, readiness, start_trials
from importer.engines.deaths import Died
from importer.engines.lacking import Lacking
from importer.engines.process import serve
from importer.engines.readiness import Exit
from importer.engines.start_trials import Setup, StartSetting, culprit
from importer.errors import EngineError
from importer.reasons import Reason
from importer.sentences import render
from tests.toy_engine import adapter
from tests.waiting import PYTHON


def died(
    weights: Path, mode: str = "serves", env: Mapping[str, str] | None = None, **how: Any
) -> EngineError:
    document = {"name": "m", "env": dict(env or {})}
    with pytest.raises(EngineError) as caught, serve(adapter(mode, **how), PYTHON, document, weights):
        pass
    assert caught.value.kind == "engine-died"
    return caught.value


def setting(error: EngineError) -> Reason:
    problem = error.details["problem"]
    assert isinstance(problem, Reason)
    assert problem.kind is Died.SETTING
    named = problem.fields["setting"]
    assert isinstance(named, Reason)
    return named


@pytest.mark.slow
def test_a_variable_of_the_document_is_named(importer_home: Path, weights: Path) -> None:
    error = died(weights, env={"OMP_NUM_THREADS": "1", "TOY_HATES": "it"})
    assert setting(error) == Reason(StartSetting.OF_DOCUMENT, key="env", name="TOY_HATES", value="it")
    assert error.details["blames"] == "configuration"
    assert "env.TOY_HATES (it) of the document" in error.message


@pytest.mark.nightly
@pytest.mark.slow
def test_a_variable_of_the_machine_is_named(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_HATES", "it")
    monkeypatch.setenv("IMPORTER_ENGINE_ENV", "TOY_HATES")
    error = died(weights)
    assert setting(error) == Reason(StartSetting.OF_MACHINE, name="TOY_HATES", value="it")
    assert error.details["blames"] == "environment"


@pytest.mark.slow
def test_a_python_that_does_not_start_is_asked_alone(importer_home: Path, weights: Path) -> None:
    error = died(weights, env={"PYTHONHASHSEED": "none", "OMP_NUM_THREADS": "1"})
    assert setting(error) == Reason(StartSetting.OF_DOCUMENT, key="env", name="PYTHONHASHSEED", value="none")
    assert error.details["blames"] == "configuration"
    assert "must be" in error.message


@pytest.mark.nightly
@pytest.mark.slow
def test_files_of_the_model_are_named_where_another_model_starts(importer_home: Path, weights: Path) -> None:
    error = died(weights, "wants-config", env={"OMP_NUM_THREADS": "1"})
    problem = error.details["problem"]
    assert isinstance(problem, Reason)
    assert problem.kind is Died.OWN_FILES
    assert error.details["blames"] == "configuration"
    assert "something in these files" in error.message


@pytest.mark.slow
def test_a_key_of_config_json_is_named_where_it_starts_without(importer_home: Path, weights: Path) -> None:
    (weights / "config.json").write_text(
        '{"quantization_config": {"quant_method": "awq"}, "model_type": "m"}'
    )
    error = died(weights, "hates-quantization")
    told = setting(error)
    assert (told.kind, told.fields["name"]) == (StartSetting.OF_MODEL, "quantization_config")
    assert error.details["blames"] == "configuration"


@pytest.mark.slow
def test_the_engine_is_named_where_no_model_starts(importer_home: Path, weights: Path) -> None:
    error = died(weights, "dies-strangely")
    problem = error.details["problem"]
    assert isinstance(problem, Reason)
    assert problem.kind is Died.LAST_WORDS
    assert error.details["blames"] == "engine"


def test_a_known_cause_needs_no_trial(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_trials, "UNTOLD", frozenset())
    assert "setting" not in repr(died(weights, env={"TOY_HATES": "it"}).details["problem"])


@pytest.mark.parametrize("on_cards", [True, False])
def test_programs_that_hold_a_card_are_named(
    on_cards: bool, importer_home: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    rows = "/opt/a, b/python, 4711, 61234\\n[Not Found], 4712, [N/A]\\nno row\\n"
    program.write_text(f"#!/bin/sh\nprintf '{rows}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    problem = died(weights, "finds-no-room", on_cards=on_cards).details["problem"]
    assert "kv_cache_memory_bytes" in render(problem)
    held = "; on the card: python (process 4711, 61,234 MiB) and [Not Found] (process 4712, [N/A])"
    assert render(problem).endswith(held) is on_cards


@pytest.mark.parametrize("bad", [{"a"}, {"e"}, {"a", "e"}, {"z"}])
def test_halves_find_one_setting_and_only_one(bad: Collection[str]) -> None:
    settings = [Setup(None, name, "1") for name in "abcde"]
    steps: list[str] = []
    found = culprit(
        settings,
        lambda out, _: bad <= {one.name for one in out},
        float("inf"),
        lambda step: steps.append(str(step)),
    )
    assert (found.name if found else None) == (next(iter(bad)) if bad in ({"a"}, {"e"}) else None)
    assert len(steps) <= 5


def test_no_trial_begins_after_the_time() -> None:
    tried: list[object] = []
    starts = lambda out, _: bool(tried.append(out)) or True  # noqa: E731
    assert culprit([Setup(None, "a", "1")], starts, 0.0, lambda _: None) is None
    assert not tried


def test_a_secret_value_is_not_shown() -> None:
    assert Setup(None, "HF_TOKEN", "hf_secret").reason.fields["value"] == "…"


# Servers that live and do not serve


@pytest.mark.slow
def test_an_engine_that_stands_still_behind_an_exception(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "STILL", 0.3)
    error = died(weights, "still")
    assert isinstance(error.details["code"], Reason)
    assert error.details["code"].kind is Exit.STILL
    assert "RuntimeError: a thread ended" in error.message


@pytest.mark.nightly
@pytest.mark.slow
def test_an_engine_that_works_behind_an_exception_is_awaited(
    importer_home: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "STILL", 2.0)
    with serve(adapter("busy"), PYTHON, {"name": "m"}, weights) as served:
        assert served.alive


# Limits


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the limits of another process")
def test_the_limit_of_processor_time_is_told_from_a_lack_of_memory(
    importer_home: Path, weights: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import resource, sys\n"
        "if 'toy_engine' in ' '.join(sys.orig_argv):\n"
        "    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n"
    )
    error = died(weights, "busy", env={"PYTHONPATH": str(tmp_path)})
    assert error.details["problem"] == Reason(Lacking.PROCESSOR_SECONDS)
    assert error.details["blames"] == "environment"


def test_what_a_request_broke_did_not_end_a_server(tmp_path: Path) -> None:
    from importer.engines import get

    log = tmp_path / "log"
    log.write_text("Traceback (most recent call last):\nJSONDecodeError: Expecting value\n")
    deaths = get("mlx").deaths
    assert logs.explain(log, deaths, 137).reason.kind is Died.JSON_BROKEN
    assert logs.explain(log, deaths, 137, served=True).reason.kind is Lacking.KILLED
    assert "ulimit -t" in render(logs.explain(log, deaths, 152).reason)
