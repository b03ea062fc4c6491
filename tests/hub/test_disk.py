"""Paths of this disk: a folder, a file of a model, and the folders of a Hub client's cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer.errors import RepositoryError, ServiceError, UsageError
from importer.hub import resolve
from importer.hub.local import ANYWHERE, AllowedFolders
from importer.hub.reference import parse
from importer.hub.snapshot import JsonReason, Snapshot
from importer.hub.weights import fetch_weights

COMMIT, OTHER = "a" * 40, "b" * 40
FILES = {"config.json": json.dumps({"model_type": "llama"}), "model.safetensors": "x", "tokenizer.json": "{}"}


def read(path: Path, places: AllowedFolders = ANYWHERE) -> Snapshot:
    return resolve(parse(str(path)), places)


def cache(root: Path, *commits: str, main: str | None = None) -> Path:
    """A repository in a Hub client's cache, each file a link to its blob."""
    home = root / "models--acme--Toy-1B"
    (home / "blobs").mkdir(parents=True)
    for commit in commits:
        (home / "snapshots" / commit).mkdir(parents=True)
        for number, (name, text) in enumerate(FILES.items()):
            blob = f"{number:040x}"
            (home / "blobs" / blob).write_text(text)
            (home / "snapshots" / commit / name).symlink_to(f"../../blobs/{blob}")
    if main is not None:
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text(main)
    return home


def test_the_cache_of_a_client_has_the_id_and_the_commit_in_its_paths(tmp_path: Path) -> None:
    home = cache(tmp_path, COMMIT, OTHER, main=COMMIT)
    for path, commit in (
        (home, COMMIT),
        (home / "snapshots", COMMIT),
        (home / "snapshots" / OTHER, OTHER),
        (home / "snapshots" / OTHER / "model.safetensors", OTHER),
    ):
        found = read(path)
        assert (found.model_id, found.revision) == ("acme/Toy-1B", commit)
        assert found.json("config.json") == {"model_type": "llama"}
        assert fetch_weights(found, lambda *_: None) == home / "snapshots" / commit


def test_without_main_a_cache_of_one_commit_is_that_commit(tmp_path: Path) -> None:
    assert read(cache(tmp_path / "one", COMMIT)).revision == COMMIT
    several = read(cache(tmp_path / "two", COMMIT, OTHER))
    assert (several.model_id, several.directory) == (None, tmp_path / "two" / "models--acme--Toy-1B")


def test_a_folder_that_only_looks_like_a_cache_is_a_folder(tmp_path: Path) -> None:
    for name in ("models--acme", "models--acme--", "models--acme--Toy", "models--a--b/snapshots/main"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        assert (read(folder).model_id, read(folder).directory) == (None, folder)


def test_a_link_that_was_copied_as_a_text_is_named(tmp_path: Path) -> None:
    home = cache(tmp_path, COMMIT)
    config = home / "snapshots" / COMMIT / "config.json"
    config.unlink()
    config.write_text("../../blobs/" + "0" * 40)
    with pytest.raises(RepositoryError) as caught:
        read(home).json("config.json")
    assert caught.value.details["problem"].kind is JsonReason.LINK  # type: ignore[attr-defined]


def test_a_file_of_a_model_names_its_folder(tmp_path: Path) -> None:
    for name, text in (FILES | {"pytorch_model.bin.index.json": "{}", "notes.md": "x"}).items():
        (tmp_path / name).write_text(text)
        assert read(tmp_path / name).directory == tmp_path
    (tmp_path / "toy-Q4_K_M.gguf").write_bytes(b"GGUF")
    with pytest.raises(RepositoryError) as refused:
        read(tmp_path / "toy-Q4_K_M.gguf")
    assert refused.value.kind == "gguf-file"


def test_another_file_and_a_path_to_nothing_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "toy.yaml").write_text("name: toy")
    for name, kind in (("toy.yaml", "no-model-file"), ("gone.safetensors", "no-such-directory")):
        with pytest.raises(UsageError) as caught:
            read(tmp_path / name)
        assert caught.value.kind == kind


def test_files_and_caches_outside_of_the_allowed_folders_are_refused_alike(tmp_path: Path) -> None:
    """Neither a file nor a link in the cache tells a client of the service what lies elsewhere."""
    home, places = cache(tmp_path / "away", COMMIT, main=COMMIT), AllowedFolders.below([tmp_path / "here"])
    inside = tmp_path / "here" / "models--acme--Toy-1B"
    (inside / "snapshots").mkdir(parents=True)
    (inside / "snapshots" / COMMIT).symlink_to(home / "snapshots" / COMMIT)
    there = home / "snapshots" / COMMIT
    for path in (home, there / "config.json", there / "gone", inside):
        with pytest.raises(ServiceError) as caught:
            read(path, places)
        assert caught.value.kind == "no-directories"


def test_a_commit_that_leads_out_of_its_cache_is_not_read(tmp_path: Path) -> None:
    """A folder from elsewhere shows no file beside it, and no path of its list leads out."""
    away, home = tmp_path / "away", cache(tmp_path, OTHER)
    away.mkdir()
    (away / "config.json").write_text('{"model_type": "secret"}')
    (home / "snapshots" / COMMIT).symlink_to(away)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)
    found = read(home)
    assert (found.model_id, found.directory) == (None, home)
    assert "config.json" not in found.texts
    (home / "refs" / "main").write_text(OTHER)
    (home / "trees").mkdir()
    paths = ("config.json", "../../../away/config.json", "/etc/passwd", "a/../b", "line\nbreak.json")
    (home / "trees" / f"{OTHER}.json").write_text(json.dumps({"files": {p: {"size": 1} for p in paths}}))
    assert [f.path for f in read(home).files] == ["config.json"]
