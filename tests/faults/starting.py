"""Steps that change how an engine is started, its environment, its answers and the machine."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from importer.engines.base import Launch
from tests.faults.fault import Site
from tests.faults.steps import MLX, Json


@dataclass(frozen=True)
class Option:
    """One of the document's ``options``; ``None`` takes it away."""

    key: str
    value: str | None

    def plant(self, site: Site) -> None:
        kept = [o for o in site.data.get("options") or () if not str(o).startswith(f"{self.key}:")]
        site.data["options"] = kept + ([f"{self.key}:{self.value}"] if self.value else [])


@dataclass(frozen=True)
class ToolParser:
    """The engine reads calls with this parser: named in the document, on MLX claimed by the repository.

    A mapping gives the name on each engine, where they differ.
    """

    name: str | Mapping[str, str]

    def plant(self, site: Site) -> None:
        name = self.name if isinstance(self.name, str) else self.name[site.engine]
        if site.engine in MLX:
            Json("tokenizer_config.json", {"tool_parser_type": name}).plant(site)
        else:
            Option("tool_parser", name).plant(site)


@dataclass(frozen=True)
class Started:
    """The engine is started with other words than the document's, by dots; ``None`` leaves one out."""

    keys: Mapping[str, Any]

    def plant(self, site: Site) -> None:
        site.started |= self.keys


@dataclass(frozen=True)
class Arguments:
    """Options of the engine's command: ``add`` at the end, and none that begins with one of ``drop``."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def plant(self, site: Site) -> None:
        def changed(launch: Launch) -> Launch:
            kept = tuple(a for a in launch.arguments if not a.startswith(self.drop or ("\0",)))
            return replace(launch, arguments=(*kept, *self.add))

        site.launches.append(changed)


@dataclass(frozen=True)
class Served:
    """The name that requests use is another than the one that is served."""

    name: str

    def plant(self, site: Site) -> None:
        site.launches.append(lambda launch: replace(launch, model=self.name))


@dataclass(frozen=True)
class Variable:
    """A variable in the engine's environment."""

    name: str
    value: str

    def plant(self, site: Site) -> None:
        added = {self.name: self.value}
        site.launches.append(lambda launch: replace(launch, env={**launch.env, **added}))


@dataclass(frozen=True)
class Module:
    """A module that the engine's Python finds before its own of that name."""

    name: str
    text: str

    def plant(self, site: Site) -> None:
        folder = site.folder.parent / "packages"
        folder.mkdir()
        (folder / f"{self.name}.py").write_text(self.text, encoding="utf-8")
        Variable("PYTHONPATH", str(folder)).plant(site)


@dataclass(frozen=True)
class NoModule:
    """A package that the engine needs is not in its environment."""

    name: str

    def plant(self, site: Site) -> None:
        says = f"No module named {self.name!r}"
        Module(self.name, f"raise ModuleNotFoundError({says!r}, name={self.name!r})\n").plant(site)


@dataclass(frozen=True)
class Limited:
    """The engine's processes may have no more than so much of a resource: a name of Python's ``resource``."""

    resource: str
    most: int

    def plant(self, site: Site) -> None:
        name = f"resource.{self.resource}"
        text = f"import resource\nresource.setrlimit({name}, ({self.most}, {self.most}))\n"
        Module("sitecustomize", text).plant(site)


@dataclass(frozen=True)
class Wire:
    """The engine's server does this to its answers: an operation of ``tests/faults/operations.py``."""

    operation: str

    def plant(self, site: Site) -> None:
        site.wire.append(self.operation)


@dataclass(frozen=True)
class PortTaken:
    """Somebody else listens where the engine is to serve."""

    def plant(self, site: Site) -> None:
        other = site.held.enter_context(socket.socket())
        other.bind(("127.0.0.1", 0))
        other.listen()
        site.port = other.getsockname()[1]
