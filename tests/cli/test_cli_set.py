"""--set: what it takes, what it overrules, and what is nonsense."""

from __future__ import annotations

from typing import Any

import pytest

from importer.app import preferences
from importer.document import schema
from tests.commandline import Desk

SETTINGS: list[tuple[str, tuple[str, ...], Any]] = [
    ("temperature=0", ("parameters", "temperature"), 0),
    ("parameters.temperature=1e-1", ("parameters", "temperature"), 0.1),
    ("max_model_len=64", ("max_model_len",), 64),
    ("system_prompt=2024-01-01", ("system_prompt",), "2024-01-01"),
    ('stopwords=["</s>", "a: b"]', ("stopwords",), ["</s>", "a: b"]),
    ("chat_template_kwargs.a.b=[1, {c: null}]", ("chat_template_kwargs", "a", "b"), [1, {"c": None}]),
    ("system_prompt=two\nlines: 2", ("system_prompt",), "two\nlines: 2"),
    ("system_prompt=你好=x", ("system_prompt",), "你好=x"),
    ('reasoning_effort="no"', ("reasoning_effort",), "no"),
    ("tool_parser=hermes", ("options",), ["tool_parser:hermes"]),
    ("kind=chat", ("known_usecases",), ["chat"]),
]


@pytest.mark.parametrize(("setting", "path", "value"), SETTINGS, ids=[s[0] for s in SETTINGS])
def test_set(desk: Desk, setting: str, path: tuple[str, ...], value: Any) -> None:
    line = desk("acme/base", "--set", "kind=chat", "--set", setting, "--dry-run", "--json").line
    found: Any = line["document"]
    schema.check("document", found, setting)
    for step in path:
        found = found[step]
    assert found == value
    key = setting.partition("=")[0]
    decision = line["decisions"]["parameters.temperature" if key == "temperature" else key]
    assert (decision["status"], decision["why"][0]) == ("user", "set by the user")


@pytest.mark.parametrize("setting", ["temperature=null", "tool_parser=none"])
def test_set_to_none(desk: Desk, setting: str) -> None:
    line = desk("acme/base", "--set", setting, "--dry-run", "--json").line
    schema.check("document", line["document"], setting)
    key = "parameters.temperature" if "temp" in setting else "tool_parser"
    decision = line["decisions"][key]
    assert (decision["value"], decision["status"], decision["why"]) == (None, "none", ["set by the user"])
    assert "temperature" not in line["document"]["parameters"] or "temp" not in setting
    assert "options" not in line["document"]


def test_none_stays_none_though_the_models_file_has_a_value(desk: Desk) -> None:
    line = desk("acme/base", "--set", "temperature=null", "--dry-run", "--json").line
    assert line["document"]["importer"]["unset"] == ["temperature"]
    assert [o["value"] for o in line["decisions"]["parameters.temperature"]["overruled"]] == [0.6]


def test_a_quantisation_that_the_user_names_reaches_the_engine(desk: Desk) -> None:
    """What weights have is a fact of the importer's block: engines detect it."""
    made = desk("acme/base", "--backend", "vllm", "--set", "quantization=fp8", "--dry-run", "--json").line
    assert made["document"]["quantization"] == "fp8"
    other = desk("acme/base", "--backend", "mlx", "--set", "quantization=fp8", "--dry-run", "--json").line
    assert "quantization" not in other["document"]


def test_a_method_of_speculation_is_named_by_itself() -> None:
    value = preferences.parse(["speculative_config=mtp"], "vllm").values["engine_args.speculative_config"]
    assert value == {"method": "mtp", "num_speculative_tokens": 1}


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("temperature=abc", "'abc' is not of type 'number'"),
        ("parameters.temprature=1", "Did you mean 'temperature' or 'template'?"),
        ("parameters.model=x/y", "not set this way"),
        ("tool_parser=[a]", "tool_parser is the name of a parser, or none"),
        ("backend=tpu", "backend is one of vllm, mlx"),
        ("engine_args..x=1", "is not set this way"),
        ("temperature", "the form key=value"),
        ("description=\x1b[31m", "control characters"),
        ("description=a\u202eb", "turn the direction of a text"),
        ("engine_args=" + "[" * 900, "begins like JSON"),
        ("engine_args.max_num_seqs=", "engine_args.max_num_seqs is empty"),
        ("tensor_parallel_size=3", "heads"),
        ("max_model_len=99999999", "the model's context is"),
        ("engine_args.prompt_concurency=2", "'engine_args.prompt_concurrency'"),
        ("dtype=bf16", "'importer info keys' lists the settings"),
        ("host=0.0.0.0", "host belongs to the command that starts the server"),
        ("trust_request_chat_template=true", "trusts what clients send"),
        ("env.VLLM_API_KEY=x", "it is a secret"),
        ("speculative_config=eagle3", "the method eagle3 needs a second repository"),
    ],
)
def test_set_nonsense(desk: Desk, setting: str, says: str) -> None:
    ran = desk("acme/base", "--set", setting, "--json")
    error = ran.line["error"]
    assert (ran.code, error["kind"] in ("bad-value", "unknown-setting")) == (2, True)
    assert says in f"{error['message']} {error['hint']}"
    assert desk.files() == {}
