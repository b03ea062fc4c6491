"""The document: data, comments, digest, names, atomic writes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from importer.decisions.decision import Chosen, KnownNone, Undecided
from importer.document import schema
from importer.document.build import DocumentSubject, build
from importer.document.build_text import to_text
from importer.document.document_keys import digest
from importer.document.name_allocator import ALLOWED, slug
from importer.document.store import write_all
from importer.document.yaml_edit.source_map import read
from importer.errors import DocumentError
from importer.proof.parser_verdict import ProofReason
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.reasons import GenerationReason
from tests.any_json import altered, plain
from tests.facts import as_reason

SUBJECT = DocumentSubject("tiny", "acme/Tiny", "acme/Tiny", "acme/Tiny", "a" * 40)
ENGINE = {"name": "vllm", "version": "9.9"}
READ = Reason(ProofReason.READ, engine="vllm", judge="vllm", version="0.32.0")
VALUE = Reason(GenerationReason.VALUE, file="generation_config.json", quote="do_sample: false")


def decisions(**more: Any) -> dict[str, Any]:
    return {
        "kind": Chosen("chat", "vendor", (as_reason("a chat template"),)),
        "parameters.temperature": Chosen(0, "vendor", (VALUE,)),
        "max_model_len": Chosen(4096, "vendor", (as_reason("config.json says so"),)),
        "tool_parser": Chosen("hermes", "proved", (READ,)),
        "reasoning_parser": KnownNone((as_reason("it does not think"),)),
        **more,
    }


def test_the_document_has_localais_keys_and_says_why() -> None:
    built = build(SUBJECT, decisions(), ENGINE, {})
    text = to_text(built)
    assert text.startswith("# yaml-language-server: $schema=")
    assert "temperature: 0  # vendor: generation_config.json" in text
    assert "- tool_parser:hermes  # proved (vllm 0.32.0)" in text
    data = read(text, "x")
    assert data == built.data
    schema.check("document", data, "x")
    assert data["parameters"] == {"model": "acme/Tiny", "temperature": 0}
    assert data["importer"]["no_parser"] == {"reasoning_parser": "none"}
    assert data["artifacts"][0]["source"]["revision"] == "a" * 40


def test_a_null_is_none_or_unknown() -> None:
    built = build(SUBJECT, decisions(tool_parser=Undecided((as_reason("nothing known"),))), ENGINE, {})
    assert built.data["importer"]["no_parser"] == {"tool_parser": "unknown", "reasoning_parser": "none"}
    assert "options" not in built.data


@pytest.mark.slow
@given(st.text(max_size=80), st.sampled_from(["parameters.temperature", "tool_parser", "dtype"]))
def test_whatever_a_reason_says_the_yaml_stays_the_same_data(reason: str, key: str) -> None:
    value = 0.5 if key.startswith("parameters") else "x"
    built = build(SUBJECT, decisions(**{key: Chosen(value, "vendor", (as_reason(reason),))}), ENGINE, {})
    assert yaml.safe_load(to_text(built)) == built.data


@given(st.text(max_size=40))
def test_whatever_a_value_is_the_yaml_stays_the_same_data(value: str) -> None:
    built = build(
        SUBJECT, decisions(dtype=Chosen(value, "user", (as_reason("set by the user"),))), ENGINE, {}
    )
    assert yaml.safe_load(to_text(built)) == built.data


def test_the_digest_is_of_the_data_not_of_the_text() -> None:
    built = build(SUBJECT, decisions(), ENGINE, {})
    text = to_text(built)
    assert digest(read(text.replace("  # vendor", "   # by hand: vendor"), "x")) == digest(built.data)
    assert digest(read(text.replace("temperature: 0", "temperature: 1"), "x")) != digest(built.data)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "line"),
        ("- 1\n", "not a map"),
        ("a: !!python/object/apply:os.system ['true']", "constructor"),
        ("a: &a [*a]\n", "stands inside of what it stands for"),
        (
            "a: &a [1,1,1,1,1,1,1,1]\n"
            + "".join(
                f"{y}: &{y} [{', '.join(['*' + x] * 8)}]\n" for x, y in zip("abcdefg", "bcdefgh", strict=True)
            ),
            "more than 100,000 values",
        ),
        ("a: 2024-01-01\n", "is a date"),
        ("1: x\n", "the key 1 is not text"),
        ("a: .inf\n", "not a number that JSON has"),
        ('a: "\\uD800"\n', "invalid Unicode"),
    ],
)
def test_a_broken_document_is_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem):
        read(text, "x.yaml")


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_a_line_break_that_editors_do_not_know_is_escaped(sign: str) -> None:
    built = build(
        SUBJECT, decisions(dtype=Chosen(f"a{sign}b", "user", (as_reason("set by the user"),))), ENGINE, {}
    )
    text = to_text(built)
    assert yaml.safe_load(text) == built.data
    assert sign not in text


def test_a_key_that_neither_localai_nor_importer_has_is_a_fault_at_every_depth() -> None:
    data = build(SUBJECT, decisions(), ENGINE, {}).data
    localais = {"mirostat": 2, "function": {"grammar": {"prefix": "x"}}, "reasoning": {"disable": True}}
    assert list(schema.faults("document", data | localais)) == []
    slips = {"temprature": 1, "option": [], "brand_new": 1, "temperature": 1, "function": {"gramar": {}}}
    nested = {"artifacts": [{"source": {"revison": "x"}}], "importer": {**data["importer"], "famly": "x"}}
    found = {fault.path: render(schema.at(fault.path, fault.message)) for fault in
             schema.faults("document", data | slips | nested)}  # fmt: skip
    deep = [("function", "gramar"), ("artifacts", 0, "source", "revison"), ("importer", "famly")]
    assert set(found) == {*((key,) for key in slips if key != "function"), *deep}
    near = {("function", "gramar"): "grammar", ("artifacts", 0, "source", "revison"): "revision",
            ("importer", "famly"): "family", ("option",): "options"}  # fmt: skip
    assert all(name in found[path] for path, name in near.items())


@given(st.text(max_size=200))
def test_a_slug_is_always_a_safe_name(text: str) -> None:
    assert ALLOWED.fullmatch(slug(text))


def test_writes_are_all_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder belongs")
    with pytest.raises(DocumentError, match="file where a folder"):
        write_all({tmp_path / "one": "1", tmp_path / "taken" / "two": "2"})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["taken"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_who_may_read_a_file_stays(tmp_path: Path, mode: int) -> None:
    write_all({tmp_path / "one": "1"})
    (tmp_path / "one").chmod(mode)
    write_all({tmp_path / "one": "2", tmp_path / "new": "2"})
    assert (tmp_path / "one").stat().st_mode & 0o777 == mode
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.slow
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from importer.document.store import write_all\n"
        "from importer.errors import DocumentError\n"
        "try: write_all({Path(sys.argv[1]) / 'a': 'x', Path(sys.argv[1]) / 'b': 'x' * 100_000})\n"
        "except DocumentError as e: print(e.kind)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        check=False,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert done.stdout.strip() == "cannot-write", done.stderr
    assert list(tmp_path.iterdir()) == []


WHOLE = schema.load("document")
WRITTEN = plain(build(SUBJECT, decisions(), ENGINE, {}).data)


@pytest.mark.slow
@given(altered(WRITTEN))
@example(WRITTEN)
def test_a_quick_check_accepts_what_jsonschema_accepts(data: Any) -> None:
    assert schema.accepts(WHOLE, WRITTEN, WHOLE)
    assert not schema.accepts(WHOLE, data, WHOLE) or Draft202012Validator(WHOLE).is_valid(data)
