"""Rules: one order for all readers, names that mypy checks, and none that nobody uses."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mypy import api

from importer.signals.evidence import Rule
from tests.product.test_structure import room
from tests.syntax import MODULES, nodes, written

ROOT = Path(__file__).resolve().parents[2]
FACT = """
from importer.signals.evidence import Evidence
from importer.signals.evidence import Rule
from importer.signals.reasons import (GenerationReason)
from importer.reasons import Reason

fact = Evidence({rule}, "family", "acme", "table", Reason(GenerationReason.{kind}))
"""


def test_the_order_is_that_of_the_declaration() -> None:
    assert [rule.rank for rule in Rule] == list(range(len(Rule)))
    assert Rule.FAMILY_TABLE.rank < Rule.BASE_MODEL_FAMILY.rank, (
        "its own name is heard before its base model's"
    )
    assert Rule.GENERATION_CONFIG.rank < Rule.CARD.rank < Rule.SAMPLING_TABLE.rank
    assert Rule.SAMPLING_TABLE.rank < Rule.GENERATION_CONFIG_USUAL.rank
    assert all(rule.status is not None for rule in Rule if rule.names_parsers)


def test_every_rule_is_some_readers() -> None:
    used = {
        node.attr
        for module, path in MODULES.items()
        if room(module) in {"signals", "memory", "proof"} and module != "importer.signals.evidence"
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and written(node.value) == "Rule"
    }
    decided = {"GENERATION_CONFIG_USUAL"}  # made of a fact by ``decide``, which knows the way of answering
    assert {rule.name for rule in Rule} - used == decided
    assert used <= {rule.name for rule in Rule}


@pytest.mark.slow  # mypy reads the standard library anew
def test_a_misspelt_rule_or_kind_fails_mypy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    told = {}
    for rule, kind in (
        ("Rule.FAMILY_TABLE", "VALUE"), ("Rule.FAMLY_TABLE", "VALUE"), ('"famly-table"', "VALUE"),
        ("Rule.FAMILY_TABLE", "VALEU"),
    ):  # fmt: skip
        file = tmp_path / "reader.py"
        file.write_text(FACT.format(rule=rule, kind=kind), encoding="utf-8")
        out, _, code = api.run(
            ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), str(file)]
        )
        told[rule, kind] = code, out
    assert told["Rule.FAMILY_TABLE", "VALUE"][0] == 0, told
    assert 'has no attribute "FAMLY_TABLE"' in told["Rule.FAMLY_TABLE", "VALUE"][1]
    assert 'expected "Rule"' in told['"famly-table"', "VALUE"][1]
    assert 'has no attribute "VALEU"' in told["Rule.FAMILY_TABLE", "VALEU"][1]
