"""No code of these rooms reads a sentence of ours: seen in the syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.product.test_structure import room
from tests.syntax import MODULES, tree, written

pytestmark = pytest.mark.xdist_group("syntax")  # one process parses the modules
ROOMS = {"engines", "exports", "memory", "chat_template"}
ALONE = {f"importer.app.{name}" for name in ("target", "study", "decide", "import_request")}
OURS = sorted(
    m for m in MODULES
    if (room(m) in ROOMS or m in ALONE) and not any(w in m for w in (".parser_worker", ".parser_plugin"))
)  # fmt: skip
# Names under which a sentence, or what becomes one, is kept.
SENTENCES = {"says", "why", "hint", "message", "reason", "remedy", "problem", "lost", "comments"}
RENDERS = {"render", "sentence", "short", "worded", "worded_field", "messages.sentence"}
READS = {
    "startswith", "endswith", "partition", "rpartition", "split", "rsplit", "splitlines", "strip", "lstrip",
    "rstrip", "removeprefix", "removesuffix", "find", "rfind", "index", "rindex", "replace", "lower", "upper",
}  # fmt: skip
SEARCHES = {"search", "match", "fullmatch", "findall", "finditer", "sub"}


def is_sentence(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES
    return isinstance(node, ast.Call) and written(node.func) in RENDERS


def readings(code: ast.AST) -> Iterator[str]:
    for node in ast.walk(code):
        if isinstance(node, ast.Compare):
            by_value = not all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
            if by_value and any(is_sentence(side) for side in (node.left, *node.comparators)):
                yield written(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            reads = node.func.attr in READS and is_sentence(node.func.value)
            if reads or (node.func.attr in SEARCHES and any(map(is_sentence, node.args))):
                yield written(node)
        if isinstance(node, ast.Subscript) and is_sentence(node.value):
            yield written(node)


def test_no_sentence_is_read() -> None:
    assert not [f"{module}: {read}" for module in OURS for read in readings(tree(MODULES[module]))]


def is_plain(field: ast.AnnAssign) -> bool:
    """Whether a field of a sentence's name may be a plain text."""
    types = {n.id for n in ast.walk(field.annotation) if isinstance(n, ast.Name)}
    return written(field.target) in SENTENCES - {"says"} and "str" in types


def untyped(code: ast.AST) -> Iterator[str]:
    """Fields of such a name that are plain text, and failures that are raised with a sentence of ours.

    A row of JSON is what is printed, so it holds words.
    """
    for node in ast.walk(code):
        if isinstance(node, ast.ClassDef) and "TypedDict" not in map(written, node.bases):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and is_plain(line):
                    yield f"{node.name}: {written(line)}"
        elif isinstance(node, ast.Call) and written(node.func) != "Reason":
            for keyword in node.keywords:
                plain = isinstance(keyword.value, ast.JoinedStr | ast.BinOp | ast.Constant)
                if keyword.arg in SENTENCES and plain:
                    yield f"{node.lineno}: {written(keyword.value)}"


def test_what_becomes_a_sentence_is_typed() -> None:
    assert not [f"{module}: {wrong}" for module in OURS for wrong in untyped(tree(MODULES[module]))]


@pytest.mark.parametrize("code", ["class A:\n    why: str | None = None", "Fail(reason='it broke')"])
def test_a_plain_text_is_seen(code: str) -> None:
    assert list(untyped(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "found.reason == 'x'", "'log' in death.says", "error.message.startswith('it')", "render(r).split()",
        "re.search(BROKEN, outcome.reason)", "PATTERN.search(sentence(kind, fields))", "row.why[0]",
    ],
)  # fmt: skip
def test_a_reading_is_seen(code: str) -> None:
    assert list(readings(ast.parse(code)))


@pytest.mark.parametrize("code", ["found.reason.kind is Kind.A", "found.reason is None", "'x' in log_text"])
def test_a_decision_by_kind_is_none(code: str) -> None:
    assert not list(readings(ast.parse(code)))
