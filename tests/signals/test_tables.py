"""The two tables: their schemas, that every row can be reached, that every name exists."""

from __future__ import annotations

import copy
import csv
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gen_defaults import checks
from gen_defaults.__main__ import main
from gen_defaults.score import deciding, leave_one_out
from gen_defaults.truth import Truth, measure, read
from importer.engines.registries import load
from importer.signals import name as pattern
from importer.signals import tables
from importer.signals.family import match
from importer.signals.name import Name
from importer.signals.tables import parse_parsers, parse_sampling, parser_table, sampling_table

# Parsers that no family needs: generic ones, second names of one class, and a variant for other clients.
NOT_A_FAMILY = {
    "tool_parser": {"hf", "qwen3_json", "llama4_json"},
    "reasoning_parser": {"hf", "glm47", "minimax_m2_append_think"},
}


def problems(table: str, data: Mapping[str, Any]) -> list[str]:
    """What the checks say of a table's data, beside the other table as shipped."""
    both = {name: tables.raw(name) for name in tables.TABLES} | {table: data}
    found = checks.run(checks.CheckSubject(both["parser_defaults"], both["inference_defaults"]))
    return [str(finding) for finding in found if finding.fails]


@pytest.mark.parametrize("table", tables.TABLES)
def test_shipped_tables_are_valid(table: str) -> None:
    assert problems(table, tables.raw(table)) == []


@pytest.mark.parametrize("table", tables.TABLES)
def test_no_family_is_written_twice(table: str) -> None:
    """JSON takes the last of two without a word."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        assert sorted(set(keys)) == sorted(keys)
        return dict(pairs)

    json.loads(tables.path_of(table).read_text(encoding="utf-8"), object_pairs_hook=once)


def excerpt(table: str) -> dict[str, Any]:
    """A small valid table out of the shipped one."""
    data = copy.deepcopy(dict(tables.raw(table)))
    keep = ["qwen3.5", "qwen3"] if table == "inference_defaults" else ["qwen3-#b", "qwen3.5"]
    for key in ("families", "modes", "sources"):
        if key in data:
            data[key] = {f: data[key][f] for f in keep}
    return data | {"patterns": keep}


@pytest.mark.parametrize(
    ("table", "path", "value"),
    [
        ("parser_defaults", ("families", "qwen3.5", "tool_parser"), 3),
        ("parser_defaults", ("families", "qwen3.5", "exclude"), ["base"]),
        ("parser_defaults", ("families", "qwen3.5", "kind"), "chatty"),
        ("parser_defaults", ("families", "qwen3.5", "source"), ""),
        ("parser_defaults", ("families", "Qwen4"), {"source": "upper case"}),
        ("parser_defaults", ("families", "qwen4"), {"source": "no pattern"}),
        ("parser_defaults", ("patterns",), ["qwen3.5"]),
        ("inference_defaults", ("families", "qwen3", "temperature"), "0.6"),
        ("inference_defaults", ("families", "qwen3", "temperature"), 20),
        ("inference_defaults", ("families", "qwen3", "repetition_penalty"), 1.0),
        ("inference_defaults", ("modes", "qwen3"), {"thinking": {"top_p": 0.5}}),
    ],
)
def test_a_broken_table_is_refused(table: str, path: tuple[str, ...], value: object) -> None:
    inner = data = excerpt(table)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert problems(table, data)


@pytest.mark.parametrize("table", tables.TABLES)
def test_what_is_broken_here_is_sound_at_first(table: str) -> None:
    assert problems(table, excerpt(table)) == []


def test_patterns_out_of_order_are_refused() -> None:
    data = excerpt("parser_defaults")
    data["patterns"].reverse()
    (problem,) = problems("parser_defaults", data)
    assert problem.endswith("put the longest first")


@pytest.mark.parametrize("table", tables.TABLES)
def test_localai_could_read_it(table: str) -> None:
    """LocalAI reads the parser rows as a map of strings, the sampling rows as a map of numbers."""
    kinds = (str, type(None)) if table == "parser_defaults" else (int, float)
    data = tables.raw(table)
    assert set(data["patterns"]) == set(data["families"])
    for row in data["families"].values():
        assert all(isinstance(v, kinds) and not isinstance(v, bool) for v in row.values())


def an_instance(family: str) -> Name:
    """A name that the pattern spells out, with digits that no version has."""
    org, _, bare = family.rpartition("/")
    return Name(org, bare.replace("*", "-zz-").replace("#", "9"))


def test_no_pattern_is_shadowed() -> None:
    found = {r.family: parser_table().find(an_instance(r.family)) for r in parser_table().rows}
    assert [f for f, m in found.items() if m is None or m.row.family != f] == []


def test_no_sampling_pattern_is_shadowed() -> None:
    found = {r.family: sampling_table().find(an_instance(r.family)) for r in sampling_table().rows}
    assert [f for f, row in found.items() if row is None or row.family != f] == []


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


def test_a_missing_field_is_not_the_same_as_null() -> None:
    table = parse_parsers({"families": {"a-1": {"tool_parser": None, "source": "x"}}})
    assert table.rows[0].parsers == {"tool_parser": None}


def test_sampling_keeps_thinking_apart_and_zero_is_a_value() -> None:
    row = sampling_table().find(Name("qwen", "qwen3-8b"))
    assert row is not None
    assert row.values == {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0}
    assert row.modes["non_thinking"]["temperature"] == 0.7
    greedy = sampling_table().find(Name("ibm-granite", "granite-4.0-h-tiny"))
    assert greedy is not None
    assert greedy.values["temperature"] == 0.0


def test_sampling_agrees_with_the_vendor_where_unsloth_does_not() -> None:
    row = sampling_table().find(Name("meta-llama", "llama-3.1-8b-instruct"))
    assert row is not None
    assert row.values == {"temperature": 0.6, "top_p": 0.9}
    assert "unsloth" in row.source


def test_every_sampling_row_has_a_source() -> None:
    assert all(row.source for row in sampling_table().rows)
    assert parse_sampling({"families": {"a": {"top_p": 1}}}).rows[0].source == ""


def test_wildcards_and_words() -> None:
    assert pattern.search("qwen3.#", "qwen3.9-27b") == "qwen3.9"
    assert pattern.search("qwen3.#", "qwen3-27b") is None
    assert pattern.search("a-#b", "a-27b-x") == "a-27b"
    assert pattern.search("a-#b", "a2-7b") is None
    assert pattern.search("lfm2.5*thinking", "lfm2.5-1.2b-thinking") == "lfm2.5-1.2b-thinking"
    assert pattern.words("lfm2.5*a#b") == ("lfm25", "a", "b")


def test_jsonschema_is_not_loaded_to_match_a_name() -> None:
    code = (
        "import sys; from importer.signals.family import match_names; "
        "match_names(['a/b']); print('jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# The measuring tool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        ("Qwen/Qwen3-8B", "qwen3", "hermes|qwen3_json", "qwen3", ""),
        ("Qwen/Qwen3-4B-Instruct-2507", "qwen3-2507", "hermes", "", ""),
        ("google/gemma-3-4b-it", "gemma3", "|pythonic", "", ""),
        ("someone/never-heard-of", "new", "mistral", "", "ambiguous-reasoning: nobody says"),
    ]
    with (tmp_path / "parser_truth.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model_id", "family", "tool_parser", "reasoning_parser", "notes"])
        writer.writerows(rows)
    return tmp_path


def test_score_counts_right_missing_and_precision(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "said.jsonl"
    assert main(["score", str(folder), "--names-only", "--leave-one-out", "--json", "--out", str(out)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["both"] == 75.0
    assert report["tool_parser"] == {"right": 3, "missing": 1, "percent": 75.0, "precision": 100.0}
    assert report["reasoning_parser"]["percent"] == 100.0
    assert report["families"]["new"] == [0, 1]
    assert report["leave_one_out"]["both"] < report["both"]
    said = [json.loads(line) for line in out.read_text().splitlines()]
    assert said[0]["model_id"] == "Qwen/Qwen3-8B"


def test_score_says_what_is_wrong_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(folder), "--names-only"]) == 0
    text = capsys.readouterr().out
    assert "someone/never-heard-of: tool_parser none, should be mistral (missing)" in text
    assert "both: 3/4 = 75.0 %" in text


def test_verdicts() -> None:
    truth = Truth("a/b", "f", {"tool_parser": (None, "pythonic"), "reasoning_parser": ("qwen3",)})
    assert truth.verdict("tool_parser", "pythonic") == "right"
    assert truth.verdict("tool_parser", None) == "right"
    assert truth.verdict("tool_parser", "hermes") == "spurious"
    assert truth.verdict("reasoning_parser", None) == "missing"
    assert truth.verdict("reasoning_parser", "glm45") == "different"


def test_a_left_out_family_is_asked_without_its_own_rows(folder: Path) -> None:
    truths = read(folder)
    assert deciding(truths[:1], parser_table()) == {"qwen3-#b"}
    score, halves = leave_one_out(truths, parser_table())
    assert sum(one.both[1] for one in halves) == score.both[1]
    assert score.families["qwen3"] == [0, 1]
    assert score.families["gemma3"] == [1, 1]  # nothing known and known to have none answer alike
    assert measure(truths[:1], lambda m: {"tool_parser": "hermes", "reasoning_parser": "qwen3"}).both == (
        1,
        1,
    )


def test_score_of_a_folder_without_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(tmp_path)]) == 1
    assert "parser_truth.csv" in capsys.readouterr().err


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    assert "score" in capsys.readouterr().err
