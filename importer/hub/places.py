"""The one door to folders of this disk: whoever names one, a reference, a document or a job, asks here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from importer.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Places:
    """Which folders may be read: those in ``roots`` and below; all where ``roots`` is ``None``."""

    roots: tuple[Path, ...] | None

    @classmethod
    def below(cls, folders: Iterable[str | Path]) -> Places:
        """Return what lies in these folders and below; of none, nothing."""
        return cls(tuple(Path(os.path.realpath(folder)) for folder in folders))

    def also(self, folder: Path) -> Places:
        """Return these and what lies in one more folder."""
        return self if self.roots is None else Places.below([*self.roots, folder])

    def folder(self, path: Path) -> Path:
        """Return the path with every link followed. Raises ServiceError("no-directories")."""
        real = Path(os.path.realpath(path))
        if self.roots is not None and not any(real.is_relative_to(root) for root in self.roots):
            raise ServiceError("no-directories", reference=str(path))
        return real


ANYWHERE = Places(None)  # the person at the command line may read what the system lets them
