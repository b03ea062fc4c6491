"""Effective values and the comments after an edit: the value now, who set it, and what else was offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from importer.document.document_keys import digest
from importer.document.edited_comments import patched, renewed
from importer.document.effective import Editor, EffectiveValue, effective
from importer.document.merge import write
from importer.document.receipt import Receipt
from importer.document.store import StoredDocument
from importer.document.yaml_edit.source_map import read
from importer.engines.registries import sampling_defaults

TEXT = """\
# attention: the engine and the tool_parser disagree
name: toy
backend: vllm
parameters:
  model: acme/toy
  temperature: 0.6  # vendor: generation_config.json
  top_p: 0.95  # table: qwen3, thinking
stopwords:
  - a  # vendor: card
  - b
options:
  - tool_parser:hermes  # proved (vllm 0.32.0)
max_model_len: 4096  # mine: measured
"""
DATA = {"backend": "vllm", "importer": {"engine": {"name": "vllm", "version": "0.32.0"}}}
ANN, BOB = Editor("ann", "2026-11-21T10:00:00+00:00"), Editor("bob", "2026-11-22T10:00:00+00:00")


def chosen(value: Any, status: str, why: str) -> dict[str, Any]:
    return {"value": value, "status": status, "why": [why], "overruled": [], "reasons": []}


def fact(rule: str, key: str, value: Any, source: str) -> dict[str, Any]:
    return {"rule": rule, "key": key, "value": value, "source": source, "message": "", "quote": ""}


def document(text: str = TEXT) -> StoredDocument:
    """Return a document whose receipt has ``TEXT`` as the import's."""
    data, key = read(text, "toy.yaml"), "parameters.temperature"
    receipt = Receipt(
        name="toy", reference="acme/toy", model_id="acme/toy", revision=None, directory=None,
        digest=digest(data), imported_at=ANN.at, importer="1", engine={"name": "vllm"},
        decisions={
            key: chosen(0.6, "vendor", "generation_config.json says 0.6"),
            "parameters.top_p": chosen(0.95, "table", "the table has 0.95"),
            "tool_parser": chosen("hermes", "proved", "hermes reads it back"),
            "request_coverage": chosen({}, "vendor", "seen"),
        },
        evidence=[
            fact("sampling-table", key, 0.7, "sampling_table"), fact("engine", key, 1.0, "vllm 0.32.0"),
            fact("card", key, 0.8, "README.md"),
            fact("generation-config", key, 0.6, "generation_config.json"),
        ],
        unknown={}, review={"state": "pending"}, base=TEXT.replace("mine: measured", "engine: vllm"),
        warnings=[{"kind": "parser", "key": "tool_parser", "message": "", "reason": {}}],
    )  # fmt: skip
    return StoredDocument(Path("toy.yaml"), text, data, digest(data), receipt)


def values(stored: StoredDocument, *more: Any, **others: Any) -> list[EffectiveValue]:
    return effective(stored.data, stored.need_receipt(), *more, **others)


def changed(stored: StoredDocument, **parameters: Any) -> StoredDocument:
    data = {**stored.data, "parameters": {**stored.data["parameters"], **parameters}}
    return document(patched(stored, {**data, "parameters": {k: v for k, v in data["parameters"].items()
                                                             if v is not None}}))  # fmt: skip


def test_the_comment_of_a_patched_value_has_the_imported_one() -> None:
    stored = changed(document(), temperature=0.9)
    assert "temperature: 0.9  # edited in this file; imported: 0.6\n" in stored.text
    assert "top_p: 0.95  # table: qwen3, thinking\n" in stored.text
    again = changed(stored, temperature=0.8, top_p=0.5)
    assert "temperature: 0.8  # edited in this file; imported: 0.6\n" in again.text
    assert changed(again, temperature=0.6, top_p=0.95).text == TEXT, "the import's comments are back"


def test_a_removed_value_leaves_no_comment_and_a_new_one_has_none() -> None:
    stored = changed(document(), temperature=None, min_p=0.1)
    assert "generation_config" not in stored.text
    assert "min_p: 0.1\n" in stored.text


def test_a_persons_text_keeps_a_persons_comments() -> None:
    before = document()
    text = before.text.replace("0.6  # vendor: generation_config.json", "0.9  # cooler for tools")
    text = text.replace("max_model_len: 4096", "max_model_len: 8192").replace("- b", "- c")
    after = renewed(before, text)
    assert "temperature: 0.9  # cooler for tools\n" in after
    assert "max_model_len: 8192  # mine: measured\n" in after
    assert '- a  # edited in this file; imported: ["a", "b"]\n' in after, "the comment is of the list"


def test_the_attention_on_a_value_that_a_person_has_set_leaves_the_head() -> None:
    before = document()
    after = renewed(before, before.text.replace("tool_parser:hermes", "tool_parser:pythonic"))
    assert "attention" not in after
    assert "tool_parser:pythonic  # edited in this file; imported: " in after
    assert "attention" in renewed(before, before.text.replace("0.95", "0.9"))


def test_an_import_renews_the_comment_of_an_edited_value() -> None:
    edited = changed(document(), temperature=0.9)
    base = str(document().receipt and document().receipt.base)  # type: ignore[union-attr]
    imported = base.replace("temperature: 0.6", "temperature: 0.7")
    kept = write(edited.text, edited.data, base, imported)
    assert "temperature: 0.9  # edited in this file; imported: 0.7\n" in kept
    theirs = write(edited.text, read(imported, "x") | {}, base, imported)
    assert "temperature: 0.7  # vendor: generation_config.json\n" in theirs


def test_an_effective_value_has_the_present_one_its_editor_and_every_offer() -> None:
    stored = changed(document(), temperature=0.9, min_p=0.1)
    served = document().data
    found = {one.key: one.to_json() for one in values(stored, served, lambda path: BOB)}
    assert found["parameters.temperature"] == {
        "key": "parameters.temperature", "value": 0.9, "imported": 0.6, "served": 0.6, "status": "edited",
        "source": "edited by bob, 2026-11-22", "by": "bob", "at": BOB.at,
        "vendor": {"value": 0.6, "source": "generation_config.json"},
        "table": {"value": 0.7, "source": "sampling_table"},
        "engine_default": {"value": 1.0, "source": "vllm 0.32.0"},
    }  # fmt: skip
    assert found["parameters.min_p"]["value"] == 0.1
    assert not {"imported", "served"} & found["parameters.min_p"].keys()
    assert (found["tool_parser"]["value"], found["tool_parser"]["status"]) == ("hermes", "proved")
    assert "request_coverage" not in found
    assert [one.status for one in values(document())] == ["vendor", "table", "proved"]


def test_the_engine_offers_its_own_value_where_the_evidence_has_none() -> None:
    found = {one.key: one.to_json() for one in values(document(), defaults=sampling_defaults(DATA))}
    assert found["parameters.top_p"]["engine_default"] == {"value": 1.0, "source": "vllm 0.32.0"}
    assert found["parameters.temperature"]["engine_default"] == {"value": 1.0, "source": "vllm 0.32.0"}
    assert sampling_defaults({"backend": "other"}) == sampling_defaults({}) == {}
