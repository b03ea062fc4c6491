"""Reading Python sources without running them: literals, classes and what functions compare and return."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Sources = Mapping[str, str]  # path in the package to text
AMENDING = {"update", "setdefault", "pop", "popitem", "clear", "append", "extend", "insert", "remove"}


def assigned(source: str, name: str) -> ast.expr | None:
    """Return what is assigned to a name, in the module or in a class."""
    for node in ast.walk(ast.parse(source)):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return node.value  # type: ignore[attr-defined, no-any-return]
    return None


def table(source: str, path: str, name: str, absent: Any) -> Any:
    """Return the literal that is assigned to the name once, in the module or in a class; ``absent`` where it
    is not.

    Raises SyntaxError for anything else that is done to it, or for one that is no literal: a table that code
    builds or amends cannot be read without running it.
    """
    value, tree = absent, ast.parse(source, path)
    above = {inner: node for node in ast.walk(tree) for inner in ast.iter_child_nodes(node)}
    uses = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name)
    for use in sorted(uses, key=lambda node: (node.lineno, node.col_offset)):
        statement = above[use]
        if _is_read(use, above):
            continue
        plain = isinstance(statement, ast.Assign | ast.AnnAssign) and value is absent
        if not plain or not isinstance(above[statement], ast.Module | ast.ClassDef):
            raise _unread(f"{name} is more than one literal", path, use)
        try:
            value = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
        except (ValueError, TypeError):
            raise _unread(f"{name} is no plain literal", path, use) from None
    return value


def _is_read(use: ast.Name, above: Mapping[ast.AST, ast.AST]) -> bool:
    """Return whether a use of the name leaves its value unchanged."""
    around = above[use]
    if isinstance(around, ast.Subscript) and around.value is use:
        return isinstance(around.ctx, ast.Load)
    if isinstance(around, ast.Attribute):
        return around.attr not in AMENDING
    return isinstance(use.ctx, ast.Load)


def _unread(problem: str, path: str, node: ast.expr) -> SyntaxError:
    return SyntaxError(problem, (path, node.lineno, node.col_offset, None))


def literal(source: str, name: str, absent: Any) -> Any:
    """Return the literal that is assigned to the name; ``absent`` where there is none."""
    value = assigned(source, name)
    return absent if value is None else ast.literal_eval(value)


def keys(value: ast.AST | None) -> Iterator[str]:
    """Yield the keys of a mapping, however it is written: a literal, keywords of a call, or pairs."""
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Dict):
            yield from (
                k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)
            )
        elif isinstance(node, ast.Call):
            yield from (k.arg for k in node.keywords if k.arg is not None)
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
            yield from strings(node.elts[:1])


def strings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield every text constant below the nodes."""
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value


def functions(source: str, name: str) -> Iterator[ast.FunctionDef]:
    """Yield every function of this name, wherever it is."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node


def compared(node: ast.AST, word: str) -> set[str]:
    """Return the texts that an expression with ``word`` is compared with below the node."""
    texts: set[str] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Compare) and word in ast.unparse(one):
            texts.update(strings([one]))
    return texts - {word}


def returned(node: ast.AST) -> list[int]:
    """Return the whole numbers that a function returns."""
    values = (one.value for one in ast.walk(node) if isinstance(one, ast.Return))
    return [v.value for v in values if isinstance(v, ast.Constant) and type(v.value) is int]


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of many files by name; classes of one name (one for each platform) count as one."""

    nodes: Mapping[str, tuple[ast.ClassDef, ...]]

    @classmethod
    def of(cls, sources: Sources) -> Classes:
        """Return all classes in the sources."""
        nodes_by_name: dict[str, list[ast.ClassDef]] = {}
        for text in sources.values():
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    nodes_by_name.setdefault(node.name, []).append(node)
        return cls({name: tuple(nodes) for name, nodes in nodes_by_name.items()})

    def line(self, name: str) -> Iterator[ast.ClassDef]:
        """Yield the class and everything it is made from, itself first, as far as the sources hold it."""
        waiting, seen = [name], set[str]()
        while waiting:
            one = waiting.pop(0)
            if one in seen:
                continue
            seen.add(one)
            for node in self.nodes.get(one, ()):
                yield node
                waiting += [ast.unparse(b).rpartition(".")[2].partition("[")[0] for b in node.bases]

    def is_a(self, name: str, base: str) -> bool:
        """Return whether ``base`` is among what the class is made from."""
        return any(ast.unparse(b).rpartition(".")[2] == base for n in self.line(name) for b in n.bases)

    def method(self, name: str, method: str) -> Iterator[ast.FunctionDef]:
        """Yield a method as the class has it, then as those it is made from have it."""
        for node in self.line(name):
            yield from (m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == method)
