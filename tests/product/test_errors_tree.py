"""Errors by their syntax: each is raised with the fields of its kind, and has its texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import pytest

from importer import errors
from importer.cli import arguments
from importer.cli import messages as cli
from importer.cli.commands import COMMANDS
from importer.errors import BRANCHES, KINDS, one_line
from importer.reasons import Text
from importer.sentences import placeholders
from importer.service import messages as service
from tests.product.test_messages import enumerations, uses
from tests.syntax import MODULES, nodes, written

pytestmark = pytest.mark.xdist_group("syntax")  # one process parses the modules
FRONT_ENDS: Mapping[str, tuple[Mapping[str, Text | tuple[str, ...]], frozenset[str]]] = {
    "cli": (cli.HINTS, cli.ELSEWHERE),
    "service": (service.HINTS, service.ELSEWHERE),
}
# Where kinds are raised that the other front end never meets.
# The command line may read any folder, so that the door of places never refuses it.
OVER_HTTP_ALONE = ("importer.service.", "importer.storage.", "importer.hub.local")
AT_THE_COMMAND_LINE = (
    "importer.cli.", "importer.service.settings", "importer.service.server", "importer.storage.database",
    "importer.storage.schema", "importer.storage.keys",
)  # fmt: skip


class Raised(NamedTuple):
    """One ``SomeError("kind", …)``; ``fields`` is ``None`` where they are passed on whole."""

    module: str
    line: int
    branch: str
    kind: str
    fields: frozenset[str] | None


def sentences(text: Text | tuple[str, ...]) -> tuple[Text, ...]:
    """The sentences of a next step."""
    return text if isinstance(text, tuple) else (text,)


@cache
def raised() -> tuple[Raised, ...]:
    return tuple(_raised())


def _raised() -> Iterator[Raised]:
    branches = {branch.__name__ for branch in BRANCHES}
    for module, path in MODULES.items():
        for call in (node for node in nodes(path) if isinstance(node, ast.Call)):
            name = written(call.func)
            if name not in branches or not call.args or not isinstance(call.args[0], ast.Constant):
                continue
            whole = any(keyword.arg is None for keyword in call.keywords)
            fields = None if whole else frozenset(str(keyword.arg) for keyword in call.keywords)
            yield Raised(module, call.lineno, name, str(call.args[0].value), fields)


def test_each_is_raised_with_the_fields_of_its_kind() -> None:
    wrong = []
    for one in raised():
        kind = KINDS[one.kind].kinds[one.kind]
        assert KINDS[one.kind].__name__ == one.branch
        if one.fields is not None and not {*kind.fields} <= one.fields <= {*kind.fields, *kind.data}:
            wrong.append(f"{one.module}:{one.line}: {one.kind} has {sorted(kind.fields)}")
    assert not wrong
    assert len(raised()) > 150


def test_every_class_of_failures_is_a_branch() -> None:
    assert {*errors.ImporterError.__subclasses__()} == {*BRANCHES}


def test_a_field_of_a_kind_is_shown_by_a_text() -> None:
    """Those of ``more`` by a front end's, and by none that all front ends have."""
    own = [table for front_end in (cli, service) for table in (front_end.HINTS, front_end.INSTEAD)]
    for kind, branch in KINDS.items():
        declared = branch.kinds[kind]
        keys = (kind, f"{branch.__name__}.{kind}")
        texts = [
            one for table in own for key, text in table.items() if key in keys for one in sentences(text)
        ]
        common = {*placeholders(declared.text), *placeholders(declared.step)}
        assert not common & {*declared.more}, kind
        assert {*declared.more} <= {name for text in texts for name in placeholders(text)}, kind


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_every_kind_that_a_front_end_meets_has_a_next_step(front_end: str) -> None:
    hints, elsewhere = FRONT_ENDS[front_end]
    assert {*hints} | elsewhere == {*KINDS}
    assert not {*hints} & elsewhere
    for kind, text in hints.items():
        for one in sentences(text):
            assert {*placeholders(one)} <= {*KINDS[kind].kinds[kind].fields, "command", "dir"}, kind


# Met by one command each, whose options their next steps name as fields.
ALONE = {"bad-value", "would-not-run"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_next_step_names_no_option_that_its_command_refuses(command: str) -> None:
    """Whatever command meets a failure, it has a next step, without options of other commands."""
    running = arguments.running([command])
    before = cli.RUNNING.set(lambda: running)
    try:
        for kind, branch in KINDS.items():
            fields: dict[str, object] = dict.fromkeys(branch.kinds[kind].fields, "x")
            step = cli.hint(branch(kind, **fields)) if kind not in cli.ELSEWHERE else ""
            assert {*cli.OPTION.findall(cli.QUOTED.sub("", step))} <= running.options or kind in ALONE, kind
    finally:
        cli.RUNNING.reset(before)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_a_front_ends_own_texts_replace_some(front_end: str) -> None:
    branches = {branch.__name__ for branch in BRANCHES}
    instead = {"cli": cli.INSTEAD, "service": service.INSTEAD}[front_end]
    for key, text in instead.items():
        owner, _, name = key.partition(".")
        if owner == "Setting":
            assert name in {*errors.Setting}
        elif owner in branches:
            assert {*placeholders(text)} <= {*KINDS[name].kinds[name].fields}, key
            assert KINDS[name].__name__ == owner
        else:
            kind = enumerations()[owner](name)
            given = [use.fields for use in uses() if use.kind is kind and use.fields is not None]
            assert all({*placeholders(text)} <= fields for fields in given), key


def test_what_is_met_elsewhere_is_raised_there() -> None:
    for one in raised():
        if one.kind in cli.ELSEWHERE:
            assert one.module.startswith(OVER_HTTP_ALONE), one
        if one.kind in service.ELSEWHERE:
            assert one.module.startswith(AT_THE_COMMAND_LINE), one


def test_each_is_one_printable_line_whatever_its_fields_are() -> None:
    for kind, branch in KINDS.items():
        fields: dict[str, object] = {name: f"\x1b[31m{name}\nnext" for name in branch.kinds[kind].fields}
        if kind == "would-not-run":
            fields |= {"troubles": (), "problem": (fields["problem"],)}
        error = branch(kind, **fields)
        assert str(error).isprintable(), kind
        for front_end in (cli.sentence, cli.hint, service.detail, service.hint):
            assert front_end(error).isprintable(), kind
        for name in placeholders(branch.kinds[kind].text):
            assert name in str(error), kind


def test_a_long_text_is_cut() -> None:
    assert len(one_line("x " * 1000)) == 600
