"""The Hub client's cache on this disk, and importer's own cache of listings, texts and tensor headers.

Importer's cache has one file for each commit, written atomically, so processes may share it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from importer import kept
from importer.frozen import frozen
from importer.hub import endpoint, local
from importer.hub.folders import Folder
from importer.hub.listing import LONGEST, MOST_FILES, Listing, is_safe
from importer.hub.reference import COMMIT
from importer.hub.safetensors import Tensor
from importer.hub.snapshot import RepoFile, UnreadReason, git_hash, text
from importer.reasons import Reason, ReasonKind

FORMAT = 1
SHA1 = 40  # hexadecimal digits


class Uncached(ReasonKind):
    """What the caches lack."""

    REVISION = "the revision {revision!r}"
    HEADERS = "the headers of the weights"
    WEIGHTS = "the weights"


def root() -> Path:
    """Return the directory of the Hub client's cache, by its own variables in its own order."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{base}/huggingface"
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or f"{home}/hub"
    return Path(os.path.expandvars(named)).expanduser()


def snapshot(repo: str, commit: str) -> Path | None:
    """Return the Hub client's directory of this commit, with or without its weights, or ``None``."""
    if not COMMIT.fullmatch(commit):
        return None
    folder = local.ANYWHERE.folder(client_folder(repo) / "snapshots" / commit)
    return folder if folder.is_dir() else None


def commit_of(repo: str, revision: str) -> str | None:
    """Return the commit of a branch or tag at the client's last request, or ``None``."""
    return commit_in(client_folder(repo), revision)


def commit_in(home: Path, revision: str) -> str | None:
    """Return the same of a repository's folder in any client's cache."""
    try:
        text = _read_small(home, f"refs/{revision}").decode("ascii").strip()
    except (OSError, ValueError):
        return None
    return text if COMMIT.fullmatch(text) else None


def listing(home: Path, commit: str, directory: Path) -> tuple[RepoFile, ...]:
    """Return all files of the commit from the client's list, else those on this disk."""
    try:
        noted = json.loads(_read_small(home, f"trees/{commit}.json"))["files"]
        paths = [path for path in sorted(noted)[:MOST_FILES] if is_safe(path)]
        return tuple(RepoFile(path, int(noted[path]["size"])) for path in paths)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return local.listing(directory)


def _read_small(home: Path, path: str) -> bytes:
    """Return the bytes of a plain file of a usual size in a client's folder of a repository.

    Raises OSError for everything else.
    """
    with Folder(local.ANYWHERE.folder(home)) as folder:
        return folder.read(path, LONGEST)


def client_folder(repo: str) -> Path:
    """Return the folder of a repository in the client's cache."""
    return root() / f"models--{repo.replace('/', '--')}"


@frozen
class CachedSnapshot:
    """A commit's listing, the texts of its files, and the permanent reasons for files without a text."""

    listing: Listing
    texts: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, Reason] = field(default_factory=dict)


def load(repo: str, commit: str) -> CachedSnapshot | None:
    """Return the cached snapshot of a commit; ``None`` where it is absent or unreadable."""
    data = _read(_folder(repo) / f"{commit}.json")
    try:
        if data.get("format") != FORMAT or data["commit"] != commit:
            return None
        unknown = {path: _reason(reason) for path, reason in data["unknown"].items()}
        files = tuple(RepoFile(*file) for file in data["files"])
        listing = Listing(data["repo"], commit, files, dict(data["info"]))
        return CachedSnapshot(listing, dict(data["texts"]), unknown)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _reason(data: Mapping[str, Any]) -> Reason:
    """Return a stored reason.

    Raises ValueError and KeyError for data that ``store`` has not written.
    """
    kind, fields = data["kind"].rpartition(".")[2], {k: v for k, v in data.items() if k != "kind"}
    return Reason(UnreadReason(kind), **fields)


def last(repo: str, revision: str) -> CachedSnapshot | None:
    """Return the cached snapshot of a revision at the last request to the Hub, or ``None``."""
    data = _read(_ref(repo, revision))
    named, commit = data.get("repo"), data.get("commit")
    if not (isinstance(named, str) and isinstance(commit, str) and COMMIT.fullmatch(commit)):
        return None
    return load(named, commit)


def store(requested: str, revision: str, stored: CachedSnapshot) -> None:
    """Store a commit as the target of ``requested`` at ``revision``; errors of the disk are ignored."""
    listing = stored.listing
    entry = {
        "format": FORMAT,
        "repo": listing.repo,
        "commit": listing.commit,
        "files": [[f.path, f.size, f.hash] for f in listing.files],
        "info": listing.info,
        "texts": stored.texts,
        "unknown": {path: reason.to_json() for path, reason in stored.unknown.items()},
    }
    kept.write(_folder(listing.repo) / f"{listing.commit}.json", entry)
    kept.write(_ref(requested, revision), {"repo": listing.repo, "commit": listing.commit})


def load_tensors(repo: str, commit: str, paths: Sequence[str]) -> dict[str, Tensor] | None:
    """Return the cached tensors of these files of a commit, or ``None``."""
    data = _read(_tensors(repo, commit))
    if data.get("format") != FORMAT or data.get("files") != [*paths]:
        return None
    try:
        return {n: Tensor(dtype, tuple(shape), size) for n, (dtype, shape, size) in data["tensors"].items()}
    except (KeyError, TypeError, ValueError):
        return None


def store_tensors(repo: str, commit: str, paths: Sequence[str], tensors: Mapping[str, Tensor]) -> None:
    """Store the tensors of these files; errors of the disk are ignored."""
    listed = {name: [t.dtype, t.shape, t.size] for name, t in tensors.items()}
    kept.write(_tensors(repo, commit), {"format": FORMAT, "files": [*paths], "tensors": listed})


def load_edge(repo: str, commit: str, path: str, count: int) -> bytes | None:
    """Return the cached first or last bytes of a file of a commit, or ``None``."""
    try:
        return _edge(repo, commit, path, count).read_bytes()
    except OSError:
        return None


def store_edge(repo: str, commit: str, path: str, count: int, data: bytes) -> None:
    """Store the first or last bytes of a file; errors of the disk are ignored."""
    kept.write_bytes(_edge(repo, commit, path, count), data)


def load_digest(key: Sequence[int]) -> str | None:
    """Return the kept SHA-256 of a file on this disk; ``key`` begins with its device and its inode."""
    data = _read(_digest(key))
    return text(data.get("sha256")) if data.get("key") == [*key] else None


def store_digest(key: Sequence[int], sha256: str) -> None:
    """Keep the SHA-256 of a file, in place of the last one at its inode; errors of the disk are ignored."""
    kept.write(_digest(key), {"key": [*key], "sha256": sha256})


def load_text(sha: str) -> bytes | None:
    """Return the kept content of a file with this hash of a listing, or ``None``; it is checked again."""
    try:
        data = _shared(sha).read_bytes()
    except OSError:
        return None
    return data if has_hash(data, sha) else None


def store_text(sha: str, data: bytes) -> None:
    """Keep the content of a small file for other repositories; what has another hash is not kept."""
    if not has_hash(data, sha) or _shared(sha).exists():
        return
    kept.write_bytes(_shared(sha), data)


def has_hash(data: bytes, sha: str) -> bool:
    """Return whether data have the hash of a listing: git's of a small file, SHA-256 of a large one."""
    if len(sha) == SHA1:
        return git_hash(data) == sha
    return hashlib.sha256(data).hexdigest() == sha


def _shared(sha: str) -> Path:
    return kept.place("texts", sha[:2], sha)


def _digest(key: Sequence[int]) -> Path:
    return kept.place("digests", f"{key[0]}-{key[1]}.json")


def _tensors(repo: str, commit: str) -> Path:
    return _folder(repo) / "tensors" / f"{commit}.json"


def _edge(repo: str, commit: str, path: str, count: int) -> Path:
    name = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _folder(repo) / "edges" / f"{commit}{count:+d}-{name}"


def _folder(repo: str) -> Path:
    parts = urlsplit(endpoint.plain(endpoint.endpoint()))
    hub = re.sub(r"[^A-Za-z0-9.-]+", "_", parts.netloc + parts.path)
    return kept.place("hub", hub, repo.replace("/", "--"))


def _ref(repo: str, revision: str) -> Path:
    """Return the file of a revision, named by a digest: revisions may be long and have slashes."""
    return _folder(repo) / "refs" / f"{hashlib.sha256(revision.encode()).hexdigest()[:40]}.json"


def _read(path: Path) -> dict[str, Any]:
    data = kept.read(path)
    return data if isinstance(data, dict) else {}
