"""Stand-ins for packages of vision that an engine imports at its start and that no parser uses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class Absent(ModuleType):
    """A package that is not installed: each of its names is an empty class."""

    __path__: list[str] = []  # noqa: RUF012 - a package, so that its modules are looked for here too

    def __getattr__(self, name: str) -> type:
        """Return an empty class; raises AttributeError for names that Python looks up itself."""
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Absence(MetaPathFinder, Loader):
    """The finder and loader of modules below the given packages."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = tuple(packages)

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in for the packages and their modules, ``None`` for all others."""
        if fullname.partition(".")[0] in self._packages:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a stand-in."""
        return Absent(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing: a stand-in has no code."""


def stand_in(*packages: str) -> None:
    """Let the packages be imported where they are not installed; installed ones stay as they are."""
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        sys.meta_path.append(Absence(absent))
