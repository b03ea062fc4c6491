"""docs/security.md names the module and the test of each promise; what it names must be there."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.syntax import ROOT, tree

TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
MODULE = re.compile(r"`((?:importer|gen_defaults)(?:\.\w+)+)`")
HEADING = re.compile(r"\| promise \|")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[tuple[str, str, str]]:
    """Return the rows of every table of promises: promise, modules, tests."""
    tables = re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE)
    lines = [line for table in tables if HEADING.match(table) for line in table.splitlines()[2:]]
    cells = [[c.strip() for c in line.strip("|").split(" | ")] for line in lines]
    return [(said, modules, tests) for said, modules, tests in cells]


@cache
def functions(path: str) -> set[str]:
    return {node.name for node in tree(ROOT / path).body if isinstance(node, ast.FunctionDef)}


def test_each_row_names_what_is_there() -> None:
    found = rows()
    assert len(found) > 15
    for said, modules, tests in found:
        named = MODULE.findall(modules)
        assert named or modules == "–", said
        assert re.sub(MODULE, "", modules).strip(", –") == "", f"{said}: {modules}"
        for module in named:
            path = ROOT / module.replace(".", "/")
            there = path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
            assert there, f"{said}: there is no {module}"
        assert TEST.findall(tests), said
        assert re.sub(TEST, "", tests).strip(", ") == "", f"{said}: {tests}"


def test_each_test_named_anywhere_is_there() -> None:
    for path, name in TEST.findall(TEXT):
        assert (ROOT / path).is_file(), path
        assert name in functions(path), f"{path} has no {name}"


def test_nothing_is_said_twice() -> None:
    said = [row[0] for row in rows()]
    assert len(said) == len(set(said))
