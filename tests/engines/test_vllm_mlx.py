"""vllm-mlx's command line, what no client can send there, and the deaths it explains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from importer.app.target import bind
from importer.document.argument_check import arguments_of
from importer.engines import registries
from importer.engines.logs import explain
from importer.engines.vllm_mlx import VERSION, VllmMlx
from importer.errors import DocumentError
from importer.sentences import render

READS = ["tool_parser:hermes", "reasoning_parser:qwen3"]


def launched(document: dict[str, Any]) -> list[str]:
    return [*VllmMlx().launch({"name": "m", **document}, Path("/w"), 1234).arguments]


def test_its_prefix_cache_is_gone_with_its_working_folder() -> None:
    assert VllmMlx().launch({"name": "m"}, Path("/w"), 1).env == {"HOME": "."}


def test_the_command_line() -> None:
    given = {"temperature": 0, "top_k": -1, "repeat_penalty": 1.1, "max_tokens": 64.0}
    document = {"parameters": given, "options": READS, "engine_args": {"max_num_seqs": 4}}
    assert launched(document) == [
        "-m", "vllm_mlx.cli", "serve", "/w", "--host=127.0.0.1", "--port=1234",
        "--served-model-name=m", "--enable-auto-tool-choice", "--tool-call-parser=hermes",
        "--reasoning-parser=qwen3", "--default-temperature=0", "--default-top-k=0",
        "--default-repetition-penalty=1.1", "--max-tokens=64",
        '--default-chat-template-kwargs={"enable_thinking": true}', "--continuous-batching",
        "--max-num-seqs=4", "--offline",
    ]  # fmt: skip
    assert VllmMlx().launch(document, Path("/w"), 1).model == "w"


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
    words = launched({"options": options, "chat_template_kwargs": variables})
    given = [w.partition("=")[2] for w in words if w.startswith("--default-chat-template-kwargs")]
    assert [json.loads(w) for w in given] == ([] if told is None else [told])


def test_every_option_is_passed_under_its_name() -> None:
    known = arguments_of("vllm-mlx")
    numeric = [name for name, one in known.items() if one.kind in ("int", "float")]
    switches = [name for name, one in known.items() if one.kind == "bool"]
    told = launched({"engine_args": {**dict.fromkeys(numeric, 1), **dict.fromkeys(switches, True)}})
    assert {f"--{key.replace('_', '-')}=1" for key in numeric} <= {*told}
    assert {f"--{key.replace('_', '-')}" for key in switches} <= {*told}
    assert "--continuous-batching" not in launched({"engine_args": {"continuous_batching": False}})


def test_an_answer_may_be_longer_than_the_server_would_allow() -> None:
    words = launched({"parameters": {"max_tokens": 40_000}})
    assert {"--max-tokens=40000", "--max-request-tokens=40000"} <= {*words}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"engine_args": {"api_key": 1}}, "api_key is a secret"),
        ({"engine_args": {"max_num_seqs": "--host=0.0.0.0"}}, "is not a whole number"),
        ({"engine_args": {"enable_mtp": "yes"}}, "is not true or false"),
        ({"parameters": {"top_p": True}}, "and not a number"),
        ({"options": ["tool_parser:--host=0.0.0.0"]}, "and not a name"),
    ],
)
def test_what_it_cannot_be_started_with_is_said(document: dict[str, Any], says: str) -> None:
    with pytest.raises(DocumentError, match=says) as caught:
        launched(document)
    assert caught.value.kind == "invalid"


def test_code_of_a_repository_runs_only_on_the_users_word(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_file": "model.py"}')
    with pytest.raises(DocumentError, match="code that vllm-mlx runs at its start"):
        VllmMlx().launch({"name": "m"}, tmp_path, 1)
    VllmMlx().launch({"name": "m", "trust_remote_code": True}, tmp_path, 1)


def test_nothing_is_left_for_the_client() -> None:
    given = {"temperature": 1, "seed": 7, "frequency_penalty": 1.5}
    assert VllmMlx().client_sampling({"parameters": given, "stopwords": ["<end>"]}) == {}


def test_a_document_is_written_for_it_with_its_own_parsers() -> None:
    target = bind("vllm-mlx").target
    assert (target.version, target.runs) == (VERSION, True)
    assert target.has("tool_parser", "hermes")
    assert not target.has("tool_parser", "granite4")
    assert registries.load("vllm-mlx").aliases("tool", "hermes") == ("nous",)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ERROR:    [Errno 98] error while attempting to bind: address already in use", "the port is taken"),
        (
            "vllm-mlx serve: error: argument --tool-call-parser: invalid choice: 'x' (choose from a, b)",
            "argument --tool-call-parser: invalid choice: 'x'; another parser, or none, is this model's",
        ),
        ("ValueError: Model type qwen99 not supported.", "qwen99 not supported"),
        ("ValueError: Missing 11 parameters: ", "do not fit config.json"),
        ("Error: --max-tokens cannot exceed --max-request-tokens", "cannot exceed"),
        ("(ModuleNotFoundError: No module named 'vllm_mlx').", "lacks vllm_mlx"),
    ],
)
def test_its_deaths_are_explained(line: str, says: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"Traceback\n{line}\n\n")
    assert says in render(explain(log, VllmMlx().deaths).reason)
