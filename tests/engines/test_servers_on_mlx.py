"""The servers of mlx-vlm and vllm-mlx: their command lines, what clients send there, and their deaths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.document.argument_check import arguments_of
from importer.engines import registries
from importer.engines.logs import explain
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.vllm_mlx import VllmMlx
from importer.errors import DocumentError
from importer.sentences import render
from tests.commandline import Desk, desk

__all__ = ["desk"]
THINKS = ["tool_parser:json_tools", "reasoning_parser:<think>"]
READS = ["tool_parser:hermes", "reasoning_parser:qwen3"]
Server = MlxVlm | VllmMlx


def launched(engine: Server, document: dict[str, Any]) -> list[str]:
    return [*engine.launch({"name": "m", **document}, Path("/w"), 1234).arguments]


def test_the_command_line_of_mlx_vlm() -> None:
    given = {"temperature": 0.6, "top_p": 0.9, "max_tokens": 64.0}
    document = {"parameters": given, "options": THINKS[:1], "engine_args": {"kv_bits": 3.5}}
    assert launched(MlxVlm(), document) == [
        "-m", "mlx_vlm.server", "--model", "/w", "--host", "127.0.0.1", "--port", "1234",
        "--max-tokens", "64", "--kv-bits", "3.5",
    ]  # fmt: skip
    assert MlxVlm().launch(document, Path("/w"), 1).model == "/w"


@pytest.mark.parametrize(
    ("options", "variables", "thinks"),
    [
        ([], {}, False),
        (THINKS, {}, True),
        (THINKS, {"enable_thinking": True}, True),
        (THINKS, {"enable_thinking": False}, False),
        ([], {"enable_thinking": True}, True),
        (THINKS, None, True),
    ],
)
def test_mlx_vlm_is_told_whether_to_think(
    options: list[str], variables: dict[str, Any] | None, thinks: bool
) -> None:
    told = launched(MlxVlm(), {"options": options, "chat_template_kwargs": variables})
    assert ("--enable-thinking" in told) == thinks


def test_all_sampling_is_the_clients() -> None:
    given = {
        "temperature": 0, "top_p": 0.9, "top_k": 20, "min_p": 0.1, "repeat_penalty": 1.0, "max_tokens": 9,
    }  # fmt: skip
    sent = MlxVlm().client_sampling({"parameters": given | {"presence_penalty": 1.5, "seed": 7}})
    assert sent == {
        "temperature": 0, "top_p": 0.9, "top_k": 20, "min_p": 0.1, "presence_penalty": 1.5, "seed": 7,
    }  # fmt: skip


def test_none_is_sent_as_what_its_server_does_without_the_models_file() -> None:
    document = {
        "parameters": {"top_p": 0.9},
        "importer": {"unset": ["temperature", "top_k", "top_p", "min_p"]},
    }
    assert MlxVlm().client_sampling(document) == {"temperature": 0, "top_k": 0, "top_p": 0.9}
    assert MlxVlm().client_sampling({"stopwords": ["<end>"]}) == {}, "it ignores them"


def test_its_prefix_cache_is_gone_with_its_working_folder() -> None:
    assert VllmMlx().launch({"name": "m"}, Path("/w"), 1).env == {"HOME": "."}


def test_the_command_line_of_vllm_mlx() -> None:
    given = {"temperature": 0, "top_k": -1, "repeat_penalty": 1.1, "max_tokens": 64.0}
    document = {"parameters": given, "options": READS, "engine_args": {"max_num_seqs": 4}}
    assert launched(VllmMlx(), document) == [
        "-m", "vllm_mlx.cli", "serve", "/w", "--host=127.0.0.1", "--port=1234",
        "--served-model-name=m", "--enable-auto-tool-choice", "--tool-call-parser=hermes",
        "--reasoning-parser=qwen3", "--default-temperature=0", "--default-top-k=0",
        "--default-repetition-penalty=1.1", "--max-tokens=64",
        '--default-chat-template-kwargs={"enable_thinking": true}', "--continuous-batching",
        "--max-num-seqs=4", "--offline",
    ]  # fmt: skip
    assert VllmMlx().launch(document, Path("/w"), 1).model == "w"
    sent = {"parameters": {"temperature": 1, "seed": 7}, "stopwords": ["<end>"]}
    assert VllmMlx().client_sampling(sent) == {}


@pytest.mark.parametrize(
    ("options", "variables", "told"),
    [
        ([], {}, None),
        (READS, {}, {"enable_thinking": True}),
        (READS, {"enable_thinking": False}, {"enable_thinking": False}),
        (READS, {"effort": "high"}, {"enable_thinking": True, "effort": "high"}),
        ([], {"effort": "high"}, {"effort": "high"}),
    ],
)
def test_its_server_is_told_to_think_where_thoughts_are_read(
    options: list[str], variables: dict[str, Any], told: dict[str, Any] | None
) -> None:
    words = launched(VllmMlx(), {"options": options, "chat_template_kwargs": variables})
    given = [w.partition("=")[2] for w in words if w.startswith("--default-chat-template-kwargs")]
    assert [json.loads(w) for w in given] == ([] if told is None else [told])


def test_every_option_is_passed_under_its_name() -> None:
    known = arguments_of("vllm-mlx")
    numeric = [name for name, one in known.items() if one.kind in ("int", "float")]
    switches = [name for name, one in known.items() if one.kind == "bool"]
    told = launched(
        VllmMlx(), {"engine_args": {**dict.fromkeys(numeric, 1), **dict.fromkeys(switches, True)}}
    )
    assert {f"--{key.replace('_', '-')}=1" for key in numeric} <= {*told}
    assert {f"--{key.replace('_', '-')}" for key in switches} <= {*told}
    assert "--continuous-batching" not in launched(VllmMlx(), {"engine_args": {"continuous_batching": False}})


def test_an_answer_may_be_longer_than_the_server_would_allow() -> None:
    words = launched(VllmMlx(), {"parameters": {"max_tokens": 40_000}})
    assert {"--max-tokens=40000", "--max-request-tokens=40000"} <= {*words}


def test_code_of_a_repository_runs_only_on_the_users_word(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_file": "model.py"}')
    with pytest.raises(DocumentError, match="code that vllm-mlx runs at its start"):
        VllmMlx().launch({"name": "m"}, tmp_path, 1)
    VllmMlx().launch({"name": "m", "trust_remote_code": True}, tmp_path, 1)


@pytest.mark.parametrize(
    ("engine", "document", "says"),
    [
        (MlxVlm(), {"chat_template_kwargs": {"reasoning_effort": "high"}}, "reasoning_effort does not reach"),
        (MlxVlm(), {"parameters": {"max_tokens": True}}, "and not a number"),
        (VllmMlx(), {"engine_args": {"api_key": 1}}, "api_key is a secret"),
        (VllmMlx(), {"parameters": {"top_p": True}}, "and not a number"),
        (VllmMlx(), {"options": ["tool_parser:--host=0.0.0.0"]}, "and not a name"),
    ],
)
def test_what_it_cannot_be_started_with_is_said(engine: Server, document: dict[str, Any], says: str) -> None:
    with pytest.raises(DocumentError, match=says) as caught:
        launched(engine, document)
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize(
    ("engine", "line", "says"),
    [
        (
            MlxVlm(),
            "[Errno 98] error while attempting to bind on address: address already in use",
            "the port is taken",
        ),
        (MlxVlm(), "ValueError: Missing 11 parameters: ", "do not fit config.json"),
        (MlxVlm(), "(ModuleNotFoundError: No module named 'mlx_vlm').", "lacks mlx_vlm"),
        (
            VllmMlx(),
            "ERROR:    [Errno 98] error while attempting to bind: address already in use",
            "the port is taken",
        ),
        (
            VllmMlx(),
            "vllm-mlx serve: error: argument --tool-call-parser: invalid choice: 'x' (choose from a, b)",
            "argument --tool-call-parser: invalid choice: 'x'; another parser, or none, is this model's",
        ),
        (VllmMlx(), "ValueError: Missing 11 parameters: ", "do not fit config.json"),
        (VllmMlx(), "Error: --max-tokens cannot exceed --max-request-tokens", "cannot exceed"),
        (VllmMlx(), "(ModuleNotFoundError: No module named 'vllm_mlx').", "lacks vllm_mlx"),
    ],
)
def test_its_deaths_are_explained(engine: Server, line: str, says: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"Traceback\n{line}\n\nERROR:    Application startup failed. Exiting.\n")
    assert says in render(explain(log, engine.deaths).reason)


@pytest.mark.parametrize("backend", ["mlx-vlm", "vllm-mlx"])
def test_without_the_engine_the_table_names_parsers_that_it_has(desk: Desk, backend: str) -> None:
    line = desk(str(MODEL), "--backend", backend, "--json", "--dry-run").line
    decision = line["decisions"]["tool_parser"]
    assert decision["status"] == "table", json.dumps(decision)
    assert registries.load(backend).has("tool", decision["value"])
