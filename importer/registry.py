"""Parts by name: importer's own, and those that installed packages add by entry points.

The metadata of packages are read where a name is not one of importer's own, or where all names are listed.
``--help`` and an import read none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from importer.errors import UsageError
from importer.reasons import Reason, ReasonKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Part = TypeVar("Part")


class PartReason(ReasonKind):
    """Why a part of a package cannot be used; ``TEXT`` is for the package's own reasons."""

    FAILED = "it failed with {error}"
    TAKEN = "the name belongs to {owner}"
    TEXT = "{text}"
    WRONG_TYPE = "{value} is no such part"


class Registry(dict[str, Part]):
    """Importer's own parts by name; ``registry[name]`` finds those of packages, too.

    ``group``  packages add their parts to the entry points ``importer.GROUP``, each of the type ``kind``.
    ``use``    the first use of a package's part; may raise anything.
    """

    def __init__(
        self, group: str, own: Mapping[str, Part], kind: type, use: Callable[[Part], object]
    ) -> None:
        super().__init__(own)
        self._group, self._kind, self._use = group, kind, use

    def __missing__(self, name: str) -> Part:
        """Return the part of a package; raises KeyError, or UsageError("broken-part")."""
        if name not in self._added[0]:
            raise self.fault(name) or KeyError(name)
        return self._added[0][name]

    def every(self) -> Iterator[tuple[str, Part]]:
        """Yield names and parts: importer's own, then those of packages."""
        yield from self.items()
        yield from self._added[0].items()

    def fault(self, name: str) -> UsageError | None:
        """Return why the part of a package with this name cannot be used."""
        return next((fault for fault in self.faults if fault.details["name"] == name), None)

    def package(self, name: str) -> str:
        """Return name and version of the package that adds a part; empty for importer's own."""
        return "" if name in self else self._added[1].get(name, "")

    @property
    def faults(self) -> tuple[UsageError, ...]:
        """Return an error for each part of a package that cannot be used."""
        return self._added[2]

    @cached_property
    def _added(self) -> tuple[dict[str, Part], dict[str, str], tuple[UsageError, ...]]:
        """Return the parts of packages and the packages by name, and the errors."""
        from importlib.metadata import entry_points

        parts, packages, faults = dict[str, Part](), dict[str, str](), list[UsageError]()
        for entry in sorted(entry_points(group=f"importer.{self._group}"), key=_package):
            name, package = entry.name, _package(entry)
            owner = "importer" if name in self else packages.get(name)
            part = Reason(PartReason.TAKEN, owner=owner) if owner else self._part(entry)
            if isinstance(part, Reason):
                fields = {"package": package, "group": self._group, "name": name, "problem": part}
                faults.append(UsageError("broken-part", **fields))
            else:
                parts[name], packages[name] = part, package
        return parts, packages, tuple(faults)

    def _part(self, entry: EntryPoint) -> Part | Reason:
        """Return the part, or why there is none: the code of a package may raise anything."""
        try:
            part: Part = entry.load()
            if not isinstance(part, self._kind) or getattr(part, "name", entry.name) != entry.name:
                return Reason(PartReason.WRONG_TYPE, value=entry.value)
            self._use(part)
        except (Exception, SystemExit) as error:
            return Reason(PartReason.FAILED, error=f"{type(error).__name__}: {error}")
        return part


def _package(entry: EntryPoint) -> str:
    return "" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
