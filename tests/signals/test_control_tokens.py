"""Tokens at the edges of a tokenizer's file: those that begin a text, and those that a parser needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.hub import local
from importer.hub.snapshot import Snapshot
from importer.hub.tensor_headers import edge
from importer.reasons import Reason
from importer.signals import begin_token, control_tokens
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import GatherReason

TEKKEN = {"config": {"version": "v7"}, "vocab": [{"token_bytes": "x"}] * 9}


def tekken(*tokens: str, **more: object) -> bytes:
    return json.dumps(
        {**TEKKEN, "special_tokens": [{"rank": 0, "token_str": t} for t in tokens], **more}
    ).encode()


@pytest.mark.parametrize(
    ("tail", "found"),
    [
        (tekken("<s>", "[THINK]"), {"<s>", "[THINK]"}),
        (tekken("<s>", image={"size": [1, 2]})[-90:], {"<s>"}),
        (tekken(), None),
        (json.dumps(TEKKEN).encode(), None),
        (tekken("<s>")[:-4], None),
        (b'"special_tokens": ' + b"[" * 50_000, None),
    ],
)
def test_control_tokens_stand_at_the_end(tail: bytes, found: set[str] | None) -> None:
    assert control_tokens.read(tail) == found


def test_a_parser_lacks_the_tokens_that_it_reads_by() -> None:
    claim = Evidence(Rule.FAMILY_TABLE, "reasoning_parser", "mistral", "name", Reason(GatherReason.RENAMED))
    needed = {"mistral": ["[THINK]", "[/THINK]"]}
    lacking = control_tokens.evidence([claim, claim], needed, frozenset({"<s>", "[THINK]"}))
    assert [(e.rule, e.value) for e in lacking] == [(Rule.LACKING_TOKENS, "mistral")]
    assert control_tokens.evidence([claim], needed, frozenset({"[THINK]", "[/THINK]"})) == []


def test_an_edge_of_a_file_on_this_disk(tmp_path: Path) -> None:
    (tmp_path / "tekken.json").write_bytes(b"0123456789")
    found = local.resolve(str(tmp_path), tmp_path)
    assert (edge(found, "tekken.json", 3), edge(found, "tekken.json", -3)) == (b"012", b"789")
    assert edge(found, "tekken.json", -99) == b"0123456789"
    assert edge(found, "tokenizer.json", 3) is None


def single(*steps: object) -> bytes:
    processor = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"single": list(steps)}]}
    return json.dumps({"added_tokens": [], "post_processor": processor, "model": {"vocab": {}}}).encode()


BOS, TEXT = {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}


@pytest.mark.parametrize(
    ("head", "adds"),
    [
        (single(BOS, TEXT), True),
        (single(TEXT, BOS), False),
        (b'{"post_processor": null}', False),
        (b"", False),
    ],
)
def test_the_post_processor_adds_the_token(head: bytes, adds: bool) -> None:
    assert begin_token.added(head, "<s>") is adds


@pytest.mark.parametrize(
    ("prompt", "engine", "token"),
    [("<|user|>x", "vllm", "<s>"), ("\n<s>x", "vllm", None), ("x", "mlx-vlm", None), ("x", "mlx", "<s>")],
)
def test_a_chat_lacks_the_token_that_other_texts_have(prompt: str, engine: str, token: str | None) -> None:
    settings = {"tokenizer_config.json": json.dumps({"bos_token": "<s>", "add_bos_token": True})}
    found = Snapshot("r", "a/b", None, (), settings)
    study = TemplateAnalysis("0", (Sample("plain", prompt, "x"),))
    assert begin_token.lacking(found, study, engine) == token
    assert begin_token.declared(found) is True
