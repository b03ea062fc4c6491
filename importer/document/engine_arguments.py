"""The arguments and variables of each version of an engine's server: generated, read without the engine.

``python -m gen_defaults arguments`` writes them from the engine's parser, ``… settings`` from its sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from importer.frozen import frozen

SCHEMA = 1
FOLDER = Path(__file__).with_name("arguments_of")
SETTINGS = Path(__file__).with_name("settings_of")
Kind = str | Mapping[str, Any]  # a type as data: "int", {"list": "str"}, {"one_of": […]}, {"config": NAME}
LIMITS = ("ge", "gt", "le", "lt")


@frozen
class Argument:
    """One argument of a server, or one field of a configuration.

    ``flag``     the word that sets it; empty where only its absence does.
    ``off``      the word that sets a switch to false, where there is one.
    ``many``     whether its values follow the flag as words of their own.
    ``repeats``  whether the flag stands again before each value.
    ``commas``   whether its values are one word with commas.
    ``server``   whether it is of the server alone, beside the engine's own class of arguments.
    ``limits``   least and largest number, by ``ge``, ``gt``, ``le`` and ``lt``.
    ``default``  of the engine, where it is a number, a text or a switch; else ``None``.
    """

    name: str
    kind: Kind
    flag: str = ""
    off: str | None = None
    aliases: tuple[str, ...] = ()
    many: bool = False
    repeats: bool = False
    commas: bool = False
    server: bool = False
    limits: Mapping[str, float] = field(default_factory=dict)
    default: Any = None

    def choices(self) -> tuple[Any, ...]:
        """Return the values that it is one of; none for a type without a list."""
        kinds = [self.kind, *(self.kind.get("any_of", ()) if isinstance(self.kind, Mapping) else ())]
        return tuple(one for kind in kinds if isinstance(kind, Mapping) for one in kind.get("one_of", ()))


@frozen
class Required:
    """A value that the engine refuses unless another argument is set.

    ``values``  of the other argument that are enough; empty: any.
    ``others``  arguments that may stand in its place.
    """

    name: str
    value: Any
    other: str
    values: tuple[Any, ...]
    others: tuple[str, ...]


@frozen
class ArgumentRegistry:
    """The arguments of one version of an engine, its configurations by name, its environment variables.

    ``requires``, ``exclusive``  what the engine's own validators refuse together: pairs of name and value.
    ``of_checkpoint``            quantisations that the engine does not make of plain weights.
    ``variables``                that the engine reads; the type is ``None`` for a text of any kind.
    ``maps``                     the keys of maps without declared types, each with its type.
    """

    engine: str
    version: str
    arguments: Mapping[str, Argument]
    configs: Mapping[str, Mapping[str, Argument]]
    requires: tuple[Required, ...] = ()
    exclusive: tuple[tuple[tuple[str, Any], tuple[str, Any]], ...] = ()
    of_checkpoint: frozenset[str] = frozenset()
    variables: Mapping[str, Kind | None] = field(default_factory=dict)
    maps: Mapping[str, Mapping[str, Argument]] = field(default_factory=dict)

    def get(self, name: str) -> Argument | None:
        """Return the argument with a name, or with an alias."""
        return self.arguments.get(name) or self.arguments.get(
            _aliases(self.engine, self.version).get(name, "")
        )


def file_name(engine: str, version: str) -> str:
    """Return the name of the file of a version."""
    return f"{engine}-{version}.json"


@cache
def versions(engine: str) -> tuple[str, ...]:
    """Return the versions with known arguments, the oldest first."""
    names = (path.stem.removeprefix(f"{engine}-") for path in FOLDER.glob(f"{engine}-[0-9]*.json"))
    return tuple(sorted(names, key=order))


def load(engine: str, version: str | None = None) -> ArgumentRegistry | None:
    """Return the arguments of a version, else of the newest one before it, else of the oldest known.

    Without a version they are those of the newest. ``None`` for an engine without known arguments.
    """
    known = versions(engine)
    if not known:
        return None
    before = [v for v in known if version is None or order(v) <= order(version)]
    return _read(engine, (before or known[:1])[-1])


def version_of(document: Mapping[str, object]) -> str | None:
    """Return the version of the engine that a document names."""
    block = document.get("importer")
    engine = block.get("engine") if isinstance(block, Mapping) else None
    version = engine.get("version") if isinstance(engine, Mapping) else None
    return version if isinstance(version, str) else None


def order(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, to compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@cache
def _read(engine: str, version: str) -> ArgumentRegistry:
    data = json.loads((FOLDER / file_name(engine, version)).read_text(encoding="utf-8"))
    settings = json.loads((SETTINGS / file_name(engine, version)).read_text(encoding="utf-8"))
    return ArgumentRegistry(
        engine=engine,
        version=version,
        arguments={name: _argument(name, row) for name, row in data["arguments"].items()},
        configs={
            name: {key: _argument(key, row) for key, row in rows.items()}
            for name, rows in data["configs"].items()
        },
        requires=tuple(
            Required(name, value, other, tuple(values or ()), tuple(others))
            for name, value, other, values, others in data.get("requires", ())
        ),
        exclusive=tuple(((a, one), (b, two)) for a, one, b, two in data.get("exclusive", ())),
        of_checkpoint=frozenset(data.get("of_checkpoint", ())),
        variables={name: row["type"] for name, row in settings["variables"].items()},
        maps={
            name: {key: _argument(key, row) for key, row in rows.items()}
            for name, rows in settings["maps"].items()
        },
    )


@cache
def _aliases(engine: str, version: str) -> Mapping[str, str]:
    arguments = _read(engine, version).arguments
    return {alias: name for name, one in arguments.items() for alias in one.aliases if alias not in arguments}


def _argument(name: str, row: Mapping[str, Any]) -> Argument:
    flag = row["flag"] if "flag" in row else f"--{name.replace('_', '-')}"
    limits = {key: row[key] for key in LIMITS if key in row}
    # In the order of the fields: a registry has 500, and names would cost half of the time to read it.
    return Argument(
        name, row["type"], flag, row.get("off"), tuple(row.get("aliases", ())), "many" in row,
        "repeats" in row, "commas" in row, "server" in row, limits, row.get("default"),
    )  # fmt: skip
