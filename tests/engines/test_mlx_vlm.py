"""mlx-vlm's command line and what the client sends there."""

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
from importer.errors import DocumentError
from importer.sentences import render
from tests.commandline import Desk, desk  # noqa: F401 - a fixture

THINKS = ["tool_parser:json_tools", "reasoning_parser:<think>"]


def launched(document: dict[str, Any]) -> list[str]:
    return [*MlxVlm().launch(document, Path("/w"), 1234).arguments]


def test_the_command_line() -> None:
    given = {"temperature": 0.6, "top_p": 0.9, "max_tokens": 64.0}
    document = {"parameters": given, "options": THINKS[:1], "engine_args": {"kv_bits": 3.5}}
    assert launched(document) == [
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
def test_its_server_is_told_whether_to_think(
    options: list[str], variables: dict[str, Any] | None, thinks: bool
) -> None:
    told = launched({"options": options, "chat_template_kwargs": variables})
    assert ("--enable-thinking" in told) == thinks


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"chat_template_kwargs": {"reasoning_effort": "high"}}, "reasoning_effort does not reach"),
        ({"engine_args": {"api_key": 1}}, "api_key is a secret"),
        ({"engine_args": {"kv_bits": "--host=0.0.0.0"}}, "is not a number"),
        ({"parameters": {"max_tokens": True}}, "and not a number"),
    ],
)
def test_what_it_cannot_be_started_with_is_said(document: dict[str, Any], says: str) -> None:
    with pytest.raises(DocumentError, match=says) as caught:
        launched(document)
    assert caught.value.kind == "invalid"


def test_every_numeric_option_is_passed_under_its_name() -> None:
    numeric = [name for name, one in arguments_of("mlx-vlm").items() if one.kind in ("int", "float")]
    told = launched({"engine_args": dict.fromkeys(numeric, 1)})
    assert told[8:] == [w for key in numeric for w in (f"--{key.replace('_', '-')}", "1")]


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


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[Errno 98] error while attempting to bind on address: address already in use", "the port is taken"),
        ("HTTPException: 400: Failed to load model: Model type qwen99 not supported.",
         "qwen99 not supported"),
        ("HTTPException: 400: Failed to load model: Unrecognized processing class",
         "Unrecognized processing"),
        ("ValueError: Missing 11 parameters: ", "do not fit config.json"),
        ("(ModuleNotFoundError: No module named 'mlx_vlm').", "lacks mlx_vlm"),
    ],
)  # fmt: skip
def test_its_deaths_are_explained(line: str, says: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"Traceback\n{line}\n\nERROR:    Application startup failed. Exiting.\n")
    assert says in render(explain(log, MlxVlm().deaths).reason)


@pytest.mark.parametrize("backend", ["mlx-vlm", "vllm-mlx"])
def test_without_the_engine_the_table_names_parsers_that_it_has(desk: Desk, backend: str) -> None:  # noqa: F811
    line = desk(str(MODEL), "--backend", backend, "--json", "--dry-run").line
    decision = line["decisions"]["tool_parser"]
    assert decision["status"] == "table", json.dumps(decision)
    assert registries.load(backend).has("tool", decision["value"])
