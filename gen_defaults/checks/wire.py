"""What a parser's own source says of the format that it reads, from the syntax tree; nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

# A marker as parsers spell them: a tag, a word in square brackets, or either with bars.
MARKER = re.compile(r"</?[^<>\s/=][^<>\n]{0,58}>|\[/?[A-Z_]{3,24}\]")
MOST = 6  # that are told


def described(source: str, class_name: str) -> str:
    """The first line of the class's docstring, or an empty text."""
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            lines = (ast.get_docstring(node) or "").splitlines()
            return lines[0].strip().rstrip(".") if lines else ""
    return ""


def markers(source: str) -> tuple[str, ...]:
    """The markers that stand in the module's own texts, docstrings aside, in their order."""
    texts = (text.replace("\\", "") for text in _texts(_tree(source)))  # some stand in a regular expression
    found = (m for text in texts for m in MARKER.findall(text))
    return tuple(dict.fromkeys(found))[:MOST]


def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.parse("")


def _texts(tree: ast.Module) -> Iterator[str]:
    """String constants that are not statements of their own."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in told]
    for node in sorted(texts, key=lambda n: (n.lineno, n.col_offset)):
        if isinstance(node.value, str):
            yield node.value
