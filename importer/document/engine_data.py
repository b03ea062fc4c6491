"""The data of each engine beside its generated registries: ``engines/NAME.toml``, read where it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from importer.document.engine_arguments import Argument
from importer.frozen import frozen

FOLDER = Path(__file__).parent.with_name("engines")
ALL = "*"  # every feature


@frozen
class EngineData:
    """What is known of an engine's server; nothing of an engine without a file.

    ``offers``      its features, by the names of ``engines.base.OFFERS``.
    ``options``     keys of a document with the options of its server: ``numbers``, ``words``, ``objects``,
                    ``sampling``.
    ``own_places``  arguments with a key of their own in a document, each with that key.
    ``renamed``     arguments of earlier releases with their present names, empty for one that has gone.
    ``choices``     all values of an argument that may hold more, such as the name of a class; dotted names.
    ``open``        arguments whose list of values plugins extend.
    ``either``      switches with a key of their own that may stand below ``engine_args``, too.
    ``control_tokens``  of Mistral's own tokenizer, by the reasoning parser that reads by them.
    ``added``       arguments of the program that starts it.
    ``rules``       of ``document.model_conflicts``, by their names.
    ``requires``    what an argument needs beside it: another one, and its values that are enough.
    ``exclusive``   pairs of which the server takes one; ``alone`` pairs of numbers of which one may be more
                    than 1.
    ``at_most``     a number, the one that it may not exceed, and that one's default.
    ``drafters``    methods of speculation with a second repository.
    """

    offers: frozenset[str] = frozenset()
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    own_places: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, list[str]] = field(default_factory=dict)
    open: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    control_tokens: Mapping[str, list[str]] = field(default_factory=dict)
    added: Mapping[str, Argument] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    requires: Mapping[str, list[Any]] = field(default_factory=dict)
    exclusive: tuple[tuple[str, str], ...] = ()
    alone: tuple[tuple[str, str], ...] = ()
    at_most: tuple[tuple[Any, ...], ...] = ()
    drafters: frozenset[str] = frozenset()


@frozen
class EveryEngine:
    """What holds for every engine.

    ``launcher``     arguments that the command of importer sets, or that end the server.
    ``for_clients``  those with which a server does for its clients what only its owner may decide.
    ``renderer``     arguments of the functions that render chat templates, and no variables of a template.
    ``own_places``   arguments with a key of their own in a document, each with that key.
    ``variables``    that the command of importer, or a key of the document, sets.
    ``families``     how the names of variables begin, beside those that the launcher passes on.
    """

    launcher: frozenset[str]
    for_clients: frozenset[str]
    renderer: frozenset[str]
    own_places: Mapping[str, str]
    variables: frozenset[str]
    families: tuple[str, ...]


@cache
def load(engine: str) -> EngineData:
    """Return the data of an engine by the name of its backend."""
    data = table(f"{engine}.toml")
    added = data.get("added", {})
    return EngineData(
        offers=frozenset(data.get("offers", ())),
        options=data.get("options", {}),
        own_places={**every().own_places, **data["own_places"]} if data else {},
        renamed={**data.get("renamed", {}), **dict.fromkeys(data.get("removed", ()), "")},
        choices=data.get("choices", {}),
        open=frozenset(data.get("open", ())),
        either=frozenset(data.get("either", ())),
        control_tokens=data.get("control_tokens", {}),
        added={name: Argument(name, **row) for name, row in added.items()},
        rules=tuple(data.get("rules", ())),
        requires=data.get("requires", {}),
        **{name: tuple(map(tuple, data.get(name, ()))) for name in ("exclusive", "alone", "at_most")},
        drafters=frozenset(data.get("drafters", ())),
    )


@cache
def every() -> EveryEngine:
    """Return what holds for every engine."""
    data = table("every.toml")
    sets = {name: frozenset(data[name]) for name in ("launcher", "for_clients", "renderer", "variables")}
    return EveryEngine(**sets, own_places=data["own_places"], families=tuple(data["families"]))


def table(name: str) -> Mapping[str, Any]:
    """Return a file of the engines' folder; empty where there is none."""
    import tomllib

    try:
        return tomllib.loads((FOLDER / name).read_text("utf-8"))
    except FileNotFoundError:
        return {}
