"""The source map of a document: the line and column of each path, and of each problem."""

from __future__ import annotations

import math
from collections.abc import Iterator

import yaml

from importer import yaml_reader
from importer.document.document import Document, document_of
from importer.document.document_keys import KeyPath, dotted
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.sentences import render
from importer.yaml_reader import YamlError


class TextReason(ReasonKind):
    """What is wrong with a text."""

    ON_LINE = "line {line}: {problem}"
    OF_PATH = "{path}: {problem}"
    NOT_A_MAP = "it is not a map of keys"
    KEY_NO_TEXT = "the key {key} is not text; quote it"
    NO_NUMBER = "{value} is not a number that JSON has"
    NO_TEXT = "{value!r} is not text"
    NO_JSON = "{value} is a {type}, and JSON has none; quote it"
    NOT_UTF8 = "it is not UTF-8 text"


@frozen
class YamlProblem:
    """What is wrong at one place of a text; lines and columns count from 1. A parser's own message is
    text.
    """

    line: int
    column: int
    message: Reason | str

    @property
    def reason(self) -> Reason:
        """Return the same with its line."""
        return Reason(TextReason.ON_LINE, line=self.line, problem=self.message)

    def __str__(self) -> str:
        return render(self.reason)


class UnreadableYaml(Exception):
    """The text has no data that JSON can hold; ``problem`` has reason and place."""

    def __init__(self, problem: YamlProblem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def parse_yaml(text: str) -> Document:
    """Return the data of a document's text; raises UnreadableYaml."""
    try:
        data = yaml_reader.read(text)
    except YamlError as error:
        raise UnreadableYaml(YamlProblem(error.line, error.column, error.reason)) from None
    if not isinstance(data, dict):
        raise UnreadableYaml(YamlProblem(1, 1, Reason(TextReason.NOT_A_MAP)))
    for path, reason in unspeakable(data):
        raise UnreadableYaml(SourceMap(text).problem(path, reason))
    return document_of(data)


def read(text: str, path: object) -> Document:
    """Parse a document's text; raises DocumentError("invalid") with the line."""
    try:
        return parse_yaml(text)
    except UnreadableYaml as error:
        raise DocumentError("invalid", path=path, problem=error.problem.reason) from None


class SourceMap:
    """The places of data by path: of a text that ``parse_yaml`` has read, or of a node."""

    def __init__(self, text: str | yaml.Node) -> None:
        self._root = yaml_reader.compose(text) if isinstance(text, str) else text
        self._maps: dict[int, dict[str, tuple[yaml.Mark, yaml.Node]]] = {}

    def problem(self, path: KeyPath, reason: Reason | str) -> YamlProblem:
        """Return a problem at the key of a path; for an absent path at its last present step."""
        _, mark = self._found(path)
        message = Reason(TextReason.OF_PATH, path=dotted(path), problem=reason) if path else reason
        return (
            YamlProblem(1, 1, message)
            if mark is None
            else YamlProblem(mark.line + 1, mark.column + 1, message)
        )

    def line(self, *paths: KeyPath) -> int:
        """Return the line of the path of which most is there, counted from 1."""
        _, mark = max((self._found(path) for path in paths), key=lambda found: found[0])
        return 1 if mark is None else mark.line + 1

    def _found(self, path: KeyPath) -> tuple[int, yaml.Mark | None]:
        """Return how many steps of a path are there, and the place of the last one."""
        mark, node = None, self._root
        for number, step in enumerate(path):
            place = self._step(node, step)
            if place is None:
                return number, mark
            mark, node = place
        return len(path), mark

    def _step(self, node: yaml.Node | None, step: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
        """Return the key's place and its value's node; the last of repeated keys is the one that counts."""
        if isinstance(node, yaml.MappingNode):
            return self._keys(node).get(str(step))
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            return node.value[step].start_mark, node.value[step]
        return None

    def _keys(self, node: yaml.MappingNode) -> dict[str, tuple[yaml.Mark, yaml.Node]]:
        """Return the places of a map's keys, those that ``<<`` takes from elsewhere included."""
        if id(node) not in self._maps:
            own, taken = dict[str, tuple[yaml.Mark, yaml.Node]](), dict[str, tuple[yaml.Mark, yaml.Node]]()
            for key, value in node.value:
                if key.tag == yaml_reader.MERGE:
                    for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                        taken = {**self._keys(part), **taken}
                elif isinstance(key.value, str):
                    own[key.value] = key.start_mark, value
            self._maps[id(node)] = {**taken, **own}
        return self._maps[id(node)]


def unspeakable(data: object) -> Iterator[tuple[KeyPath, Reason]]:
    """Yield what keeps data from being JSON, as digests, receipts and engines need it, each with its path;
    the first is enough.
    """
    waiting: list[tuple[KeyPath, object]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    yield (*path, str(key)), Reason(TextReason.KEY_NO_TEXT, key=str(key))
            waiting += [((*path, key), key) for key in value]
            waiting += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, index), inner) for index, inner in enumerate(value)]
        elif (reason := _no_json(value)) is not None:
            yield path, reason


def _no_json(value: object) -> Reason | None:
    if isinstance(value, float) and not math.isfinite(value):
        return Reason(TextReason.NO_NUMBER, value=value)
    if isinstance(value, str):
        odd = any("\ud800" <= c <= "\udfff" for c in value)
        return Reason(TextReason.NO_TEXT, value=value) if odd else None
    if value is None or isinstance(value, bool | int | float):
        return None
    return Reason(TextReason.NO_JSON, value=f"{value!s:.80}", type=type(value).__name__)
