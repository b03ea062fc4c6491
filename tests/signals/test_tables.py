"""The two tables: their schemas, that every row can be reached, that every name exists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gen_defaults.truth import Truth
from importer.engines.registries import load
from importer.signals import name as pattern
from importer.signals import tables
from importer.signals.family import match
from importer.signals.tables import parse_parsers, parser_table

# Parsers that no family needs: generic ones, second names of one class, and a variant for other clients.
NOT_A_FAMILY = {
    "tool_parser": {"hf", "qwen3_json", "llama4_json"},
    "reasoning_parser": {"hf", "glm47", "minimax_m2_append_think"},
}


@pytest.mark.parametrize("table", tables.TABLES)
def test_no_family_is_written_twice(table: str) -> None:
    """JSON takes the last of two without a word."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        assert sorted(set(keys)) == sorted(keys)
        return dict(pairs)

    json.loads(tables.path_of(table).read_text(encoding="utf-8"), object_pairs_hook=once)


@pytest.mark.parametrize("table", tables.TABLES)
def test_localai_could_read_it(table: str) -> None:
    """LocalAI reads the parser rows as a map of strings, the sampling rows as a map of numbers."""
    kinds = (str, type(None)) if table == "parser_defaults" else (int, float)
    data = tables.raw(table)
    assert set(data["patterns"]) == set(data["families"])
    for row in data["families"].values():
        assert all(isinstance(v, kinds) and not isinstance(v, bool) for v in row.values())


@pytest.mark.parametrize("field", tables.PARSERS)
def test_every_parser_exists_in_vllm_and_every_family_of_vllm_has_a_row(field: str) -> None:
    registered = set(load("vllm", "0.32.0").names("tool" if field == "tool_parser" else "reasoning"))
    named = {row.parsers.get(field) for row in parser_table().rows} - {None}
    assert named <= registered
    assert registered - named == NOT_A_FAMILY[field]


def test_rows_are_asked_by_purpose_then_maker_then_length_whatever_the_file_says() -> None:
    rows = {
        "llama-3.1": {"tool_parser": "llama3_json", "source": "x"},
        "hermes-3": {"tool_parser": "hermes", "role": "fine-tune", "source": "x"},
        "base": {"tool_parser": None, "kind": "base", "source": "x"},
        "tts": {"tool_parser": None, "kind": "speech", "source": "x"},
        "nvidia/llama-3.1": {"tool_parser": "pythonic", "source": "x"},
        "llama": {"tool_parser": None, "source": "x"},
    }
    table = parse_parsers({"families": rows})
    order = ["tts", "base", "hermes-3", "nvidia/llama-3.1", "llama-3.1", "llama"]
    assert [r.family for r in table.rows] == order
    names = ("a/Hermes-3-Llama-3.1-8B", "nvidia/Llama-3.1-8B", "b/Llama-3.1-TTS-Base")
    found = [match(table, name) for name in names]
    assert [f.row.family for f in found if f] == ["hermes-3", "nvidia/llama-3.1", "tts"]


def test_wildcards_and_words() -> None:
    assert pattern.search("qwen3.#", "qwen3.9-27b") == "qwen3.9"
    assert pattern.search("qwen3.#", "qwen3-27b") is None
    assert pattern.search("a-#b", "a-27b-x") == "a-27b"
    assert pattern.search("a-#b", "a2-7b") is None
    assert pattern.search("lfm2.5*thinking", "lfm2.5-1.2b-thinking") == "lfm2.5-1.2b-thinking"
    assert pattern.words("lfm2.5*a#b") == ("lfm25", "a", "b")


# The measuring tool


def test_verdicts() -> None:
    truth = Truth("a/b", "f", {"tool_parser": (None, "pythonic"), "reasoning_parser": ("qwen3",)})
    assert truth.verdict("tool_parser", "pythonic") == "right"
    assert truth.verdict("tool_parser", None) == "right"
    assert truth.verdict("tool_parser", "hermes") == "spurious"
    assert truth.verdict("reasoning_parser", None) == "missing"
    assert truth.verdict("reasoning_parser", "glm45") == "different"
