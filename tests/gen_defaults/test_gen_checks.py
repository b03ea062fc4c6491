"""The checks before a table is written: the committed tables pass, each tampered copy fails by its own."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gen_defaults import checks
from gen_defaults.checks import CheckFinding, CheckSubject, Proved, Upstream, coverage
from gen_defaults.checks.finding import PARSERS, SAMPLING
from importer.engines.registries import EngineParser, Registry, load, versions
from importer.proof.parser_verdict import ParserVerdict
from importer.proof.result import Proof
from importer.signals import name as pattern
from importer.signals.tables import raw
from tests.facts import as_reason

HERMES = ("families", "hermes-3")
PARSER_MODULE = '''
"""Reads <these> in prose only."""
class NewToolParser(Base):
    """Parser for the new format.

    More of it."""
    start = "<new_call>"
    def read(self):
        "a docstring with <another>"
        return re.compile("<arg name=\\"(.*?)\\">", DOTALL), "[NEW_CALLS]", "</new_call>"
'''


def subject(**amended: Any) -> CheckSubject:
    """The committed tables and registries, as a copy that may be tampered with."""
    tables = {"parsers": raw("parser_defaults"), "sampling": raw("inference_defaults")}
    registries = tuple(load("vllm", version) for version in versions("vllm"))
    return CheckSubject(**copy.deepcopy(tables), registries=registries, **amended)


def small() -> CheckSubject:
    """A few rows, so that a tampered copy has one fault only."""
    parsers: dict[str, Any] = {
        "engine": "vllm",
        "families": {
            "qwen3-#b*instruct": {"tool_parser": "hermes", "reasoning_parser": None, "source": "x"},
            "qwen3-#b": {"tool_parser": "hermes", "reasoning_parser": "qwen3", "source": "x"},
            "hermes-3": {"tool_parser": "hermes", "role": "fine-tune", "source": "x"},
            "llama-3.1": {"tool_parser": "llama3_json", "exclude": "r1", "source": "x"},
            "base": {"tool_parser": None, "kind": "base", "source": "x"},
        },
    }
    sampling: dict[str, Any] = {
        "families": {
            "qwen3": {"temperature": 0.6, "top_p": 0.95, "top_k": 20},
            "llama": {"temperature": 0.6},
        },
        "modes": {"qwen3": {"thinking": {"temperature": 0.6}, "non_thinking": {"temperature": 0.7}}},
        "sources": {"qwen3": "x", "llama": "x"},
    }
    for table in (parsers, sampling):
        table["patterns"] = sorted(table["families"], key=lambda f: -pattern.length(f))
    known = Registry(
        "vllm",
        "0.32.0",
        {},
        {
            "tool": {n: EngineParser(n, f"{n}Parser", n) for n in ("hermes", "llama3_json")},
            "reasoning": {"qwen3": EngineParser("qwen3", "Qwen3Parser", "qwen3")},
        },
    )
    return CheckSubject(parsers, sampling, (known,))


def tampered(table: str, path: tuple[str | int, ...], value: object) -> CheckSubject:
    """``small`` with one place changed."""
    changed = copy.deepcopy(small())
    inner: Any = getattr(changed, table)
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


def errors(found: list[CheckFinding]) -> list[tuple[str, str, str]]:
    return [(f.file, f.row, f.message) for f in found if f.fails]


def test_the_committed_tables_pass() -> None:
    found = checks.run(subject())
    assert errors(found) == []
    assert {f.severity for f in found} <= {"note"}
    assert checks.run(small()) == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "temperature is null where a number belongs"),
        ("0.6", "temperature is the text '0.6' where a number belongs"),
        ({"thinking": 0.6}, 'temperature is nested: {"thinking": 0.6} where a number belongs'),
        (True, "temperature is true where a number belongs"),
        (2.5, "temperature is 2.5, which is not at most 2"),
        (math.inf, "temperature is inf, which is not at most 2"),
        (math.nan, "temperature is nan, which is not at least a number"),
    ],
)
def test_null_nested_text_and_out_of_range(value: object, says: str) -> None:
    mode = ("modes", "qwen3", "thinking", "temperature")
    for path in (("families", "qwen3", "temperature"), mode):
        (found,) = checks.run(tampered("sampling", path, value))
        assert (found.file, found.row, found.severity) == (SAMPLING, "qwen3", "error")
        assert found.message.endswith(says)
        assert found.step


def test_a_count_is_whole_and_a_share_is_not_zero() -> None:
    (found,) = checks.run(tampered("sampling", ("families", "qwen3", "top_k"), 20.5))
    assert found.message == "top_k is 20.5 where a whole number belongs"
    (found,) = checks.run(tampered("sampling", ("families", "qwen3", "top_p"), 0))
    assert found.message == "top_p is 0, which is not above 0"


@pytest.mark.parametrize(
    ("table", "path", "value", "row", "says"),
    [
        ("parsers", HERMES, {"tool_parser": "hermes"}, "hermes-3", "source is missing"),
        ("sampling", ("modes", "qwen3"), {"thinking": {"top_p": 1}}, "qwen3", "non_thinking is missing"),
        ("sampling", ("sources",), {"qwen3": "x"}, "llama", "its source is missing"),
        ("sampling", ("families", "llama"), {}, "llama", "it holds nothing"),
        ("parsers", (*HERMES, "parser"), "x", "hermes-3", "no field is called parser"),
        ("sampling", ("families", "llama", "penalty"), 1, "llama", "no field is called penalty"),
        ("parsers", (*HERMES, "tool_parser"), 3, "hermes-3", "tool_parser is 3 where a name or null belongs"),
        ("parsers", (*HERMES, "exclude"), ["r1"], "hermes-3", 'exclude is nested: ["r1"] where text belongs'),
        ("parsers", HERMES, "hermes", "hermes-3", "the row is the text 'hermes' where an object belongs"),
        ("parsers", ("families", "llama-3.1", "kind"), "chatty", "llama-3.1", None),
        ("parsers", ("families",), [], "", "families is nested: [] where an object belongs"),
        ("parsers", ("families", "Hermes 3"), {"source": "x"}, "", None),
    ],
)  # fmt: skip
def test_fields_that_are_missing_unknown_or_of_another_kind(
    table: str, path: tuple[str, ...], value: object, row: str, says: str | None
) -> None:
    found = checks.run(tampered(table, path, value))
    assert found[0].row == row
    assert found[0].fails
    assert says is None or found[0].message == says
    assert found[0].file == (PARSERS if table == "parsers" else SAMPLING)


def test_tables_that_are_none_at_all() -> None:
    broken: Any = ["not", "a", "table"]
    found = checks.run(replace(small(), parsers=broken))
    assert errors(found)[0][0] == PARSERS
    assert checks.run(replace(small(), sampling={}))[0].message == "families is missing"


@pytest.mark.parametrize("table", ["parsers", "sampling"])
def test_orphans(table: str) -> None:
    whole = small()
    extra = [*getattr(whole, table)["patterns"], "yi"]
    (found,) = checks.run(tampered(table, ("patterns",), extra))
    assert (found.row, found.message) == ("yi", "a pattern without a family")
    fewer = getattr(whole, table)["patterns"][:-1]
    (found,) = checks.run(tampered(table, ("patterns",), fewer))
    assert found.message == "a family without a pattern"


def test_modes_and_sources_of_no_family() -> None:
    (found,) = checks.run(tampered("sampling", ("sources", "yi"), "x"))
    assert (found.row, found.message) == ("yi", "sources has it, but no family is called so")


# Shadowed: what cannot win under the rule of gen_defaults/README.md


def rows(**families: Mapping[str, Any]) -> CheckSubject:
    """The rows alone, longest first."""
    named = {
        name.replace("__", "/").replace("_", "-"): {"source": "x", **row} for name, row in families.items()
    }
    order = sorted(named, key=lambda f: -pattern.length(f))
    return replace(small(), parsers={"engine": "vllm", "families": named, "patterns": order})


@pytest.mark.parametrize(
    ("families", "loser", "says"),
    [
        # A row for a purpose is asked before any family, however short it is.
        ({"tts": {"kind": "speech"}, "voxtral_tts": {}}, "voxtral-tts", "shadowed: tts is asked first"),
        # Who trained it further is asked before what it was made from.
        ({"tulu": {"role": "fine-tune"}, "llama_tulu": {}}, "llama-tulu", "shadowed: tulu is asked first"),
        # A row that excludes a word of its own pattern.
        ({"command_r7b": {"exclude": "r7b"}}, "command-r7b", "shadowed: its own exclude refuses every name"),
    ],
)  # fmt: skip
def test_a_pattern_that_can_never_win(families: dict[str, dict[str, str]], loser: str, says: str) -> None:
    found = [f for f in coverage.shadowed(rows(**families)) if f.file == PARSERS]
    assert [(f.row, f.message) for f in found] == [(loser, says)]


@pytest.mark.parametrize(
    "families",
    [
        {"llama": {}, "llama_3": {}},  # the longer is asked first by code
        {"tts": {"kind": "speech", "exclude": "chat"}, "voxtral_tts": {}},  # wins for voxtral-tts-chat
        {"someone__llama_3": {}, "llama_3": {}},  # an organisation's own row comes first, and only for it
        {"base": {"kind": "base"}, "llama": {}},  # takes some names, not all
    ],
)
def test_a_pattern_that_can_win_somewhere(families: dict[str, dict[str, str]]) -> None:
    assert not [f for f in coverage.shadowed(rows(**families)) if f.file == PARSERS]


def test_a_shorter_pattern_that_stands_earlier_takes_the_longer_ones_names_in_localai() -> None:
    order = ["qwen3-#b", "qwen3-#b*instruct", "llama-3.1", "hermes-3", "base"]
    (found,) = checks.run(tampered("parsers", ("patterns",), order))
    assert found.row == "qwen3-#b*instruct"
    assert "qwen3-#b, which is shorter" in found.message


# Parsers against registries


def test_a_parser_that_no_supported_version_has() -> None:
    (found,) = checks.run(tampered("parsers", ("families", "hermes-3", "tool_parser"), "hermez"))
    assert found.message == "no vllm of 0.32.0 has a tool parser hermez"
    assert "hermes" in found.step


def test_a_parser_that_the_newest_version_has_lost_is_noted() -> None:
    whole = small()
    entries = whole.registries[0].entries
    newer = replace(
        whole.registries[0],
        version="0.99.0",
        entries={**entries, "tool": {"hermes": entries["tool"]["hermes"]}},
    )
    (found,) = checks.run(replace(whole, registries=(*whole.registries, newer)))
    assert (found.row, found.severity) == ("llama-3.1", "note")
    assert found.message == "vllm 0.32.0 is the last with the tool parser llama3_json, 0.99.0 has none"


def test_a_parser_that_only_a_newer_version_has_is_noted() -> None:
    whole = tampered("parsers", ("families", "hermes-3", "tool_parser"), "newer")
    (found,) = checks.run(replace(whole, registries=(*whole.registries, with_parser("0.99.0"))))
    assert (found.row, found.severity) == ("hermes-3", "note")
    assert found.message == "the tool parser newer comes with vllm 0.99.0 only"


def with_parser(version: str, name: str = "newer", aliases: tuple[str, ...] = ()) -> Registry:
    registry = small().registries[0]
    tools = {**registry.entries["tool"], name: EngineParser(name, "NewToolParser", "vllm.new", aliases)}
    return replace(registry, version=version, entries={**registry.entries, "tool": tools})


def test_a_registered_parser_that_no_row_uses_is_told_with_its_format() -> None:
    modules = {"vllm.new": PARSER_MODULE}
    (found,) = checks.run(replace(small(), registries=(with_parser("0.32.0"),), modules=modules))
    assert (found.row, found.severity) == ("newer", "error")
    assert found.message == (
        "no row uses the tool parser newer of vllm 0.32.0 (class NewToolParser in vllm.new, "
        'Parser for the new format, its format has <new_call> <arg name="(.*?)"> [NEW_CALLS] </new_call>)'
    )
    (alone,) = checks.run(replace(small(), registries=(with_parser("0.32.0"),)))
    assert "(class NewToolParser in vllm.new)" in alone.message


def test_a_second_name_and_a_newer_versions_parser_do_not_fail() -> None:
    assert checks.run(replace(small(), registries=(with_parser("0.32.0", "qwen3_json", ("hermes",)),))) == []
    newer = replace(small(), registries=(*small().registries, with_parser("0.99.0")))
    (found,) = checks.run(newer)
    assert (found.row, found.severity) == ("newer", "note")


# Vendors and sources


def vendor(**values: Any) -> CheckSubject:
    return replace(small(), vendors={"Qwen/Qwen3-8B": values})


def test_a_vendor_file_contradicts_a_row() -> None:
    (found,) = checks.run(vendor(temperature=0.9, top_p=0.95, top_k=20, max_new_tokens=5))
    assert (found.row, found.severity) == ("qwen3", "error")
    assert found.message == "temperature is 0.6, against 1 of 1 vendor files: Qwen/Qwen3-8B says 0.9"


def test_a_note_that_names_the_value_lets_the_row_stand() -> None:
    noted = vendor(temperature=0.9)
    noted.sampling["notes"] = {"qwen3": "temperature: its card says 0.6 since May"}  # type: ignore[index]
    (found,) = checks.run(noted)
    assert found.severity == "note"
    noted.sampling["notes"] = {"qwen3": "top_p: another value"}  # type: ignore[index]
    assert checks.run(noted)[0].fails


@pytest.mark.parametrize(
    "said",
    [
        {"temperature": 0.7},  # the set for answers without thinking
        {"do_sample": True},  # a default of the library, not the vendor's word
        {"repetition_penalty": 1.1},  # a value that the row leaves open
        {"temperature": "0.9"},  # no value at all
    ],
)
def test_what_is_no_contradiction(said: dict[str, Any]) -> None:
    assert checks.run(vendor(**said)) == []


def test_a_base_models_file_says_nothing_of_its_family() -> None:
    assert checks.run(replace(small(), vendors={"Qwen/Qwen3-8B-Base": {"temperature": 2.0}})) == []


def upstream(rows: dict[str, Any]) -> CheckSubject:
    known = {"temperature": "temperature", "top_p": "top_p", "repetition_penalty": "repeat_penalty"}
    source = Upstream("unsloth 1.0", rows, known, {"seed": "a run's own"}, ("temperature",))
    return replace(small(), upstream=(source,))


def test_an_unknown_field_of_a_source_is_listed() -> None:
    row = {"temperature": 1.0, "repetition_penalty": 1.1, "seed": 3}
    assert checks.run(upstream({"a": row})) == []
    found = checks.run(upstream({"a": {**row, "mirostat": 1}, "b": {**row, "mirostat": 2, "tau": 1}}))
    assert [f.message for f in found] == [
        "mirostat is a field that is not known here, in a and 1 more",
        "tau is a field that is not known here, in b",
    ]
    assert {f.file for f in found} == {"unsloth 1.0"}
    assert all(f.fails for f in found)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({}, "temperature is missing"),
        ({"temperature": {"thinking": 1}}, 'temperature is nested: {"thinking": 1} where a number belongs'),
        ({"temperature": 1, "repetition_penalty": 9}, "repetition_penalty is 9, which is not at most 2"),
        ("text", "the row is the text 'text' where an object belongs"),
    ],
)
def test_a_sources_row_is_judged_as_ours_under_its_own_names(row: Any, says: str) -> None:
    assert checks.run(upstream({"a": row}))[0].message == says


# Proofs


def proof(reads: str, *others: str) -> Proof:
    verdicts = [ParserVerdict(reads, "C", ("one-call",), {}, ("one-call",))]
    verdicts += [
        ParserVerdict(o, "C", (), {"one-call": as_reason("read no call")}, ("one-call",)) for o in others
    ]
    return Proof("vllm", "0.32.0", "digest", {"tool_parser": tuple(verdicts)}, {})


def proved(model_id: str, *names: str, notes: str = "") -> list[CheckFinding]:
    whole = small()
    if notes:
        whole.parsers["families"]["hermes-3"]["notes"] = notes
    return checks.run(replace(whole, proofs=(Proved(model_id, proof(*names)),)))


def test_a_row_that_the_proof_refutes() -> None:
    (found,) = proved("NousResearch/Hermes-3-Llama-3.1-8B", "llama3_json", "hermes")
    assert (found.row, found.severity) == ("hermes-3", "error")
    assert found.message == (
        "vllm 0.32.0 refutes the tool parser hermes on the template of NousResearch/Hermes-3-Llama-3.1-8B "
        "(one-call: read no call); llama3_json read it"
    )


def test_what_refutes_no_row() -> None:
    assert proved("NousResearch/Hermes-3-Llama-3.1-8B", "hermes", "llama3_json") == []
    assert proved("a/never-heard-of", "llama3_json", "hermes") == []
    assert proved("a/Hermes-3-Base", "llama3_json", "hermes") == []
    assert proved("a/Hermes-3", "llama3_json") == []  # not asked
    (found,) = proved(
        "a/Hermes-3", "llama3_json", "hermes", notes="tool_parser: its template forgets the tags"
    )
    assert found.severity == "note"
    assert proved("a/Hermes-3", "llama3_json", "hermes", notes="a template of its own")[0].fails
