"""Headers of safetensors files: read by range, side by side, once; whoever lies is refused in a sentence."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.errors import HubError, RepositoryError
from importer.hub import resolve, safetensors, tensor_headers
from importer.hub.local import ANYWHERE
from importer.hub.reference import parse
from importer.hub.safetensors import BITS, LONGEST, MalformedHeader, Tensor
from importer.hub.weights import fetch_weights
from tests.hubserver import Fault, HubServer, Repo, isolate

BF16 = {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}


def file(header: Mapping[str, Any] | bytes, held: int = 0, said: int | None = None) -> bytes:
    """A safetensors file with ``held`` bytes of weights whose header claims to be ``said`` bytes long."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if said is None else said) + text + bytes(held)


def shard(names: Mapping[str, int], padding: str = "") -> bytes:
    """A file with tensors of so many bytes each."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt", "padding": padding}}
    end = 0
    for name, size in names.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    return file(header, end)


def read(data: bytes) -> dict[str, Tensor]:
    length = safetensors.length(data, len(data))
    return safetensors.parse(data[8 : 8 + length], len(data))


SHARDS: dict[str, Any] = {
    "config.json": "{}",
    "tokenizer.json": '{"t": 1}',
    "model-00001-of-00002.safetensors": shard({"a": 70_000, "b": 5}),
    "model-00002-of-00002.safetensors": shard({"c": 30_000}, "x" * tensor_headers.FIRST),
}
FILES = [name for name in SHARDS if name.endswith("safetensors")]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with HubServer({"a/b": Repo(SHARDS)}) as running:
        isolate(monkeypatch, tmp_path, running.url)
        yield running


def test_two_files_side_by_side_and_the_rest_of_the_longer_header(server: HubServer) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    server.log.clear()
    server.together(2)
    found = tensor_headers.tensors(snapshot, FILES)
    assert {name: t.size for name, t in found.items()} == {"a": 70_000, "b": 5, "c": 30_000}
    assert found["c"] == Tensor("U8", (30_000,), 30_000)
    assert len(server.log) == 3
    assert {e.status for e in server.log} == {206}
    assert all(e.headers["Accept-Encoding"] == "identity" for e in server.log)
    short, long = (8 + int.from_bytes(SHARDS[name][:8], "little") for name in FILES)
    ends = {min(tensor_headers.FIRST, short + 70_005) - 1, tensor_headers.FIRST - 1, long - 1}
    assert {int(e.headers["Range"].rpartition("-")[2]) for e in server.log} == ends
    server.log.clear()
    assert tensor_headers.tensors(resolve(parse("a/b"), ANYWHERE, offline=True), FILES) == found
    assert server.log == []


def test_a_commit_that_moved_is_read_anew(server: HubServer) -> None:
    tensor_headers.tensors(resolve(parse("a/b"), ANYWHERE), FILES)
    server.repos["a/b"].commit({"config.json": "{}", FILES[0]: shard({"d": 9})})
    assert set(tensor_headers.tensors(resolve(parse("a/b"), ANYWHERE), FILES[:1])) == {"d"}


def test_what_is_on_this_disk_is_not_asked_for(server: HubServer, tmp_path: Path) -> None:
    where = fetch_weights(resolve(parse("a/b"), ANYWHERE), lambda *_: None)
    snapshot = resolve(parse("a/b"), ANYWHERE)
    server.log.clear()
    assert set(tensor_headers.tensors(snapshot, FILES)) == {"a", "b", "c"}
    assert set(tensor_headers.tensors(resolve(parse(str(where)), ANYWHERE), FILES)) == {"a", "b", "c"}
    assert server.log == []


def test_offline_and_never_read(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubError) as caught:
        tensor_headers.tensors(snapshot, FILES)
    assert caught.value.kind == "not-cached"


def test_a_damaged_cache_is_no_cache(server: HubServer) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    found = tensor_headers.tensors(snapshot, FILES)
    (kept,) = Path(os.environ["IMPORTER_HOME"]).rglob("tensors/*.json")
    for damage in ("{", '{"format": 1, "files": [], "tensors": {}}', kept.read_text().replace("U8", "3", 1)):
        kept.write_text(damage.replace('"3"', "3"))
        assert tensor_headers.tensors(snapshot, FILES).keys() == found.keys()


LIES = {
    "nothing": b"", "an empty header": file(b"", said=0),
    "longer than the file": file({"a": BF16}, 12, said=10**6),
    "longer than any file": file({"a": BF16}, 12, said=2**63), "not JSON": file(b"<html></html>"),
    "not UTF-8": file(b'{"\xff": 1}'), "nested without end": file(b'{"a":' * 5000),
    "a name twice": file(b'{"a": {}, "a": {}}'), "no description": file({"a": 3}),
    "an unknown dtype": file({"a": {**BF16, "dtype": "F7"}}, 12),
    "no shape": file({"a": {**BF16, "shape": None}}, 12),
    "a shape of truths": file({"a": {**BF16, "shape": [2, 3, True]}}, 12),
    "many dimensions": file({"a": {**BF16, "shape": [1] * 40 + [6]}}, 12),
    "huge dimensions": file({"a": {**BF16, "shape": [10**40, 0]}}, 12),
    "offsets that go back": file({"a": {**BF16, "data_offsets": [12, 0]}}, 12),
    "too few bytes for the shape": file({"a": {**BF16, "data_offsets": [0, 11]}}, 11),
    "overlapping": file({"a": BF16, "b": {**BF16, "data_offsets": [6, 18]}}, 18),
    "a gap": file({"a": BF16, "b": {**BF16, "data_offsets": [13, 25]}}, 25),
    "weights missing": file({"a": BF16}, 11), "weights left over": file({"a": BF16}, 13),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("place", ["hub", "disk"])
def test_hostile_headers(server: HubServer, tmp_path: Path, lie: str, place: str) -> None:
    data = LIES[lie]
    if place == "hub":
        server.repos["evil/one"] = Repo({"config.json": "{}", "model.safetensors": data})
    else:
        (tmp_path / "evil").mkdir()
        (tmp_path / "evil" / "model.safetensors").write_bytes(data)
    snapshot = resolve(parse("evil/one" if place == "hub" else str(tmp_path / "evil")), ANYWHERE)
    server.log.clear()
    with pytest.raises(RepositoryError) as caught:
        tensor_headers.tensors(snapshot, ["model.safetensors"])
    assert caught.value.kind == "bad-weights"
    assert len(caught.value.message) < 400
    assert len(server.log) <= 2


def test_a_header_larger_than_any_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors").open("wb") as large:
        large.write(struct.pack("<Q", LONGEST + 1))
        large.truncate(2 * LONGEST)
    with pytest.raises(RepositoryError, match="larger than importer reads"):
        tensor_headers.tensors(resolve(parse(str(tmp_path)), ANYWHERE), ["model.safetensors"])


def test_one_tensor_in_two_files(server: HubServer) -> None:
    twins = {f"model-0000{i}-of-00002.safetensors": shard({"a": 3}) for i in (1, 2)}
    server.repos["evil/two"] = Repo({"config.json": "{}", **twins})
    with pytest.raises(RepositoryError, match="'a' is in another file as well"):
        tensor_headers.tensors(resolve(parse("evil/two"), ANYWHERE), [*twins])


def test_a_link_out_of_the_directory_and_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "outside.safetensors").write_bytes(shard({"a": 3}))
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "model.safetensors").symlink_to(tmp_path / "outside.safetensors")
    os.mkfifo(inside / "pipe.safetensors")
    for name in ("model.safetensors", "pipe.safetensors", "absent.safetensors"):
        with pytest.raises(RepositoryError) as caught:
            tensor_headers.tensors(resolve(parse(str(inside)), ANYWHERE), [name])
        assert caught.value.kind == "unreadable"


def test_too_many_files(server: HubServer) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    server.log.clear()
    with pytest.raises(RepositoryError, match="more files"):
        tensor_headers.tensors(snapshot, [f"{n}.safetensors" for n in range(tensor_headers.MOST_FILES + 1)])
    assert server.log == []


WHOLE = shard({"a": 70_000, "b": 5})
PART = {"Content-Range": f"bytes 0-{len(WHOLE) - 1}/{len(WHOLE)}"}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("00001", 200, body=WHOLE), "bad-answer"),
        (Fault("00001", 206, body=WHOLE), "bad-answer"),
        (Fault("00001", 206, PART, WHOLE[:-1]), "bad-answer"),
        (Fault("00001", 206, {"Content-Range": f"bytes 0-9/{len(WHOLE) + 1}"}, WHOLE[:10]), "bad-answer"),
        (Fault("00001", 206, PART, WHOLE + bytes(9)), "bad-answer"),
        (Fault("00001", 403, {"X-Error-Code": "GatedRepo"}), "gated"),
        (Fault("00001", 302, {"Location": "http://169.254.169.254/latest"}), "refused-host"),
    ],
)  # fmt: skip
def test_answers_that_are_not_the_part_asked_for(server: HubServer, fault: Fault, kind: str) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    server.faults.append(Fault(fault.path, fault.status, fault.headers, fault.body, fault.cut))
    with pytest.raises(HubError) as caught:
        tensor_headers.tensors(snapshot, FILES)
    assert caught.value.kind == kind
    assert tensor_headers.tensors(snapshot, FILES), "nothing of it was kept"


def test_a_part_that_is_cut_off_is_asked_for_again(server: HubServer) -> None:
    snapshot = resolve(parse("a/b"), ANYWHERE)
    server.faults.append(Fault("00001", cut=True))
    assert set(tensor_headers.tensors(snapshot, FILES)) == {"a", "b", "c"}


TENSORS = st.lists(
    st.tuples(
        st.text(max_size=8).filter(lambda name: name != "__metadata__"),
        st.sampled_from([d for d, bits in BITS.items() if bits % 8 == 0]),
        st.lists(st.integers(0, 5), max_size=3),
    ),
    unique_by=lambda t: t[0],
    max_size=6,
)


@given(TENSORS, st.integers(0, 9))
def test_what_is_written_as_the_format_says_is_read(
    tensors: list[tuple[str, str, list[int]]], spaces: int
) -> None:
    header: dict[str, Any] = {}
    end = 0
    for name, dtype, shape in tensors:
        size = BITS[dtype] // 8
        for n in shape:
            size *= n
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    data = file(json.dumps(header).encode() + b" " * spaces, end)
    found = read(data)
    assert {n: (t.dtype, list(t.shape)) for n, t in found.items()} == {n: (d, s) for n, d, s in tensors}
    assert sum(t.size for t in found.values()) == end


def said(header: bytes, size: int | None) -> dict[str, Tensor] | str:
    try:
        return safetensors.parse(header, size)
    except MalformedHeader as error:
        return str(error)


PIECES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
KEYS = st.sampled_from(["a", "dtype", "shape", "data_offsets"])
JSON = st.recursive(
    PIECES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)
)


@given(st.binary(max_size=300) | JSON.map(lambda data: json.dumps({"a": data}).encode()), st.integers(0, 400))
def test_anything_is_tensors_or_a_sentence(header: bytes, size: int) -> None:
    for known in (size, None):
        found = said(header, known)
        assert found or found == {}
        if known is not None and isinstance(found, dict):
            assert sum(t.size for t in found.values()) == size - 8 - len(header)
