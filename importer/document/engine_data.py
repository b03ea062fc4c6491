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
# Arguments with a key of their own in a document, on each engine that has them.
COMMON = {
    "chat_template": "importer.chat_template",
    "tool_call_parser": "tool_parser",
    "reasoning_parser": "reasoning_parser",
    "enable_auto_tool_choice": "tool_parser",
    "trust_remote_code": "trust_remote_code",
    "default_chat_template_kwargs": "chat_template_kwargs",
}


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
    ``added``       arguments of the program that starts it.
    """

    offers: frozenset[str] = frozenset()
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    own_places: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, list[str]] = field(default_factory=dict)
    open: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    added: Mapping[str, Argument] = field(default_factory=dict)


@cache
def load(engine: str) -> EngineData:
    """Return the data of an engine by the name of its backend."""
    data = table(f"{engine}.toml")
    added = data.get("added", {})
    return EngineData(
        offers=frozenset(data.get("offers", ())),
        options=data.get("options", {}),
        own_places=COMMON | data["own_places"] if data else {},
        renamed={**data.get("renamed", {}), **dict.fromkeys(data.get("removed", ()), "")},
        choices=data.get("choices", {}),
        open=frozenset(data.get("open", ())),
        either=frozenset(data.get("either", ())),
        added={name: Argument(name, **row) for name, row in added.items()},
    )


def table(name: str) -> Mapping[str, Any]:
    """Return a file of the engines' folder; empty where there is none."""
    import tomllib

    try:
        return tomllib.loads((FOLDER / name).read_text("utf-8"))
    except FileNotFoundError:
        return {}
