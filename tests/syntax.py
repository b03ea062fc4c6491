"""The syntax of our code: in one process each file is parsed and walked once, and each name written once."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "importer"
MODULES = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(path: Path) -> ast.Module:
    """The tree of a file; the collector of garbage, of which there is none, would take twice as long."""
    gc.disable()
    found = ast.parse(path.read_text(encoding="utf-8"))
    gc.freeze()
    gc.enable()
    return found


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file, as ``ast.walk`` has them."""
    return tuple(ast.walk(tree(path)))


@cache
def written(node: ast.AST) -> str:
    """Return the code of a node of ``tree``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{written(node.value)}.{node.attr}"
    return ast.unparse(node)
