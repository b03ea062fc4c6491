"""Every key that a reader gives has its place: in the YAML, in our block of it, or in the receipt."""

from __future__ import annotations

import ast

from importer.document import schema
from importer.document.document_keys import FACTS, OPTIONS, REMARKS, SAMPLING, TOP_LEVEL
from tests.product.test_structure import room
from tests.syntax import MODULES, nodes, written

APART = {"backend", "sampling_modes"}  # decided on their own


def keys() -> set[str]:
    """Return the constant keys of evidence in all readers."""
    found = set()
    for module, path in MODULES.items():
        if room(module) in {"signals", "memory"}:
            for node in nodes(path):
                if isinstance(node, ast.Call) and written(node.func) == "Evidence" and len(node.args) > 1:
                    key = node.args[1]
                    if isinstance(key, ast.Constant):
                        found.add(str(key.value))
    return found


def test_every_key_has_a_place() -> None:
    placed = {*OPTIONS, *FACTS, *REMARKS, *(f"parameters.{key}" for key in SAMPLING), *SAMPLING, *APART}
    homeless = {key for key in keys() - placed if key.split(".")[0] not in TOP_LEVEL}
    assert len(keys()) > 10
    assert not homeless, f"give {homeless} a place in document_keys.py; CONTRIBUTING.md shows where"


def test_every_fact_is_in_the_schema_of_our_block() -> None:
    block = schema.load("document")["properties"]["importer"]["properties"]
    assert block
    assert {key for key in FACTS if key not in block} == set()
