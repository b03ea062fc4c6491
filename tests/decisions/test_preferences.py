"""What --set says, by itself: keys, values, near names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer import backends
from importer.app.preferences import KINDS, RESERVED, check_parsers, parse
from importer.cli.messages import hint
from importer.decisions.decision import Preferences, Target
from importer.document.document_keys import OPTIONS, PARAMETERS, SAMPLING, TOP_LEVEL
from importer.errors import UsageError

WHOLE = st.integers(-(2**63), 2**63 - 1)
LEAVES = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False)
GIVEN = ("x", "1", "true", '["chat"]', "{}", "chat", "mlx")  # a value of each type
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")))
JSON = st.recursive(
    LEAVES | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)


def value(text: str) -> Any:
    return parse([f"chat_template_kwargs.x={text}"]).values["chat_template_kwargs.x"]


@given(JSON)
def test_json_is_read_as_json(data: Any) -> None:
    assert value(json.dumps(data)) == data


@given(st.text())
def test_any_text_is_a_value_or_a_sentence(text: str) -> None:
    try:
        read = value(text)
    except UsageError as error:
        said = error.message
    else:
        said = json.dumps(read, allow_nan=False)
    assert said.isprintable()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0", 0), ("-0.0", 0.0), ("1e-1", 0.1), ("NaN", "NaN"), ("1e999", "1e999"), (".inf", ".inf"),
        ("true", True), ("~", None), ("none", "none"), ("2024-01-01", "2024-01-01"), ("a: b", {"a": "b"}),
        ("a=b", "a=b"),
        ("!!python/object/apply:os.system ['true']", "!!python/object/apply:os.system ['true']"),
        ("&a [*a]", "&a [*a]"), ("two\nlines", "two\nlines"), ('["two",\n"lines"]', ["two", "lines"]),
    ],
)  # fmt: skip
def test_values(text: str, read: Any) -> None:
    assert value(text) == read
    assert type(value(text)) is type(read)


@pytest.mark.parametrize("text", ["", " ", "[" * 300, '{"a": '])
def test_an_empty_value_and_unclosed_json_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        value(text)
    assert refused.value.kind == "bad-value"


def test_every_key_of_a_document_can_be_set_but_the_reserved() -> None:
    for key in (*TOP_LEVEL, *(f"parameters.{p}" for p in (*PARAMETERS, "model")), *OPTIONS):
        if key in RESERVED:
            with pytest.raises(UsageError, match="not set this way"):
                parse([f"{key}=x"])
        else:
            assert key in {k for given in GIVEN for k in accepted(key, given)}


def accepted(key: str, given: str) -> dict[str, Any]:
    """Return what is set by a value; nothing where it is of another type than the key's."""
    try:
        return dict(parse([f"{key}={given}"]).values)
    except UsageError:
        return {}


@pytest.mark.parametrize("name", SAMPLING)
def test_sampling_has_short_names(name: str) -> None:
    assert parse([f"{name}=1"]).values == {f"parameters.{name}": 1}


def test_the_last_word_counts() -> None:
    assert parse(["temperature=1", "parameters.temperature=0"]).values == {"parameters.temperature": 0}
    assert parse([]).values == {}


@pytest.mark.parametrize("other", ["mlx", "auto"])
def test_one_request_has_one_backend(other: str) -> None:
    assert parse(["backend=vllm"], "vllm").values == {"backend": "vllm"}
    with pytest.raises(UsageError, match="backend is set by the same request"):
        parse([f"backend={other}"], "vllm")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", backends.NAMES)
def test_kinds_and_backends(kind: str, backend: str) -> None:
    assert parse([f"kind={kind}"], backend).values == {"backend": backend, "kind": kind}


@pytest.mark.parametrize(
    "typo", ["temprature", "max_model_length", "tool_parse", "parameters.top-k", "stopword"]
)
def test_near_names_are_told(typo: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse([f"{typo}=1"])
    assert hint(caught.value).startswith("Did you mean ")


def test_a_parser_must_be_the_engines() -> None:
    target = Target("vllm", "9.9", {"tool_parser": {"hermes": "Hermes", "mistral": "Mistral"}})
    check_parsers(Preferences({"tool_parser": "hermes", "reasoning_parser": "anything"}), target)
    check_parsers(Preferences({"tool_parser": None}), target)
    with pytest.raises(UsageError) as caught:
        check_parsers(Preferences({"tool_parser": "hermez"}), target)
    assert (caught.value.kind, hint(caught.value)) == ("unknown-parser", "Did you mean hermes?")
