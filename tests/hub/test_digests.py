"""Digests of weights: the Hub's own, else each file read once, and again as soon as it is another one."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from importer.demo import MODEL
from importer.hub import digests, local
from importer.hub.snapshot import RepoFile, Snapshot

WEIGHTS = "model.safetensors"


@pytest.fixture
def model(tmp_path: Path, importer_home: Path) -> Path:
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_hub_s_digests_need_no_file() -> None:
    files = (
        RepoFile(WEIGHTS, 9, "b" * 64),
        RepoFile("config.json", 9, "a" * 40),
        RepoFile("x.bin", 9, "c" * 64),
    )
    assert digests.imported(Snapshot("acme/base", "acme/base", "c" * 40, files, {})) == {WEIGHTS: "b" * 64}
    unknown = Snapshot("acme/base", "acme/base", "c" * 40, (RepoFile(WEIGHTS, 9),), {})
    assert digests.imported(unknown) == {}


def test_a_folder_is_read_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = local.resolve(str(model), model)
    expected = {WEIGHTS: sha256(model / WEIGHTS)}
    assert digests.known(model, [WEIGHTS, "absent"]) == {WEIGHTS: None}
    assert digests.imported(snapshot) == expected
    with monkeypatch.context() as patch:
        patch.setattr(digests, "CHUNK", "a second read would fail")
        assert digests.imported(snapshot) == expected
    assert digests.known(model, [WEIGHTS]) == expected


def test_a_file_that_was_written_is_read_again(model: Path) -> None:
    before = digests.served(model, {})
    status = (model / WEIGHTS).stat()
    data = bytearray((model / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (model / WEIGHTS).write_bytes(data)
    os.utime(model / WEIGHTS, ns=(status.st_atime_ns, status.st_mtime_ns))  # the same size and time
    assert digests.known(model, [WEIGHTS]) == {WEIGHTS: None}
    after = digests.served(model, {})
    assert after == {WEIGHTS: sha256(model / WEIGHTS)} != before


def test_a_kept_digest_of_another_file_does_not_count(model: Path, importer_home: Path) -> None:
    digests.served(model, {})
    (entry,) = (importer_home / "cache" / "digests").iterdir()
    entry.write_text("{")
    assert digests.known(model, [WEIGHTS]) == {WEIGHTS: None}
    assert digests.served(model, {}) == {WEIGHTS: sha256(model / WEIGHTS)}


def test_links_out_of_the_folder_have_no_digest(model: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.safetensors").write_bytes(b"x")
    (model / "other.safetensors").symlink_to(tmp_path / "secret.safetensors")
    assert set(digests.served(model, {})) == {WEIGHTS}


def test_long_work_is_shown(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    digests.served(model, {}, steps.append)
    assert not steps
    monkeypatch.setattr(digests, "LONG", 1)
    monkeypatch.setattr(digests, "CHUNK", 2**16)
    shutil.copy(model / WEIGHTS, model / "second.safetensors")
    digests.served(model, {}, steps.append)
    assert steps[-1] == "hashed 0.00 of 0.00 GB of weights"
