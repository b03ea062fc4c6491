"""The small files of the rows' models, read from the Hub at their commits, or a folder that has them."""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gen_defaults.truth import Truth, folder_of
from importer.errors import ImporterError
from importer.hub import local, resolver
from importer.hub.reference import parse

COMMITS = "commits.csv"  # beside the folders: model and commit of what lies in each


def has(repositories: Path, model_id: str) -> bool:
    """Return whether the model has files."""
    return (repositories / folder_of(model_id)).is_dir()


def fetch(truth: Path, repositories: Path, *, pins: bool = False) -> int:
    """Read what is missing, one model after the other, and go on behind one that cannot be had."""
    with truth.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if missing := {"model_id", "commit"} - {*(reader.fieldnames or ())}:
            raise ValueError(f"{truth} has no column {min(missing)}")
        rows = [*reader]
    repositories.mkdir(parents=True, exist_ok=True)
    commits, failed = _commits(repositories), 0
    for row in rows:
        model_id, commit = row["model_id"], row["commit"] or None
        if has(repositories, model_id) and commits.get(model_id) == (commit or commits.get(model_id)):
            continue
        try:
            snapshot = resolver.resolve(parse(model_id, commit))
        except ImporterError as error:
            failed += 1
            sys.stderr.write(f"field: {model_id}: {error}\n")
            continue
        for path, text in snapshot.texts.items():
            place = repositories / folder_of(model_id) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        commits[model_id] = str(snapshot.revision)
        _write(repositories / COMMITS, [{"model_id": m, "commit": c} for m, c in sorted(commits.items())])
    if pins:
        _write(truth, [{**row, "commit": row["commit"] or commits.get(row["model_id"], "")} for row in rows])
    present = sum(has(repositories, row["model_id"]) for row in rows)
    print(f"{present} of {len(rows)} models are in {repositories}")
    return 1 if failed else 0


def described(repositories: Path, rows: Sequence[Truth]) -> Mapping[str, str]:
    """Return what the answers rest on: the number of known commits, and one digest over all files."""
    digest = hashlib.sha256()
    for truth in rows:
        folder = repositories / folder_of(truth.model_id)
        for file in sorted(local.listing(folder), key=lambda file: file.path):
            digest.update(f"{folder.name}/{file.path}\0".encode() + (folder / file.path).read_bytes())
    known = _commits(repositories)
    pinned = sum(truth.model_id in known for truth in rows)
    return {"inputs": f"{len(rows)} models, {pinned} at known commits", "sha256": digest.hexdigest()}


def _commits(repositories: Path) -> dict[str, str]:
    try:
        with (repositories / COMMITS).open(encoding="utf-8", newline="") as file:
            return {row["model_id"]: row["commit"] for row in csv.DictReader(file)}
    except FileNotFoundError:
        return {}


def _write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
