"""The Hub client's own cache, read only: ``models--owner--name/{refs,snapshots,trees}``."""

from __future__ import annotations

import json
import os
from pathlib import Path

from importer.hub import local
from importer.hub.listing import LONGEST, MOST_FILES
from importer.hub.reference import COMMIT
from importer.hub.snapshot import RepoFile


def root() -> Path:
    """Where the Hub client keeps repositories, by its own variables and their order."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{base}/huggingface"
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or f"{home}/hub"
    return Path(os.path.expandvars(named)).expanduser()


def snapshot(repo: str, commit: str) -> Path | None:
    """The directory that holds this very commit, with or without its weights."""
    if not COMMIT.fullmatch(commit):
        return None
    folder = _folder(repo) / "snapshots" / commit
    return folder if folder.is_dir() else None


def commit_of(repo: str, revision: str) -> str | None:
    """The commit a branch or tag stood for when the client last asked."""
    try:
        text = _read(_folder(repo) / "refs" / revision).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    return text if COMMIT.fullmatch(text) else None


def listing(repo: str, commit: str, directory: Path) -> tuple[RepoFile, ...]:
    """All files of the commit where the client noted them, else those on this disk."""
    try:
        noted = json.loads(_read(_folder(repo) / "trees" / f"{commit}.json"))["files"]
        return tuple(RepoFile(path, int(noted[path]["size"])) for path in sorted(noted)[:MOST_FILES])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return local.listing(directory)


def _read(path: Path) -> bytes:
    """Raises OSError for what is no plain file of a usual size."""
    return local.read_plain(path, LONGEST)


def _folder(repo: str) -> Path:
    return root() / f"models--{repo.replace('/', '--')}"
