"""Runs in an engine's own environment: prints the arguments of its server's parser as JSON, with types.

The server's module is run until it parses its command line; nothing behind that is reached.
"""

from __future__ import annotations

import argparse
import collections.abc
import dataclasses
import enum
import importlib.util
import json
import runpy
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEEPEST = 4  # configurations inside of configurations
OWN = ("ModelConfig", "ParallelConfig", "LoadConfig")  # inside of others: filled by the engine itself
RESOLVED = {"config": None}
LIMITS = ("ge", "gt", "le", "lt")
LISTS = (list, set, tuple, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
Row = dict[str, Any]


def _beside(name: str) -> Any:
    """Return a module of this folder; the folder itself stays out of the engine's path."""
    spec: Any = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hints = _beside("argument_hints")


class Captured(BaseException):
    """Carries the parser out of the server's module."""


class Reader:
    """Reads the parser of one package with the types of its dataclasses."""

    def __init__(self, package: str) -> None:
        self.configs: dict[str, dict[str, Row]] = {}
        self._classes: dict[str, Any] = {}
        self._bounds: dict[str, Row] = {}
        self._hints: dict[str, Any] = {}
        self._engine: set[str] = set()  # arguments of the engine, where its server has others beside
        self._words: dict[Any, Row] = {}  # texts and numbers that are read as a member of an enumeration
        self._chosen: dict[str, list[Any]] = {}  # hints of the fields of each name, in configurations
        for cls in _dataclasses(package):
            self._classes.setdefault(cls.__name__, cls)
            for name, field in getattr(cls, "__pydantic_fields__", {}).items():
                if getattr(field, "init_var", None):  # handed on to another class, that has the limits
                    continue
                limits = _limits(field)
                self._bounds[name] = limits if self._bounds.get(name, limits) == limits else {}
            for one, row in hints.enumerations(cls):
                self._words.setdefault(one, row)
            if cls.__name__.endswith("Config"):
                for name, hint in hints.fields(cls).items():
                    self._chosen.setdefault(name, []).append(hint)
            if cls.__name__.endswith("Args"):
                self._hints = {**hints.fields(cls), **self._hints}
            if cls.__name__.endswith("EngineArgs"):
                self._engine |= {*hints.fields(cls)}

    def row(self, parser: Any, action: Any) -> Row | None:
        """Return one argument: its name, the words that set it and switch it off, its type and default."""
        flags = [o for o in action.option_strings if o.startswith("--")]
        if not flags or action.dest in ("help", "version"):
            return None
        off, on = _off(parser, action, flags)
        plain = [word.removeprefix("--").replace("-", "_") for word in on or off]
        name = action.dest if action.dest in plain else plain[0]
        preferred = f"--{name.replace('_', '-')}"
        flag = preferred if preferred in on else next(iter(on), "")
        kind = self._kind(action)
        row: Row = {
            "name": name,
            "flag": None if flag == preferred else flag,
            "off": next(iter(off), None),
            "aliases": sorted({*plain, action.dest} - {name}) or None,
            "repeats": type(action).__name__ == "_AppendAction" or None,
            "many": _many(action) or None,
            "type": kind,
        }
        if kind in ("int", "float"):
            row |= self._bounds.get(action.dest, {})
        if isinstance(kind, dict) and "list" in kind and getattr(action.type, "__name__", "") == "<lambda>":
            row["commas"] = True
        row["server"] = (bool(self._engine) and action.dest not in self._engine) or None
        row["default"] = _default(action.default)
        return {key: value for key, value in row.items() if value is not None}

    def _kind(self, action: Any) -> Any:
        kind, hint = _plain(action), self._hints.get(action.dest)
        if kind == "bool" or (isinstance(kind, dict) and "one_of" in kind and not _many(action)):
            return kind
        if hint is None or kind == "size":
            return {"list": kind} if _many(action) else kind
        described = self.type(hint, 0)
        if described == "str":  # a configuration's field of that name may have the choices
            others = [self.type(other, 0) for other in self._chosen.get(action.dest, ())]
            if others and _closed(others[0]) and all(other == others[0] for other in others):
                described = others[0]
        if _many(action) and not (isinstance(described, dict) and "list" in described):
            return {"list": "str"}
        if described == {"map": "any"} and (own := self._named(action.dest)) is not None:
            return self._config(own, 0)
        return kind if described == "any" else described

    def _named(self, dest: str) -> Any:
        """Return the configuration with the name of an argument, such as SpeculativeConfig."""
        return self._classes.get("".join(part.capitalize() for part in dest.split("_")))

    def type(self, hint: Any, depth: int) -> Any:
        """Return a type as data."""
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if hint is None or hint is type(None):
            return "null"
        if hint in (bool, int, float, str):
            return hint.__name__
        if origin is typing.Annotated:
            return self.type(args[0], depth)
        if origin is typing.Literal:
            return {"one_of": [*dict.fromkeys(a for a in _flat(args) if a is not None)]}
        if origin in (typing.Union, types.UnionType):
            return self._union(args, depth)
        if origin in LISTS:
            inner = [a for a in args if a is not Ellipsis]
            return {"list": self.type(inner[0], depth) if inner else "any"}
        if origin in (dict, collections.abc.Mapping):
            return {"map": self.type(args[1], depth) if len(args) > 1 else "any"}
        if collections.abc.Callable in (origin, hint) or origin is type:
            return "code"
        return self._class(hint, depth) if isinstance(hint, type) else "any"

    def _union(self, args: Any, depth: int) -> Any:
        kinds: list[Any] = []
        for arg in args:
            kind = self.type(arg, depth)
            parts = kind["any_of"] if isinstance(kind, dict) and "any_of" in kind else [kind]
            kinds += [one for one in parts if one not in (*kinds, "null")]
        return kinds[0] if len(kinds) == 1 else {"any_of": kinds} if kinds else "null"

    def _class(self, hint: Any, depth: int) -> Any:
        if issubclass(hint, enum.Enum):
            if hint in self._words:
                return self._words[hint]
            # Engines read the names of some and the values of others.
            return {"any_of": ["int", "str"]} if issubclass(hint, int) else "str"
        if issubclass(hint, Path):
            return "path"
        if issubclass(hint, dict):
            return {"map": "any"}
        return self._config(hint, depth) if dataclasses.is_dataclass(hint) else "any"

    def _config(self, cls: Any, depth: int) -> Any:
        """Return the name of a configuration, whose fields stand beside."""
        if depth > DEEPEST:
            return {"map": "any"}
        if depth and cls.__name__ in OWN:
            return RESOLVED
        if cls.__name__ not in self.configs:
            rows = self.configs[cls.__name__] = {}
            for name, hint in hints.fields(cls).items():
                kind = self.type(hint, depth + 1)
                limits = _limits(getattr(cls, "__pydantic_fields__", {}).get(name))
                if kind != RESOLVED:
                    rows[name] = {"type": kind} | (limits if kind in ("int", "float") else {})
        return {"config": cls.__name__}


def main(package: str, command: list[str]) -> None:
    """Print the arguments of ``command``, a module and its words."""

    def parse(self: Any, *_args: Any, **_kwargs: Any) -> None:
        raise Captured(self)

    patched: Any = argparse.ArgumentParser
    patched.parse_args = patched.parse_known_args = parse
    sys.argv = [*command]
    try:
        runpy.run_module(command[0], run_name="__main__")
    except Captured as captured:
        parser = _sub(captured.args[0], command[1:])
    reader = Reader(package)
    rows = [row for action in vars(parser)["_actions"] if (row := reader.row(parser, action)) is not None]
    data = {"arguments": {row.pop("name"): row for row in rows}, "configs": reader.configs}
    sys.stdout.write("\nRESULT " + json.dumps(data) + "\n")


def _sub(parser: Any, words: list[str]) -> Any:
    """Return the parser of a subcommand."""
    for action in vars(parser)["_actions"]:
        for word in words:
            if isinstance(action.choices, dict) and word in action.choices:
                return action.choices[word]
    return parser


def _off(parser: Any, action: Any, flags: list[str]) -> tuple[list[str], list[str]]:
    """Return the flags that switch an option off, and those that set it."""
    negative = getattr(action, "negative_option_strings", None)
    if negative is None and isinstance(action, argparse.BooleanOptionalAction):
        negative = {f for f in flags if f.startswith("--no-")}
    if negative:
        known = [f for f in vars(parser)["_option_string_actions"] if f in negative]
        return sorted(known, key=lambda f: (not f.startswith("--no-"), f)), [
            f for f in flags if f not in negative
        ]
    return (flags, []) if action.nargs == 0 and action.const is False else ([], flags)


def _many(action: Any) -> bool:
    return action.nargs in ("+", "*") or (isinstance(action.nargs, int) and action.nargs > 1)


def _plain(action: Any) -> Any:
    """Return the type that argparse knows."""
    name = getattr(action.type, "__name__", "")
    if action.nargs == 0:
        return "bool"
    if action.choices is not None:
        values = [c.value if isinstance(c, enum.Enum) else c for c in action.choices]
        return {"one_of": sorted((v for v in values if v is not None), key=str)}
    if action.type is None or action.type in (int, float, str):
        return name or "str"
    if name.startswith("human_readable"):  # vLLM's integers that may be written as 8K or 1M
        return "size"
    return {"map": "any"} if name == "loads" else "any"


def _default(value: Any) -> Any:
    value = value.value if isinstance(value, enum.Enum) else value
    return value if isinstance(value, bool | int | float | str) and value != argparse.SUPPRESS else None


def _dataclasses(package: str) -> list[Any]:
    found = {}
    for module in [*sys.modules.values()]:
        if getattr(module, "__name__", "").startswith(package):
            for value in [*vars(module).values()]:
                if isinstance(value, type) and dataclasses.is_dataclass(value):
                    found[id(value)] = value
    return [value for value in found.values() if value.__module__.startswith(package)]


def _closed(kind: Any) -> bool:
    """Return whether a type has a list of choices."""
    return isinstance(kind, dict) and ("one_of" in kind or any(map(_closed, kind.get("any_of", ()))))


def _limits(field: Any) -> Row:
    """Return the least and the largest number of a field."""
    pairs = [(k, getattr(item, k, None)) for item in getattr(field, "metadata", ()) for k in LIMITS]
    return {k: v for k, v in pairs if isinstance(v, int | float)}


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if typing.get_origin(value) is typing.Literal:
            yield from _flat(typing.get_args(value))
        else:
            yield value


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
