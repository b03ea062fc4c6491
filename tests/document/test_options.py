"""``options``: what each entry means, and that none is lost or rewritten."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.document import document_keys


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("tool_parser: hermes ", "tool_parser", "hermes"), ("tool_parser:", "tool_parser", ""),
        ("hostfile:10.0.0.1:5000", "hostfile", "10.0.0.1:5000"), ("use_jinja", "use_jinja", None),
        ("a=b:c", "a=b", "c"), ("", "", None),
    ],
)  # fmt: skip
def test_an_entry(text: str, key: str, value: str | None) -> None:
    option = document_keys.parse(text)
    assert (option.text, option.key, option.value) == (text, key, value)


@given(st.lists(st.text(max_size=30)))
def test_every_entry_comes_back_as_it_stood(entries: list[str]) -> None:
    found = document_keys.of({"options": entries})
    assert [o.text for o in found] == entries
    assert sum(len(group) for group in document_keys.grouped(found).values()) == len(entries)


@given(
    st.from_regex(r"[a-z_]{1,9}", fullmatch=True),
    st.one_of(st.none(), st.booleans(), st.integers(), st.text("a:= ", max_size=5)),
)
def test_what_is_written_is_read(key: str, value: Any) -> None:
    option = document_keys.parse(document_keys.write(key, value))
    assert option.key == key
    written = str(value).lower() if isinstance(value, bool) else value if value is None else str(value)
    assert option.value == (written.strip() if written is not None else None)


@pytest.mark.parametrize(
    ("entries", "parser"),
    [
        ([], None), (None, None), (["tool_parser:hermes"], "hermes"),
        (["tool_parser:hermes", "x", "tool_parser:qwen3_xml"], "qwen3_xml"),
        (["tool_parser:hermes", "tool_parser:"], None), (["tool_parser:None"], None), (["tool_parser"], None),
    ],
)  # fmt: skip
def test_the_parser_that_a_document_names(entries: Any, parser: str | None) -> None:
    assert document_keys.parser({"options": entries}, "tool_parser") == parser
