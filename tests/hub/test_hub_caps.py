"""How much of a listing, a folder and a header is read at most; what all refusals together mean."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from importer.document import store, template_file
from importer.errors import DocumentError
from importer.hub import cache, listing, local, resolve, safetensors
from importer.hub.cache import load as cached
from importer.hub.listing import ListingReason, MalformedListing
from importer.hub.local import ANYWHERE
from importer.hub.reference import parse
from importer.hub.snapshot import UnreadReason
from importer.reasons import Reason
from tests.hubserver import HubServer, Repo, isolate

SHA = "a" * 40
MIB = 1024 * 1024


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with HubServer({"a/b": Repo({"config.json": {"model_type": "toy"}, "README.md": "# b"})}) as running:
        isolate(monkeypatch, tmp_path, running.url)
        yield running


def answer(files: int, **more: Any) -> bytes:
    listed = [{"rfilename": f"{i:06}.bin", "size": 1} for i in range(files)]
    return json.dumps({"sha": SHA, "siblings": listed, **more}).encode()


def refused(body: bytes) -> ListingReason:
    with pytest.raises(MalformedListing) as caught:
        listing.parse(body, "a/b", None)
    assert isinstance(caught.value.reason.kind, ListingReason)
    return caught.value.reason.kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(lambda: answer(700_000), ListingReason.LARGE, marks=pytest.mark.slow),
        (lambda: answer(listing.MOST_FILES + 1), ListingReason.LARGE),
        (lambda: b"[" * 16 * MIB, ListingReason.LARGE),
        (lambda: b"{}," * (5 * MIB), ListingReason.LARGE),
        (lambda: b'{"a":' * 5000, ListingReason.NO_LIST),
        (lambda: b'{"sha":"' + b"9" * 15 * MIB + b'"}', ListingReason.COMMIT),
        (lambda: b'{"sha":' + b"9" * 15 * MIB + b"}", ListingReason.NO_LIST),
        (lambda: b" " * 16 * MIB, ListingReason.NO_LIST),
        (lambda: b"\xff" * 16 * MIB, ListingReason.NO_LIST),
        (lambda: b'"' + b"\\u0041" * (2 * MIB) + b'"', ListingReason.NO_LIST),
    ],
)  # fmt: skip
def test_a_listing_beyond_all_measure_is_a_sentence_at_once(
    body: Callable[[], bytes], kind: ListingReason
) -> None:
    data = body()
    assert refused(data) is kind


@pytest.mark.slow
def test_a_large_listing_takes_time_and_room_as_it_is_long() -> None:
    data = answer(listing.MOST_FILES, tags=["x"] * 5000)
    tracemalloc.start()
    try:
        found = listing.parse(data, "a/b", None)
        room = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(found.files), len(found.info["tags"])) == (listing.MOST_FILES, listing.MOST_TAGS)
    assert room < 150 * MIB


# Refusals


# The caches


def test_reasons_are_kept_with_a_commit(server: HubServer) -> None:
    server.repos["a/b"].commit({"config.json": {}, "added_tokens.json": b"\xff"})
    first = resolve(parse("a/b"), ANYWHERE)
    assert first.unknown["added_tokens.json"] == Reason(UnreadReason.NOT_TEXT)
    kept = cached("a/b", str(first.revision))
    assert kept is not None
    assert kept.unknown == {"added_tokens.json": Reason(UnreadReason.NOT_TEXT)}
    (file,) = Path(os.environ["IMPORTER_HOME"]).rglob(f"{first.revision}.json")
    data = json.loads(file.read_text())
    assert resolve(parse("a/b"), ANYWHERE, offline=True).texts == first.texts
    for broken in ({"a": "text"}, {"a": {}}, {"a": {"kind": "UnreadReason.none"}}, []):
        file.write_text(json.dumps({**data, "unknown": broken}))
        assert cached("a/b", str(first.revision)) is None


def test_pipes_and_huge_files_in_the_clients_cache_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    isolate(monkeypatch, tmp_path, "http://127.0.0.1:1")
    folder = cache.root() / "models--a--b"
    (folder / "refs").mkdir(parents=True)
    (folder / "trees").mkdir()
    os.mkfifo(folder / "refs" / "main")
    (folder / "refs" / "huge").touch()
    os.truncate(folder / "refs" / "huge", 2**40)
    os.mkfifo(folder / "trees" / f"{SHA}.json")
    assert cache.commit_of("a/b", "main") is None
    assert cache.commit_of("a/b", "huge") is None
    (tmp_path / "here").mkdir()
    assert cache.listing("a/b", SHA, tmp_path / "here") == ()


# Folders of this disk


def test_a_folder_of_endless_entries_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden files and folders count, too: a home directory has millions of them."""
    monkeypatch.setattr(local, "MOST_ENTRIES", 50)
    looked = 0
    scandir = os.scandir

    class Counting:
        def __init__(self, folder: Any) -> None:
            self._entries = scandir(folder)

        def __enter__(self) -> Counting:
            return self

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            nonlocal looked
            for entry in self._entries:
                looked += 1
                yield entry

    monkeypatch.setattr(os, "scandir", Counting)
    for number in range(100):
        (tmp_path / f".{number}").touch()
        (tmp_path / f"d{number}" / "e" / "f" / "g").mkdir(parents=True)
    local.listing(tmp_path)
    assert looked <= 60


def test_so_many_bytes_are_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "ALL_HASHED", 3 * MIB)
    for number in range(6):
        (tmp_path / f"m{number}.py").write_bytes(b"x" * MIB)
    (tmp_path / "a.py").touch()
    os.truncate(tmp_path / "a.py", 2**40)
    with local.opened(tmp_path) as folder:
        files = local.with_hashes(folder, local.listed(folder))
    assert sum(f.hash is not None for f in files) == 3
    assert next(f.hash for f in files if f.path == "a.py") is None


@pytest.mark.parametrize("place", ["/proc/self/fd", "/dev"])
def test_places_that_are_no_folders_of_files_are_read_in_time(place: str) -> None:
    resolve(parse(place), ANYWHERE)


def test_documents_and_templates_are_plain_files_of_a_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "huge.yaml").touch()
    os.truncate(tmp_path / "huge.yaml", 2**40)
    for name in ("pipe.yaml", "huge.yaml"):
        with pytest.raises(DocumentError) as caught:
            store.load(tmp_path / name)
        assert caught.value.kind == "invalid"
    os.mkfifo(tmp_path / "a.chat_template.jinja")
    assert not template_file.holds(tmp_path / "a.yaml", "x")
    with pytest.raises(DocumentError):
        template_file.check_free(None, tmp_path / "a.yaml", "x")


# Weights


@pytest.mark.parametrize(
    "header",
    [
        b"[" * safetensors.LONGEST, b"[]," * (5 * MIB), b'{"a":' * 3 * MIB,
        b'{"' + b"a" * 15 * MIB + b'":{}}', b'{"__metadata__":{' + b'"a":"b",' * (2 * MIB),
    ],
    ids=["brackets", "lists", "depth", "a name", "metadata"],
)  # fmt: skip
def test_a_header_beyond_all_measure_is_a_sentence_at_once(header: bytes) -> None:
    with pytest.raises(safetensors.MalformedHeader):
        safetensors.parse(header, None)


@pytest.mark.slow
def test_a_large_honest_header_is_read() -> None:
    names = {
        f"model.layers.{i}.mlp.experts.{i % 256}.down_proj.weight_scale_inv": {
            "dtype": "F32", "shape": [8, 8], "data_offsets": [i * 256, (i + 1) * 256],
        }
        for i in range(90_000)
    }  # fmt: skip
    assert len(safetensors.parse(json.dumps(names).encode(), None)) == 90_000
