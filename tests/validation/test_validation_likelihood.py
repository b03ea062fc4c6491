"""Teacher-forced likelihood: measured on a real answer of vLLM's form, and compared with the first run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from importer.reasons import Reason
from importer.validation.cause import altered
from importer.validation.evidence_sources import Likelihood, ScoredText, per_token, recorded
from importer.validation.expectations import promise_of
from importer.validation.explain import explained
from importer.validation.outcome import Fail, NotApplicable, Pass, ProbeRow, Stage
from importer.validation.probes import chat as probe
from importer.validation.probes.server import files_as_imported, judge_files_as_imported
from importer.validation.probes.tools import tool_call
from importer.validation.remedy import Remedy
from tests.facts import as_reason
from tests.judging import words

BEFORE = (ScoredText("<user>Hi<bot>", "Hello.", 4, 1.0), ScoredText("<user>2+2<bot>", "4", 1, 0.5))


def scored(nats: float) -> list[ScoredText]:
    return [replace(text, nats=nats * text.tokens) for text in BEFORE]


def test_without_a_reference_the_number_is_shown() -> None:
    shown = probe.judge_likelihood(BEFORE, ())
    assert isinstance(shown, NotApplicable)  # nothing is compared, so nothing is proved
    assert words(shown).startswith("0.3 nats for each of 5 tokens")


def test_a_loss_beyond_the_margin_is_the_model_s_fault() -> None:
    assert isinstance(probe.judge_likelihood(scored(0.3 + probe.MARGIN - 0.01), BEFORE), Pass)
    assert isinstance(probe.judge_likelihood(scored(0.0), BEFORE), Pass)
    worse = probe.judge_likelihood(scored(0.3 + probe.MARGIN + 0.01), BEFORE)
    assert isinstance(worse, Fail)
    assert worse.attribution == "model"
    assert worse.remedy is not None
    assert worse.remedy.kind is Remedy.WHOLE_WEIGHTS


def test_a_setting_that_alters_numbers_is_the_document_s_fault() -> None:
    worse = probe.judge_likelihood(scored(9.0), BEFORE)
    outcome = altered(worse, promise_of({"name": "x", "quantization": "fp8"}))
    assert outcome.attribution == "configuration"
    assert outcome.remedy is not None
    assert outcome.remedy.kind is Remedy.TAKE_OUT_SETTING


def test_another_tokenizer_s_tokens_are_counted_as_those_of_the_reference() -> None:
    split = [replace(text, tokens=text.tokens * 3) for text in BEFORE]
    assert per_token(split, BEFORE) == per_token(BEFORE, BEFORE) == 0.3


def entry(measured: Likelihood) -> Mapping[str, Any]:
    made = measured.to_json()
    assert made is not None
    return made


def test_the_first_run_that_passed_stays_the_reference() -> None:
    first = Likelihood()
    first.measured[:] = BEFORE
    run = {"passed": True, "started": "2026-11-23T00:00:00", "likelihood": entry(first)}
    assert recorded({**run, "passed": False}) == Likelihood()
    second = recorded(run)
    assert (second.reference, second.since) == (BEFORE, "2026-11-23T00:00:00")
    second.measured[:] = scored(2.0)
    later = entry(second)
    assert (later["nats_per_token"], later["reference"]) == (2.0, 0.3)
    third = recorded({"passed": False, "started": "2026-11-24T00:00:00", "likelihood": later})
    assert (third.reference, third.since) == (BEFORE, "2026-11-23T00:00:00")


@pytest.mark.parametrize("broken", [None, {}, {"texts": [{}]}, {"texts": [{"prompt": "", "nats": math.nan}]}])
def test_a_broken_entry_is_no_reference(broken: object) -> None:
    assert recorded({"passed": True, "likelihood": broken}) == Likelihood()


def test_a_loss_explains_answers_and_other_weights_explain_the_loss() -> None:
    loss = ProbeRow(probe.likelihood.name, "", probe.judge_likelihood(scored(9.0), BEFORE))
    call = Fail(as_reason("no call"), Stage.WHOLE, Reason(Remedy.READ_LOG))
    rows = explained([loss, ProbeRow(tool_call.name, "", call)])
    assert [row.outcome.attribution for row in rows] == ["model", "model"]
    assert [row.outcome.follows for row in rows] == [(), (probe.likelihood.name,)]
    digests = {"model.safetensors": "a" * 64}
    files = judge_files_as_imported(digests, {"model.safetensors": "b" * 64})
    both = explained([ProbeRow(files_as_imported.name, "", files), loss])
    assert [row.outcome.follows for row in both] == [(), (files_as_imported.name,)]
    assert both[1].outcome.remedy == files.remedy
