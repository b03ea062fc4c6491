"""Attribution depends on kinds and fields: no module of ``validation`` or ``reports`` reads a sentence."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.syntax import MODULES, nodes, written

# Names under which outcomes, errors and rows of receipts have them.
SENTENCES = {"reason", "remedy_message", "hint"}
RENDERERS = {"render", "sentence"}
READS = {
    "startswith", "endswith", "split", "rsplit", "partition", "rpartition", "find", "rfind", "index", "count",
    "replace", "strip", "removeprefix", "removesuffix", "splitlines", "casefold", "lower",
    "search", "match", "fullmatch", "findall", "finditer", "sub",
}  # fmt: skip
# Where sentences are made for a receipt, and for the traceback of an error.
WORDED = {"importer.validation.outcome", "importer.validation.client", "importer.validation.errors"}


def is_sentence(node: ast.AST) -> bool:
    """Whether an expression is, or holds, a sentence of ours."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr in SENTENCES:
            return True
        if isinstance(inner, ast.Call) and written(inner.func) in RENDERERS:
            return True
    return False


def reading(module: Path) -> list[str]:
    """Where a module compares, searches or takes apart a sentence."""
    found = []
    for node in nodes(module):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
            if not none and any(map(is_sentence, sides)):
                found.append(written(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            if any(map(is_sentence, (node.func.value, *node.args))):
                found.append(written(node))
        elif isinstance(node, ast.Subscript) and is_sentence(node.value):
            found.append(written(node))
    return found


JUDGES = sorted(m for m in MODULES if m.startswith(("importer.validation", "importer.reports")))


@pytest.mark.xdist_group("syntax")
def test_no_module_reads_a_sentence() -> None:
    assert not [f"{module}: {read}" for module in JUDGES for read in reading(MODULES[module])]
    renders = {
        module
        for module in JUDGES
        for node in nodes(MODULES[module])
        if isinstance(node, ast.ImportFrom)
        and node.module == "importer.sentences"
        and {alias.name for alias in node.names} & {"render", "sentence", "worded", "rendered"}
    }
    assert renders <= WORDED


@pytest.mark.parametrize(
    "line",
    ["if outcome.remedy_message.startswith('Declare'): pass", "seen = 'finish_reason' in outcome.reason",
     "broken = re.search(BROKEN, row.outcome.reason)", "key = render(outcome.remedy).partition(' ')",
     "same = (one.reason, 1) == (other.reason, 1)", "head = found.reason[:10]"],
)  # fmt: skip
def test_the_search_for_readers_finds_them(line: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(line)
    assert reading(tmp_path / "module.py")
