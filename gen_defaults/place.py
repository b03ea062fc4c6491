"""The places of the tables and their sources in a checkout, and writing files, all or none."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.engines.registries import FOLDER

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Place:
    """A checkout. ``upstream`` holds each source's last values, ``rows`` a person's decisions."""

    root: Path = ROOT

    @property
    def parsers(self) -> Path:
        """Return the parser table: a person's, never written."""
        return self.root / "parser_defaults.json"

    @property
    def sampling(self) -> Path:
        """Return the sampling table."""
        return self.root / "inference_defaults.json"

    @property
    def rows(self) -> Path:
        """Return the file with each sampling row's source, and the rows that no source has."""
        return self.root / "gen_defaults" / "sampling_rows.json"

    @property
    def proposal(self) -> Path:
        """Return the file of proposed changes to the parser table."""
        return self.root / "gen_defaults" / "parser_proposal.json"

    @property
    def registries(self) -> Path:
        """Return the folder of the engines' registries."""
        return self.root / FOLDER.relative_to(ROOT)

    def upstream(self, source: str) -> Path:
        """Return the file of a source's last values, under importer's names."""
        return self.root / "gen_defaults" / "upstream" / f"{source}.json"


def load(path: Path) -> dict[str, Any]:
    """Return a file of the checkout as data; empty where it is absent. Raises ValueError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path.name} cannot be read: it is no object")  # noqa: TRY004
    return data


def changed(files: Mapping[Path, str]) -> dict[Path, str]:
    """Return the files whose text is another than what is there."""
    return {p: t for p, t in files.items() if not p.is_file() or p.read_text(encoding="utf-8") != t}


def write(files: Mapping[Path, str]) -> list[Path]:
    """Put every changed text in place, or none: after a failure or an interrupt the old texts are restored.

    Raises OSError.
    """
    waiting = changed(files)
    before = {path: path.read_bytes() if path.is_file() else None for path in waiting}
    done: list[Path] = []
    with ExitStack() as stack:
        try:
            partial = [(path, _beside(path, text, stack)) for path, text in waiting.items()]
            for path, new in partial:
                _replace(new, path)
                done.append(path)
        except BaseException:
            for path in done:
                _restore(path, before[path])
            raise
    return list(waiting)


def _replace(new: Path, path: Path) -> None:
    try:
        new.replace(path)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror or error}") from None


def _beside(path: Path, text: str, stack: ExitStack) -> Path:
    """Write the text to a folder of its own on the same disk, which the stack removes. Raises OSError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=path.parent))
        partial = Path(folder, path.name)
        partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror or error}") from None
    return partial


def _restore(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
