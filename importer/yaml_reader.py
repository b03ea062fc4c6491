"""A reader of untrusted YAML, as data or as nodes: linear time, bounded, errors with reasons and lines.

Only the events are PyYAML's, from libyaml where it is installed: PyYAML's composer recurses, copies merge
keys as often as they are named, and its constructors raise any exception. Here an alias has the weight of
its anchor's value, so repeated aliases reach the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from importer.reasons import Fields, Reason, ReasonKind

MOST_CHARACTERS = 1_000_000
MOST_VALUES = 100_000  # keys and values; those of an alias count as often as they are used
DEEPEST = 100  # lists and maps within each other
LONGEST_NUMBER = 400  # characters of a number or a date
MERGE = "tag:yaml.org,2002:merge"
TAG = "tag:yaml.org,2002:"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _syntax_text(fields: Fields) -> str:
    """The reader's own words, and what it was in the middle of."""
    problem = fields["problem"] or "it is not YAML"
    return (
        f"{problem}, {fields['context']} that begins on line {fields['since']}"
        if fields["since"]
        else problem
    )


class YamlReason(ReasonKind):
    """Reasons why a text is rejected."""

    SYNTAX = (_syntax_text,)
    CHARACTER = "the character U+{code} is not allowed; write it as an escape"
    LONG = "it has more than {most:,} characters"
    DEEP = "it is nested deeper than {most} levels"
    MANY = "it holds more than {most:,} values, those of an alias counted each time"
    ENDLESS = "the alias {name!r} stands inside of what it stands for"
    EMPTY = "it holds nothing"
    SEVERAL = "a second document begins here"
    ALIAS = "found undefined alias {name!r}"
    ANCHOR = "found duplicate anchor {name!r}"
    TAG = "could not determine a constructor for the tag {tag!r}"
    VALUE = "{value!r} is not of the type {tag}"
    KEY = "a list or a map is no key"
    NUMBER_KEY = "{key} is no key"
    TWICE = "{key}: it stands on line {line} already"
    MERGE = "only maps can be merged"


class YamlError(ValueError):
    """A rejected text, with reason, line and column; both count from 1."""

    def __init__(self, reason: Reason, line: int = 1, column: int = 1) -> None:
        self.reason, self.line, self.column = reason, line, column
        super().__init__(f"{reason.kind} in line {line}")


@dataclass(slots=True)
class _Open:
    """An open list or map; ``weight`` counts its values, aliases in full."""

    node: yaml.CollectionNode
    anchor: str | None
    key: yaml.Node | None = None
    weight: int = 1


@dataclass(slots=True)
class _Composer:
    """Nodes from events, without recursion."""

    most: int
    root: yaml.Node | None = None
    opened: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[yaml.Node, int]] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)
    met: int = 0
    ended: bool = False

    def take(self, event: Any) -> None:
        """Add one event.

        Raises YamlError.
        """
        if isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            tag = _tag(yaml.ScalarNode, event)
            start: Any = event.start_mark
            end: Any = event.end_mark
            node = yaml.ScalarNode(tag, event.value, start, end, style=event.style)
            self._named(event, node, 1)
            self._place(node, 1, new=1)
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            self._open(event)
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            self._close(event)
        elif isinstance(event, yaml.DocumentStartEvent) and self.ended:
            raise _error(YamlReason.SEVERAL, event.start_mark)
        elif isinstance(event, yaml.DocumentEndEvent):
            self.ended = True

    def _open(self, event: Any) -> None:
        kind = yaml.SequenceNode if isinstance(event, yaml.SequenceStartEvent) else yaml.MappingNode
        if len(self.opened) >= DEEPEST:
            raise _error(YamlReason.DEEP, event.start_mark, most=DEEPEST)
        tag = _tag(kind, event)
        node = kind(tag, [], event.start_mark, None, flow_style=event.flow_style)
        if event.anchor is not None:
            self._named(event, node, 1)
            self.open_anchors.add(event.anchor)
        self.opened.append(_Open(node, event.anchor))

    def _close(self, event: Any) -> None:
        done = self.opened.pop()
        done.node.end_mark = event.end_mark
        if done.anchor is not None:
            self.anchors[done.anchor] = done.node, done.weight
            self.open_anchors.discard(done.anchor)
        self._place(done.node, done.weight, new=1)

    def _alias(self, event: Any) -> None:
        if event.anchor in self.open_anchors:
            raise _error(YamlReason.ENDLESS, event.start_mark, name=event.anchor)
        if event.anchor not in self.anchors:
            raise _error(YamlReason.ALIAS, event.start_mark, name=event.anchor)
        node, weight = self.anchors[event.anchor]
        self._place(node, weight, new=weight)

    def _named(self, event: Any, node: yaml.Node, weight: int) -> None:
        if event.anchor is None:
            return
        if event.anchor in self.anchors:
            raise _error(YamlReason.ANCHOR, event.start_mark, name=event.anchor)
        self.anchors[event.anchor] = node, weight

    def _place(self, node: yaml.Node, weight: int, *, new: int) -> None:
        """Add a node to the innermost open list or map; ``new`` is the uncounted part of its weight."""
        self.met += new
        if self.met > self.most:
            raise _error(YamlReason.MANY, node.start_mark, most=self.most)
        if not self.opened:
            self.root = node
            return
        into = self.opened[-1]
        into.weight += weight
        if isinstance(into.node, yaml.SequenceNode):
            into.node.value.append(node)
        elif into.key is None:
            into.key = node
        else:
            into.node.value.append((into.key, node))
            into.key = None


def compose(text: str, *, longest: int = MOST_CHARACTERS, most: int = MOST_VALUES) -> yaml.Node | None:
    """Return the root node of a text; ``None`` for an empty text.

    Raises YamlError.
    """
    if len(text) > longest:
        raise YamlError(Reason(YamlReason.LONG, most=longest))
    composer = _Composer(most)
    try:
        for event in yaml.parse(text, Loader=LOADER):
            composer.take(event)
    except YamlError:
        raise
    except yaml.MarkedYAMLError as error:
        raise _marked(error, text.splitlines() or [""]) from None
    except (yaml.reader.ReaderError, UnicodeError) as error:
        raise _character(text, str(error)) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _syntax(str(error)) from None
    return composer.root


def read(text: str, *, longest: int = MOST_CHARACTERS, most: int = MOST_VALUES) -> Any:
    """Return the data of a text: maps, lists, scalars.

    ``longest`` and ``most`` are the limits of characters and values. Raises YamlError.
    """
    root = compose(text, longest=longest, most=most)
    return None if root is None else data_of(root)


def data_of(root: yaml.Node) -> Any:
    """Return the data of a composed node. Raises YamlError."""
    return _Builder().build(root)


class _Builder:
    """Data from nodes; an alias is the same object as its anchor."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._path: list[str] = []  # of the keys that lead to the map being built

    def build(self, node: yaml.Node) -> Any:
        """Return the data of a node; ``DEEPEST`` bounds the recursion."""
        if id(node) not in self._made:
            self._made[id(node)] = self._build(node)
        return self._made[id(node)]

    def _build(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == TAG + "seq":
            return [self.build(inner) for inner in node.value]
        if isinstance(node, yaml.MappingNode) and node.tag == TAG + "map":
            return self._map(node)
        raise _error(YamlReason.TAG, node.start_mark, tag=node.tag)

    def _map(self, node: yaml.MappingNode) -> dict[Any, Any]:
        """Return a map: merged keys first, its own keys win; a repeated key is an error."""
        merged: dict[Any, Any] = {}
        own: dict[Any, Any] = {}
        first: dict[Any, int] = {}
        for key, value in node.value:
            if key.tag == MERGE:
                for taken in self._merged(value):
                    for inner, inherited in taken.items():
                        merged.setdefault(inner, inherited)
                continue
            name = self._key(key)
            if name in own:
                place = ".".join([*self._path, str(name)])
                raise _error(YamlReason.TWICE, key.start_mark, key=place, line=first[name])
            first[name] = key.start_mark.line + 1
            self._path.append(str(name))
            own[name] = self.build(value)
            self._path.pop()
        return {**merged, **own} if merged else own

    def _merged(self, node: yaml.Node) -> Iterator[Mapping[Any, Any]]:
        """Yield the maps under a ``<<``, in their precedence."""
        for one in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(one, yaml.MappingNode):
                raise _error(YamlReason.MERGE, one.start_mark)
            yield self.build(one)

    def _key(self, node: yaml.Node) -> Any:
        name = self.build(node)
        if isinstance(name, dict | list):
            raise _error(YamlReason.KEY, node.start_mark)
        if isinstance(name, float) and not math.isfinite(name):
            raise _error(YamlReason.NUMBER_KEY, node.start_mark, key=name)
        return name


@cache
def _resolver() -> Any:
    return yaml.resolver.Resolver()


def _tag(kind: type[yaml.Node], event: Any) -> str:
    """Return the tag of a node, explicit or resolved from its value."""
    if event.tag is not None and event.tag != "!":
        return str(event.tag)
    value = event.value if kind is yaml.ScalarNode else None
    return str(_resolver().resolve(kind, value, event.implicit))


@cache
def _constructors() -> Mapping[str, Callable[[yaml.ScalarNode], Any]]:
    """Return PyYAML's constructors, one for each supported scalar tag."""
    made: Any = yaml.constructor.SafeConstructor()
    names = ("null", "bool", "int", "float", "binary", "timestamp", "str")
    return {TAG + name: getattr(made, f"construct_yaml_{name}") for name in names}


def _scalar(node: yaml.ScalarNode) -> Any:
    """Return the value of a scalar.

    Raises YamlError for an unsupported tag, and for a text that does not fit its tag.
    """
    constructor = _constructors().get(node.tag)
    if constructor is None:
        raise _error(YamlReason.TAG, node.start_mark, tag=node.tag)
    kind = node.tag.removeprefix(TAG)
    if kind in ("int", "float", "timestamp") and len(node.value) > LONGEST_NUMBER:
        raise _error(YamlReason.VALUE, node.start_mark, value=node.value[:40], tag=kind)
    try:
        return constructor(node)
    except Exception:  # KeyError, IndexError, AttributeError …: constructors raise any of them
        raise _error(YamlReason.VALUE, node.start_mark, value=node.value[:40], tag=kind) from None


def _error(kind: YamlReason, mark: Any, **fields: object) -> YamlError:
    if mark is None:
        return YamlError(Reason(kind, **fields))
    return YamlError(Reason(kind, **fields), mark.line + 1, mark.column + 1)


def error_of(error: yaml.YAMLError) -> YamlError:
    """Return a PyYAML error as YamlError."""
    return _marked(error) if isinstance(error, yaml.MarkedYAMLError) else _syntax(str(error))


def _marked(error: yaml.MarkedYAMLError, lines: Sequence[str] = ()) -> YamlError:
    """Return the error with its line, and with its context where that began on an earlier line.

    ``lines`` are the text's: an error behind the last line is reported at its end.
    """
    mark, began = error.problem_mark or error.context_mark, error.context_mark
    line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
    if lines and line > len(lines):
        line, column = len(lines), len(lines[-1]) + 1
    since = 0 if began is None or not error.context or began.line + 1 >= line else began.line + 1
    return _syntax(error.problem or "", line, column, context=error.context or "", since=since)


def _syntax(problem: str, line: int = 1, column: int = 1, *, context: str = "", since: int = 0) -> YamlError:
    """Return a syntax error; ``context`` is the enclosing construct, ``since`` its first line or 0."""
    return YamlError(Reason(YamlReason.SYNTAX, problem=problem, context=context, since=since), line, column)


def _character(text: str, problem: str) -> YamlError:
    """Return the error of an invalid character, with its position in characters; libyaml counts bytes."""
    match = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if match is None:
        return _syntax(problem)
    at = match.start()
    reason = Reason(YamlReason.CHARACTER, code=f"{ord(text[at]):04X}")
    return YamlError(reason, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
