"""Resolving with the real Hub client against a local Hub: traffic, cache, offline, hostile listings."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from importer.errors import HubError, RepositoryError
from importer.hub import resolve
from importer.hub.local import ANYWHERE
from importer.hub.reference import parse
from importer.hub.snapshot import UnreadReason
from importer.reasons import Reason
from tests.hubserver import MODIFIED, Content, Fault, HubServer, Repo, isolate
from tests.waiting import PATIENCE

FILES: dict[str, Content] = {
    "config.json": {"model_type": "toy"},
    "chat_template.jinja": "{{ messages }}",
    "tokenizer_config.json": {"eos_token": "</s>"},
    "generation_config.json": {"temperature": 0},
    "special_tokens_map.json": {"pad_token": "<pad>"},
    "added_tokens.json": {},
    "preprocessor_config.json": {},
    "README.md": "# toy",
    "tokenizer.json": "{}",
    "model.safetensors": b"\0" * 1000,
    "pytorch_model.bin": b"\x80",
    "modeling_toy.py": "raise SystemExit",
}
INFO = {
    "pipeline_tag": "text-generation", "library_name": "transformers", "tags": ["conversational"],
    "cardData": {"base_model": "big/model"}, "config": {"architectures": ["ToyForCausalLM"]},
    "safetensors": {"total": 250, "parameters": {"F32": 250}},
}  # fmt: skip
SIX = {
    "config.json", "chat_template.jinja", "tokenizer_config.json", "generation_config.json",
    "added_tokens.json", "special_tokens_map.json",
}  # fmt: skip
READ = {*SIX, "README.md"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with HubServer({"Org/Toy": Repo(FILES, info=INFO)}, renamed={"old/name": "Org/Toy"}) as running:
        isolate(monkeypatch, tmp_path, running.url)
        yield running


def test_two_round_trips_then_one_call_then_none(server: HubServer) -> None:
    server.together(len(READ))
    first = resolve(parse("Org/Toy"), ANYWHERE)
    sha = server.repos["Org/Toy"].sha
    asked = server.paths()
    assert asked[0] == "/api/models/Org/Toy?blobs=true"
    assert set(asked[1:]) == {f"/Org/Toy/resolve/{sha}/{name}" for name in READ}
    assert len(asked) == 8
    assert {e.method for e in server.log} == {"GET"}

    server.log.clear()
    assert resolve(parse("Org/Toy"), ANYWHERE) == first
    assert server.paths() == ["/api/models/Org/Toy?blobs=true"]

    server.log.clear()
    assert resolve(parse("Org/Toy"), ANYWHERE, offline=True) == first
    assert resolve(parse(f"Org/Toy@{sha}"), ANYWHERE, offline=True).texts == first.texts
    assert server.log == []


def test_what_a_snapshot_says(server: HubServer) -> None:
    snapshot = resolve(parse("hf://Org/Toy@main"), ANYWHERE)
    assert (snapshot.reference, snapshot.model_id) == ("hf://Org/Toy@main", "Org/Toy")
    assert snapshot.revision == server.repos["Org/Toy"].sha
    assert set(snapshot.texts) == READ
    assert snapshot.json("generation_config.json") == {"temperature": 0}
    assert {f.path: f.size for f in snapshot.files}["model.safetensors"] == 1000
    assert snapshot.info == {
        "pipeline_tag": "text-generation", "library_name": "transformers", "tags": ["conversational"],
        "card": {"base_model": "big/model"}, "base_models": ["big/model"],
        "config": {"architectures": ["ToyForCausalLM"]}, "safetensors_total": 250,
        "safetensors": {"F32": 250}, "gated": False, "modified": MODIFIED,
    }  # fmt: skip
    unread = Reason(UnreadReason.NOT_AMONG, most=6)
    assert snapshot.unknown == {"preprocessor_config.json": unread}
    assert snapshot.directory is None


def test_the_card_is_read_beside_the_six(server: HubServer) -> None:
    names = ("config.json", "generation_config.json", "README.md", "model.safetensors")
    few = {name: FILES[name] for name in names}
    server.repos["Org/Few"] = Repo(few, info=INFO)
    server.together(3)
    snapshot = resolve(parse("Org/Few"), ANYWHERE)
    assert snapshot.texts["README.md"] == "# toy"
    assert "README.md" not in snapshot.unknown
    assert len(server.paths()) == 4
    server.together(0)
    server.repos["Org/Few"].commit(few | {"README.md": "x" * (1024 * 1024 + 1)})
    assert resolve(parse("Org/Few"), ANYWHERE).unknown["README.md"].kind is UnreadReason.TOO_LARGE
    server.repos["Org/Few"].commit(few | {"README.md": b"\xff\xfe"})
    found = resolve(parse("Org/Few"), ANYWHERE).unknown["README.md"]
    assert found.kind is UnreadReason.NOT_TEXT, "an optional file stops nothing"


def test_a_new_commit_is_read_and_an_old_one_stays_reachable(server: HubServer) -> None:
    repo = server.repos["Org/Toy"]
    old = resolve(parse("Org/Toy"), ANYWHERE)
    repo.commit({**FILES, "config.json": {"model_type": "new"}})
    new = resolve(parse("Org/Toy"), ANYWHERE)
    assert (new.revision, new.json("config.json")) == (repo.sha, {"model_type": "new"})
    pinned = f"Org/Toy@{old.revision}"
    assert resolve(parse(pinned), ANYWHERE) == replace(old, reference=pinned)
    assert resolve(parse("Org/Toy"), ANYWHERE, offline=True) == new


def test_revisions_with_slashes(server: HubServer) -> None:
    sha = server.repos["Org/Toy"].commit({"config.json": {"model_type": "pr"}}, "refs/pr/1")
    assert resolve(parse("Org/Toy@refs/pr/1"), ANYWHERE).revision == sha
    assert resolve(parse(f"{server.url}/Org/Toy/tree/refs%2Fpr%2F1"), ANYWHERE).revision == sha
    assert resolve(parse("Org/Toy@refs/pr/1"), ANYWHERE, offline=True).revision == sha
    assert server.paths()[0] == "/api/models/Org/Toy/revision/refs%2Fpr%2F1?blobs=true"


def test_a_renamed_repository_has_its_new_name(server: HubServer) -> None:
    snapshot = resolve(parse("old/name"), ANYWHERE)
    assert snapshot.model_id == "Org/Toy"
    assert all(p.startswith("/Org/Toy/resolve/") for p in server.paths()[2:])
    assert resolve(parse("old/name"), ANYWHERE, offline=True) == snapshot


def test_little_is_needed(server: HubServer) -> None:
    server.repos["a/b"] = Repo({"params.json": {"dim": 8}, "tekken.json": "{}"})
    snapshot = resolve(parse("a/b"), ANYWHERE)
    assert snapshot.texts == {"params.json": '{"dim": 8}'}
    assert snapshot.has("tekken.json")
    absent = ("config.json", "tokenizer_config.json", "generation_config.json")
    assert snapshot.unknown == dict.fromkeys(absent, Reason(UnreadReason.NOT_LISTED))


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "private"), (403, "forbidden"), (404, "missing-file"), (451, "bad-answer")]
)
@pytest.mark.parametrize("name", ["config.json", "README.md"])
def test_a_listed_file_that_is_not_sent_is_an_error_and_never_kept(
    server: HubServer, name: str, status: int, kind: str
) -> None:
    """A document without it would rest on an absence that is none; a mirror may recover."""
    server.faults.append(Fault(name, status, {"X-Error-Code": "EntryNotFound"}))
    with pytest.raises(HubError) as caught:
        resolve(parse("Org/Toy"), ANYWHERE)
    assert caught.value.kind == kind
    assert ("Org/Toy" if status == 401 else name) in caught.value.message
    assert name in resolve(parse("Org/Toy"), ANYWHERE).texts


def test_the_hub_clients_own_cache_is_read(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import snapshot_download

    where = snapshot_download("Org/Toy", endpoint=server.url, cache_dir=Path(os.environ["HF_HOME"]) / "hub")
    server.log.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    snapshot = resolve(parse("Org/Toy"), ANYWHERE)
    assert server.log == []
    assert snapshot.revision == server.repos["Org/Toy"].sha
    assert snapshot.texts["chat_template.jinja"] == "{{ messages }}"
    assert snapshot.directory == Path(where)
    assert snapshot.info == {}
    assert snapshot.texts["README.md"] == "# toy"
    assert resolve(parse(f"Org/Toy@{snapshot.revision}"), ANYWHERE).texts == snapshot.texts

    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert resolve(parse("Org/Toy"), ANYWHERE).info["pipeline_tag"] == "text-generation"
    assert server.paths() == ["/api/models/Org/Toy?blobs=true"], "the client's copies of this commit are good"


def test_offline_without_a_cache(server: HubServer) -> None:
    for text in ("Org/Toy", "Org/Toy@" + "a" * 40, "Org/Toy@refs/pr/1"):
        with pytest.raises(HubError) as caught:
            resolve(parse(text), ANYWHERE, offline=True)
        assert caught.value.kind == "not-cached"
        assert repr(text.partition("@")[2] or "main") in caught.value.message
    assert server.log == []


def test_offline_a_listed_file_that_is_not_on_this_disk_is_named(server: HubServer) -> None:
    """The Hub client's cache of an engine may hold a part of the files; its list of them has all."""
    from huggingface_hub import snapshot_download

    folder = snapshot_download("Org/Toy", endpoint=server.url, cache_dir=Path(os.environ["HF_HOME"]) / "hub")
    Path(folder, "chat_template.jinja").unlink()
    assert (Path(folder).parents[1] / "trees").is_dir(), "the client keeps its list"
    with pytest.raises(HubError, match=r"lacks chat_template\.jinja of Org/Toy"):
        resolve(parse("Org/Toy"), ANYWHERE, offline=True)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": 1}', b"\xff"])
def test_a_damaged_cache_is_read_anew(server: HubServer, damage: bytes) -> None:
    snapshot = resolve(parse("Org/Toy"), ANYWHERE)
    for path in Path(os.environ["IMPORTER_HOME"]).rglob("*.json"):
        path.write_bytes(damage)
    with pytest.raises(HubError):
        resolve(parse("Org/Toy"), ANYWHERE, offline=True)
    assert resolve(parse("Org/Toy"), ANYWHERE) == snapshot
    assert resolve(parse("Org/Toy"), ANYWHERE, offline=True) == snapshot


def test_a_cache_that_cannot_be_written_is_done_without(server: HubServer) -> None:
    Path(os.environ["IMPORTER_HOME"]).write_text("a file where a folder belongs")
    assert set(resolve(parse("Org/Toy"), ANYWHERE).texts) == READ


@pytest.mark.slow
def test_processes_share_the_cache(server: HubServer) -> None:
    code = (
        "from importer.hub import local, reference, resolve; "
        "print(resolve(reference.parse('Org/Toy'), local.ANYWHERE).revision)"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {process.communicate(timeout=PATIENCE)[0].strip() for process in running}
    assert answers == {server.repos["Org/Toy"].sha}
    kept = [p.name for p in (Path(os.environ["IMPORTER_HOME"]) / "cache" / "hub").rglob("*") if p.is_file()]
    assert len(kept) == 2, "one commit, one revision, nothing half-written"
    assert resolve(parse("Org/Toy"), ANYWHERE, offline=True).revision == server.repos["Org/Toy"].sha


def test_names_in_a_listing_cannot_leave_their_place(server: HubServer) -> None:
    names = [
        "../x", "/etc/passwd", "a/../../b", "a//b", "..", ".", "a\\b", "a\0b", "a/", "", "x" * 2000, 7, None,
    ]  # fmt: skip
    siblings: list[object] = [{"rfilename": n} for n in names] + [{}, "x", None]
    good = [
        {"rfilename": "config.json"},
        {"rfilename": "sub/..hidden/f.txt", "size": -1},
        {"rfilename": "n", "size": True},
    ]
    server.repos["Org/Toy"].info["siblings"] = siblings + good
    snapshot = resolve(parse("Org/Toy"), ANYWHERE)
    assert [(f.path, f.size) for f in snapshot.files] == [
        ("config.json", None), ("n", None), ("sub/..hidden/f.txt", None),
    ]  # fmt: skip
    assert set(snapshot.texts) == {"config.json"}


def test_words_of_the_wrong_type_are_left_out(server: HubServer) -> None:
    server.repos["Org/Toy"].info = {
        "id": "../../etc", "tags": [1, "ok"], "pipeline_tag": ["x"], "cardData": [], "config": "x",
        "safetensors": {"total": True}, "gated": [1],
    }  # fmt: skip
    snapshot = resolve(parse("Org/Toy"), ANYWHERE)
    assert snapshot.model_id == "Org/Toy"
    assert snapshot.info == {"tags": ["ok"], "card": {}, "base_models": [], "modified": MODIFIED}


def test_listed_sizes_are_checked_before_a_request(server: HubServer) -> None:
    server.repos["a/b"] = Repo({"config.json": {}, "model.safetensors.index.json": b" " * (16 << 20) + b"{}"})
    snapshot = resolve(parse("a/b"), ANYWHERE)
    assert snapshot.unknown["model.safetensors.index.json"] == Reason(UnreadReason.TOO_LARGE, limit="16 MiB")
    assert len(server.log) == 2
    server.repos["a/c"] = Repo({"config.json": b" " * (2 << 20) + b"{}"})
    with pytest.raises(RepositoryError) as caught:
        resolve(parse("a/c"), ANYWHERE)
    assert (caught.value.kind, caught.value.details["limit"]) == ("too-large", "2 MiB")
    assert len(server.log) == 3


def test_bytes_are_counted_while_they_arrive(server: HubServer) -> None:
    server.repos["Org/Toy"].info["siblings"] = [{"rfilename": "config.json"}]
    bomb = gzip.compress(b" " * (20 << 20))
    server.faults.append(Fault("config.json", 200, {"Content-Encoding": "gzip"}, bomb))
    with pytest.raises(RepositoryError) as caught:
        resolve(parse("Org/Toy"), ANYWHERE)
    assert caught.value.kind == "too-large"


def test_what_is_no_text(server: HubServer) -> None:
    server.repos["a/b"] = Repo({"config.json": {}, "added_tokens.json": b"\xff\xfe"})
    assert resolve(parse("a/b"), ANYWHERE).unknown["added_tokens.json"] == Reason(UnreadReason.NOT_TEXT)
    server.repos["a/c"] = Repo({"config.json": b"\xff\xfe{}"})
    with pytest.raises(RepositoryError) as caught:
        resolve(parse("a/c"), ANYWHERE)
    assert caught.value.kind == "not-text"


def test_json_is_parsed_with_care(server: HubServer) -> None:
    """Engines pass over a generation_config.json that is no JSON."""
    server.repos["a/b"] = Repo({"config.json": "[" * 100_000, "generation_config.json": "{oops"})
    snapshot = resolve(parse("a/b"), ANYWHERE)
    with pytest.raises(RepositoryError) as caught:
        snapshot.json("config.json")
    assert caught.value.kind == "broken-json"
    assert not snapshot.json("generation_config.json")


def test_half_a_surrogate_pair_can_be_written(server: HubServer) -> None:
    server.repos["a/b"] = Repo({"config.json": r'{"a": "\ud83d", "b": "\ud83d\ude00", "c": "\\ud800"}'})
    read = resolve(parse("a/b"), ANYWHERE).json("config.json")
    assert read == {"a": "?", "b": "\U0001f600", "c": "\\ud800"}


def test_an_endpoint_with_a_path(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror may live below a path; every request stays there."""
    monkeypatch.setenv("HF_ENDPOINT", f"{server.url}/mirror")
    body = json.dumps({"sha": "a" * 40, "siblings": [{"rfilename": "config.json"}]}).encode()
    server.faults += [Fault("/mirror/api/models/a/b", 200, body=body), Fault("/mirror/a/b/resolve/", 200)]
    assert resolve(parse(f"{server.url}/mirror/a/b/tree/main"), ANYWHERE).texts == {"config.json": "{}"}
