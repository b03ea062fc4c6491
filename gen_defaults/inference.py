"""The rules by which mlx-lm and mlx-vlm choose a tool parser, read from the syntax tree.

A rule is ``{"parser": name, "template": [[mark, …], …]}``: it holds where every mark of one of the groups is
in the chat template; under ``vocabulary`` the marks are tokens. Rules are in the order in which they are
tried.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gen_defaults.syntax import functions

Rule = dict[str, Any]
Groups = list[list[tuple[str, str]]]  # alternatives of (place, mark), all of which must be there

FUNCTION = "_infer_tool_parser"
TABLE = "SPECS"
PRIORITY = 100  # of a specification that gives none
PLACES = {"chat_template": "template", "vocab": "vocabulary"}


def branches(source: str) -> list[Rule]:
    """Return the rules of mlx-lm: a chain of ``if mark in chat_template: return name``."""
    tree = ast.parse(source)
    function = next(functions(source, FUNCTION), None)
    rules = []
    for node in ast.walk(function) if function else ():
        if isinstance(node, ast.If):
            name = next((n.value for n in node.body if isinstance(n, ast.Return)), None)
            groups = _groups(node.test, tree)
            if isinstance(name, ast.Constant) and groups:
                rules.append((node.lineno, str(name.value), groups))
    return [_rule(name, groups) for _, name, groups in sorted(rules, key=lambda rule: rule[0])]


def specs(source: str) -> list[Rule]:
    """Return the rules of mlx-vlm: ``ParserSpec(name, ((mark, …), …), priority=…)``, the highest first."""
    pairs = []
    for node in ast.walk(ast.parse(source)):
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if any(isinstance(t, ast.Name) and t.id == TABLE for t in targets):
            calls = (c for c in ast.walk(node) if isinstance(c, ast.Call) and len(c.args) >= 2)
            pairs += [_spec(call) for call in calls]
    return [rule for _, rule in sorted(pairs, key=lambda pair: -pair[0])]


def _spec(call: ast.Call) -> tuple[int, Rule]:
    name, groups = ast.literal_eval(call.args[0]), ast.literal_eval(call.args[1])
    keywords = {k.arg: k.value for k in call.keywords}
    priority = ast.literal_eval(keywords["priority"]) if "priority" in keywords else PRIORITY
    return int(priority), {"parser": name, "template": [list(group) for group in groups]}


def _rule(name: str, groups: Groups) -> Rule:
    rule: Rule = {"parser": name}
    for place in PLACES.values():
        marks = [selected for group in groups if (selected := [m for p, m in group if p == place])]
        if marks:
            rule[place] = marks
    return rule


def _groups(test: ast.expr, tree: ast.Module) -> Groups:
    """Return the test's alternatives; none for a test of anything else."""
    if isinstance(test, ast.BoolOp):
        parts = [_groups(value, tree) for value in test.values]
        if isinstance(test.op, ast.Or):
            return [group for part in parts for group in part]
        joined: Groups = [[]]
        for part in parts:
            joined = [[*one, *other] for one in joined for other in part]
        return joined
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In):
        place = PLACES.get(ast.unparse(test.comparators[0]))
        if place and isinstance(test.left, ast.Constant):
            return [[(place, str(test.left.value))]]
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        marks = [*_all_of(test.func.id, tree)]
        return [[("vocabulary", mark) for mark in marks]] if marks else []
    return []


def _all_of(function: str, tree: ast.Module) -> Iterator[str]:
    """Yield the marks of ``return all(t in vocab for t in (mark, …))`` in a function of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for inner in ast.walk(node):
                if isinstance(inner, ast.GeneratorExp) and isinstance(inner.generators[0].iter, ast.Tuple):
                    yield from (
                        str(e.value) for e in inner.generators[0].iter.elts if isinstance(e, ast.Constant)
                    )
