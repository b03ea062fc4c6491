"""``generation_config.json`` of the repositories that ``sampling_rows.json`` lists: Hub, cache or folder."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gen_defaults.place import load
from gen_defaults.sources.request import SourceAnswer, SourceRequest, rendered
from importer.errors import ImporterError
from importer.hub import resolve
from importer.hub.local import AllowedFolders
from importer.hub.reference import Reference, parse
from importer.hub.snapshot import UnreadReason, parse_object
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.sampling import FILE, KEYS
from importer.wheels.index import IndexFailure, day

NAME = "vendors"
TAKEN = ("do_sample", *(source_name for source_name, _ in KEYS))


def read(request: SourceRequest) -> SourceAnswer:
    """Return the values of each listed repository's file, with its commit and digest. Raises IndexFailure.

    Known values stay where a repository cannot be read, as a gated one, and where a folder lacks it.
    """
    path = request.place.upstream(NAME)
    before = load(path).get("repositories", {})
    listed = load(request.place.rows).get("vendors", [])
    rows = {repo: _row(request, repo, before.get(repo, {})) for repo in sorted(listed)}
    return SourceAnswer(
        {path: rendered({}, {"repositories": {repo: row for repo, row in rows.items() if row}})}
    )


def _row(request: SourceRequest, repo: str, known: Mapping[str, Any]) -> dict[str, Any]:
    if request.folder and not _folder(request.folder, repo).is_dir():
        return dict(known)
    try:
        places = AllowedFolders.below([request.folder] if request.folder else [])
        snapshot = resolve(_reference(request, repo, known), places)
        values = parse_object(snapshot.texts.get(FILE) or "{}", FILE, repo)
    except ImporterError as error:
        if known and not request.pinned:
            sys.stderr.write(f"vendors: {repo} keeps its values: {error}\n")
            return dict(known)
        raise IndexFailure(f"{repo} cannot be read: {error}") from None
    text = snapshot.texts.get(FILE)
    if not snapshot.has(FILE):
        return dict(known) if request.folder else {}
    if text is None:
        why = snapshot.unknown.get(FILE, Reason(UnreadReason.NOT_STORED))
        raise IndexFailure(f"{repo}: {FILE} cannot be read: {render(why)}")
    digest = hashlib.sha256(text.encode()).hexdigest()
    if request.pinned and digest != known.get("sha256"):
        raise IndexFailure(f"{FILE} of {repo} has another SHA-256 than the one it had: {digest}")
    same = known if digest == known.get("sha256") else {}
    return {
        "commit": snapshot.revision or same.get("commit"),
        "sha256": digest,
        "released": day(str(snapshot.info.get("modified", ""))) or same.get("released", ""),
        "values": {k: values[k] for k in TAKEN if k in values},
    }


def _reference(request: SourceRequest, repo: str, known: Mapping[str, Any]) -> Reference:
    if request.folder:
        folder = _folder(request.folder, repo)
        return Reference(str(folder), directory=folder)
    pinned = f"{repo}@{known['commit']}" if request.pinned and known.get("commit") else repo
    return parse(pinned)


def _folder(folder: Path, repo: str) -> Path:
    return folder / repo.replace("/", "__", 1)
