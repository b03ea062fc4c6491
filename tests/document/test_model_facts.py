"""The facts of a model in the receipt: an edit meets the check of the import."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from importer.document import schema
from importer.document.model_conflicts import model_faults
from importer.document.model_facts import ModelFacts, RecordedFacts, facts_json, recorded_facts
from importer.document.receipt import parse
from importer.errors import DocumentError
from importer.sentences import render
from tests.commandline import Desk, edit, receipt

KNOWN = ModelFacts(heads=32, layers=36, experts=False, drafts=False, longest=40960)
ENGINE = {"name": "vllm", "version": "0.33.0"}
RECORD = RecordedFacts(KNOWN, "a" * 40, ENGINE)


def document(**more: Any) -> dict[str, Any]:
    return {"backend": "vllm", "importer": {"revision": "a" * 40, "engine": dict(ENGINE)}, **more}


def found(data: dict[str, Any], record: RecordedFacts | None = RECORD) -> dict[str, str]:
    return {".".join(path): render(reason) for path, reason in model_faults(data, record)}


def test_a_document_that_the_model_rules_out() -> None:
    wrong = document(engine_args={"pipeline_parallel_size": 64})
    assert "36 layers" in found(wrong)["engine_args.pipeline_parallel_size"]
    assert found(wrong, None) == {}


def test_facts_hold_for_their_commit_and_their_version_alone() -> None:
    wrong = {"tensor_parallel_size": 3, "max_model_len": 10**9}
    assert found(document(**wrong)).keys() == wrong.keys()
    other = document(**wrong)
    other["importer"]["engine"]["version"] = "0.32.0"
    assert found(other).keys() == {"tensor_parallel_size"}
    other["importer"]["revision"] = "b" * 40
    assert found(other) == {}
    assert found({"backend": "vllm", **wrong}, replace(RECORD, revision=None)).keys() == wrong.keys()


def test_a_context_of_an_overridden_config_is_unknown() -> None:
    longer = {"hf_overrides": {"max_position_embeddings": 80000}}
    assert found(document(max_model_len=80000, engine_args=longer)) == {}
    assert found(document(max_model_len=80000, engine_args={})).keys() == {"max_model_len"}


def test_every_fact_stands_in_the_schema_and_is_read_back(desk: Desk) -> None:
    desk("acme/base")
    written = receipt(desk)["model"]
    described = schema.load("receipt")["properties"]["model"]["properties"]
    assert written.keys() == {f.name for f in fields(ModelFacts)}
    assert written.keys() <= described.keys()
    record = recorded_facts(parse(receipt(desk)))
    assert record is not None
    assert (record.facts.heads, record.facts.longest, record.facts.experts) == (4, 512, False)
    assert facts_json(record.facts) == {
        **written, "model_types": ("llama",), "architectures": ("LlamaForCausalLM",),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("words", [("review", "--approve"), ("export", "vllm-command"), ("validate",)])
def test_a_file_by_hand_meets_the_check_of_the_import(desk: Desk, words: tuple[str, ...]) -> None:
    desk("acme/base")
    edit(desk, "backend: vllm", "backend: vllm\ntensor_parallel_size: 3")
    ran = desk(words[0], "base", *words[1:])
    assert ran.code == DocumentError.exit_code
    assert "does not divide the model's 4 attention heads" in ran.err
    assert "does not divide the model's 4 attention heads" in desk("review", "base").out
    refused = desk("acme/base", "--set", "tensor_parallel_size=3", "--name", "other")
    assert "does not divide the model's 4 attention heads" in refused.err
