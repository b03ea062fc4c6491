"""Weights: found only when whole and of the very commit, fetched without pickle and without code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import get_session

from importer.errors import DocumentError, EngineError, HubError
from importer.hub import client, listing, local, resolve, weights
from importer.hub.local import ANYWHERE
from importer.hub.reference import parse
from importer.hub.weights import fetch_weights, locate_weights, weights_size
from tests.hubserver import Fault, HubServer, Repo, isolate

FILES: dict[str, str | bytes] = {
    "config.json": "{}", "chat_template.jinja": "x", "tokenizer.json": '{"t": 1}',
    "model-00001-of-00002.safetensors": b"\1" * 70_000, "model-00002-of-00002.safetensors": b"\2" * 30_000,
    "consolidated.safetensors": b"\3" * 100_000, "original/model.safetensors": b"\4" * 100_000,
    "pytorch_model.bin": b"\5", "training_args.pt": b"\6", "modeling_toy.py": "raise SystemExit",
}  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with HubServer({"a/b": Repo(FILES)}) as running:
        isolate(monkeypatch, tmp_path, running.url)
        yield running


def test_fetching_what_an_engine_needs_and_no_more(server: HubServer) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    assert weights_size(snapshot) == 100_000
    assert locate_weights(snapshot) is None
    told: list[tuple[int, int]] = []
    where = fetch_weights(snapshot, lambda done, total: told.append((done, total)))
    assert {p.name for p in where.iterdir()} == {
        "config.json", "chat_template.jinja", "tokenizer.json",
        "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
    }  # fmt: skip
    whole = 100_000 + len("{}") + len("x") + len('{"t": 1}')
    assert max(told) == (whole, whole)
    assert all(f"/resolve/{snapshot.revision}/" in p for p in server.paths() if "/resolve/" in p)
    assert locate_weights(snapshot) == where
    assert locate_weights(resolve(parse("a/b"), ANYWHERE, offline=True)) == where

    server.log.clear()
    assert fetch_weights(snapshot, lambda *_: None) == where
    assert server.log == []


def test_a_cache_may_lie_behind_a_link(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the cache or of a repository in it; what the cache links to are its blobs."""
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to("far")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "near"))
    snapshot = resolve(parse("a/b"), ANYWHERE)
    where = fetch_weights(snapshot, lambda *_: None)
    repository = tmp_path / "far" / "hub" / "models--a--b"
    assert where.parents[1] == repository
    assert (where / "config.json").is_symlink()
    repository.rename(tmp_path / "moved")
    repository.symlink_to(tmp_path / "moved")
    again = resolve(parse("a/b"), ANYWHERE, offline=True)
    assert locate_weights(again) == again.directory == tmp_path / "moved" / "snapshots" / where.name
    assert {file.path: file.size for file in local.listing(again.directory)} == {
        path.name: path.stat().st_size for path in where.iterdir()
    }


def test_weights_of_another_commit_do_not_count(server: HubServer) -> None:
    fetch_weights(resolve(parse("a/b"), ANYWHERE), lambda *_: None)
    server.repos["a/b"].commit({**FILES, "config.json": '{"new": 1}'})
    snapshot = resolve(parse("a/b"), ANYWHERE)
    assert snapshot.directory is None
    assert locate_weights(snapshot) is None


def test_half_a_file_does_not_count(server: HubServer) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    where = fetch_weights(snapshot, lambda *_: None)
    shard = (where / "model-00002-of-00002.safetensors").resolve()
    shard.write_bytes(b"\2" * 100)
    assert locate_weights(snapshot) is None
    shard.unlink()
    assert locate_weights(snapshot) is None


def test_a_local_directory(tmp_path: Path) -> None:
    def here() -> Path | None:
        return locate_weights(resolve(parse(str(tmp_path)), ANYWHERE))

    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    assert here() is None, "pickle is not weights"
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"x")
    assert here() is None, "a part is missing"
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"x")
    assert here() == tmp_path.resolve()
    (tmp_path / "tokenizer.json").rename(tmp_path / "other.txt")
    assert here() is None, "no tokenizer"
    (tmp_path / "tekken.json").write_text("{}")
    assert here() == tmp_path.resolve()
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    (tmp_path / "model-00002-of-00002.safetensors").symlink_to("nowhere")
    assert here() is None, "a link to nothing"


def test_nothing_to_fetch(server: HubServer) -> None:
    server.repos["a/c"] = Repo({"config.json": "{}", "pytorch_model.bin": b"x"})
    snapshot = resolve(parse("a/c"), ANYWHERE)
    assert weights_size(snapshot) is None
    with pytest.raises(EngineError) as caught:
        fetch_weights(snapshot, lambda *_: None)
    assert caught.value.kind == "no-weights"


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (403, {"X-Error-Code": "GatedRepo"}, "gated"),
        (401, {"X-Error-Code": "RepoNotFound"}, "private"),
        (404, {"X-Error-Code": "RevisionNotFound"}, "revision-not-found"),
        (404, {"X-Error-Code": "EntryNotFound"}, "missing-file"),
    ],
)
def test_refused_downloads(server: HubServer, status: int, headers: dict[str, str], kind: str) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    server.faults.append(Fault("safetensors", status, headers, times=99))
    with pytest.raises(HubError) as caught:
        fetch_weights(snapshot, lambda *_: None)
    assert caught.value.kind == kind
    assert kind != "missing-file" or caught.value.details["file"] in {f.path for f in snapshot.files}


def test_offline_nothing_is_fetched(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    server.log.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubError) as caught:
        fetch_weights(snapshot, lambda *_: None)
    assert (caught.value.kind, server.log) == ("not-cached", [])


def test_a_download_that_breaks_off(server: HubServer) -> None:
    server.faults.append(Fault("/", cut=True))
    with pytest.raises(client.http_error()) as broken:
        get_session().get(f"{server.url}/api/models/a/b")
    error = weights._failure(broken.value, "a/b", "f" * 40)
    assert (error.kind, error.details["host"]) == ("network", "127.0.0.1")


def test_a_download_names_the_host_that_failed(server: HubServer) -> None:
    """The Hub sends for large files to another host: by a redirect, or within its transfer library."""
    with pytest.raises(client.http_error()) as broken:
        get_session().get("http://storage.invalid/bridge/abc?token=secret")
    moved = "Data processing error: error sending request for url (https://cas.invalid/v1/reconstructions/0)"
    wrapped = OSError("not found on this disk")
    wrapped.__cause__ = broken.value
    for error, host in (
        (broken.value, "storage.invalid"), (wrapped, "storage.invalid"),
        (RuntimeError(moved), "cas.invalid"), (RuntimeError("unknown"), "127.0.0.1"),
    ):  # fmt: skip
        failed = weights._failure(error, "a/b", "f" * 40)
        assert (failed.kind, failed.details["host"]) == ("network", host)
        assert "secret" not in failed.message


def test_a_refusal_of_a_storage_host_is_no_word_of_the_hub() -> None:
    """It knows neither tokens nor repositories: an expired address is not a private repository."""
    for status, kind in ((403, "storage"), (401, "storage"), (404, "missing-file")):
        answer = client.HubResponse("https://storage.invalid/x?sig=1", status, {}, b"", had_token=False)
        error = listing.refusal(answer, "a/b", "f" * 40, "model.safetensors")
        assert error.kind == kind
        assert kind != "storage" or error.message.startswith("storage.invalid, to which the Hub sends")


def test_a_cache_that_cannot_be_written(server: HubServer) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    Path(os.environ["HF_HOME"]).write_text("a file where a folder belongs")
    with pytest.raises(DocumentError) as caught:
        fetch_weights(snapshot, lambda *_: None)
    assert caught.value.kind == "cannot-write"
