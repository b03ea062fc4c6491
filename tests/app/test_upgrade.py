"""Two versions of an engine side by side, and what their tables change for one document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from importer.app.recheck import CauseKind
from importer.app.upgrade_versions import (
    VersionDifference,
    at_version,
    causes,
    difference,
    known_before,
    named,
    renamed,
    renames,
)
from importer.config_file.check import ModelFacts, RecordedFacts
from importer.config_file.engine_arguments import Argument


def document(**given: Any) -> dict[str, Any]:
    engine = {"name": "vllm", "version": "0.32.0"}
    base = {"name": "toy", "backend": "vllm", "parameters": {"model": "acme/toy"}}
    return {**base, "importer": {"schema": 1, "engine": engine}, **given}


def found(data: dict[str, Any], moved: VersionDifference, facts: RecordedFacts | None = None) -> Any:
    return {(c.what, *(c.keys or ())): (c.before, c.after) for c in causes(data, facts, moved)}


NEXT = difference("vllm", "0.32.0", "0.33.0")


def test_versions_that_are_named() -> None:
    assert named("vllm@0.33").label == "vllm@0.33.0"
    assert named("vllm-cuda@0.32.0").label == "vllm@0.32.0"


def test_a_version_without_tables_is_compared_as_the_one_before_it() -> None:
    assert [known_before("vllm", v) for v in ("0.31.9", "0.33.1", "0.1.0", None)] == [
        "0.27.1", "0.33.0", "0.14.1", "0.33.0",
    ]  # fmt: skip


def test_what_moved_between_versions() -> None:
    assert {"step5", "beam"} <= NEXT.parsers["tool_parser"]
    assert {one.name for one in NEXT.defaults} == {"tool_strict_level", "mamba_cache_mode"}
    assert (NEXT.frontends, NEXT.all_models) == (("rust",), False)
    assert {"step5", "medusa", "Step5ForCausalLM"} <= NEXT.models
    assert "qwen3" not in NEXT.models


def test_a_plain_document_relies_on_nothing_that_moved() -> None:
    assert found(document(), NEXT) == {}


def test_defaults_that_a_document_relies_on() -> None:
    tools = document(options=["tool_parser:hermes"])
    key = (CauseKind.DEFAULT, "engine_args.tool_strict_level")
    assert found(tools, NEXT) == {key: ('"auto"', None)}
    assert "the engine decides at its start" in next(causes(tools, None, NEXT)).to_json()["why"]
    assert found({**tools, "engine_args": {"tool_strict_level": "auto"}}, NEXT) == {}
    hybrid = RecordedFacts(ModelFacts(architectures=("FalconH1ForCausalLM",)), None, {})
    assert found(document(), NEXT, hybrid) == {
        (CauseKind.DEFAULT, "engine_args.mamba_cache_mode"): ('"none"', None)
    }


def test_choices_variables_and_pairs_that_the_new_version_refuses() -> None:
    data = document(
        dtype="float16",
        engine_args={"speculative_config": {"method": "medusa"}, "kv_cache_dtype": "bfloat16"},
        env={"VLLM_ROCM_MONO_DECODE": 1, "VLLM_LOGGING_LEVEL": "INFO"},
    )
    assert found(data, NEXT) == {
        (CauseKind.ARGUMENT_CHANGED, "engine_args.speculative_config.method"): ('"medusa"', None),
        (CauseKind.TOGETHER, "engine_args.kv_cache_dtype"): ('"bfloat16"', None),
        (CauseKind.VARIABLE_GONE, "env.VLLM_ROCM_MONO_DECODE"): ("1", None),
    }


def test_arguments_that_the_other_version_lacks() -> None:
    back = difference("vllm", "0.33.0", "0.32.0")
    data = at_version(document(engine_args={"monokernel": True}), "0.33.0", None)
    assert [one[0] for one in found(data, back)] == [CauseKind.ARGUMENT_GONE]


def test_parsers_that_are_gone_or_renamed() -> None:
    old = difference("vllm", "0.14.1", "0.32.0")
    assert found(document(options=["tool_parser:minimax"]), old)[CauseKind.PARSER_GONE, "tool_parser"] == (
        "minimax", None,
    )  # fmt: skip
    back = difference("vllm", "0.32.0", "0.27.1")
    data = document(options=["tool_parser:qwen3_json", "other:1"])
    assert found(data, back)[CauseKind.PARSER_RENAMED, "tool_parser"] == ("qwen3_json", "hermes")
    assert renamed(data, renames(data, back))["options"] == ["tool_parser:hermes", "other:1"]


def test_arguments_that_are_renamed() -> None:
    assert NEXT.after.arguments is not None
    arguments = {**NEXT.after.arguments.arguments}
    own = arguments.pop("max_num_seqs")
    arguments["max_sequences"] = replace(own, name="max_sequences", aliases=("max_num_seqs",))
    table = _Aliased(NEXT.after.arguments, arguments)
    moved = replace(NEXT, after=replace(NEXT.after, arguments=table))  # type: ignore[arg-type]
    data = document(engine_args={"seed": 1, "max_num_seqs": 8})
    [one] = renames(data, moved)
    assert (one.before, one.after) == ("max_num_seqs", "max_sequences")
    assert [*renamed(data, [one])["engine_args"].items()] == [("seed", 1), ("max_sequences", 8)]


class _Aliased:
    """A table whose names are given: the shipped versions have renamed no argument yet."""

    def __init__(self, table: Any, arguments: dict[str, Argument]) -> None:
        self.arguments, self._table = arguments, table

    def get(self, name: str) -> Argument | None:
        named = {alias: one for one in self.arguments.values() for alias in one.aliases}
        return self.arguments.get(name) or named.get(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


def test_a_frontend_that_the_other_version_lacks() -> None:
    back = difference("vllm", "0.33.0", "0.32.0")
    data = document()
    data["importer"]["engine"] = {"name": "vllm", "version": "0.33.0", "frontend": "rust"}
    assert found(data, back)[CauseKind.FRONTEND, "frontend"] == ("rust", None)
    data["importer"]["engine"]["frontend"] = "python"
    assert (CauseKind.FRONTEND, "frontend") not in found(data, back)
