"""Repositories that the Hub lists as quantised from another: one request, bounded, kept, never an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from importer import config
from importer.hub import related_listing
from importer.hub.client import Deadline
from importer.hub.related import MOST, MOST_VALUES, TAG, RelatedReason, parse
from importer.hub.related_listing import LONGEST, quantised_from
from tests.hubserver import Fault, HubServer, Repo, isolate

BASE = "acme/anvil"
OF_IT = [f"{TAG}{BASE}", "safetensors"]


def quantised(method: str, downloads: int, *tags: str, **more: Any) -> Repo:
    shown = {"quantization_config": {"quant_method": method, "bits": 4}}
    info = {"tags": [*OF_IT, *tags], "downloads": downloads, "config": shown, **more}
    return Repo({"config.json": {}}, info=info)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    repos = {
        BASE: Repo({"config.json": {}}),
        "b/anvil-awq": quantised("awq", 5, "4-bit", safetensors={"parameters": {"I32": 7, "odd": "x"}}),
        "acme/anvil-gptq": quantised("gptq", 9),
        "acme/anvil-secret": Repo({"config.json": {}}, private=True, info={"tags": OF_IT}),
        "b/anvil-gguf": Repo({"a.gguf": b""}, info={"tags": [f"{TAG}{BASE}", "gguf"], "downloads": 99}),
        "b/other": Repo({"config.json": {}}, info={"tags": [f"{TAG}acme/other", "safetensors"]}),
    }
    with HubServer(repos) as running:
        isolate(monkeypatch, tmp_path, running.url)
        yield running


def names(repo: str = BASE, *, offline: bool = False) -> list[str]:
    return [one.repo for one in quantised_from(repo, offline=offline).repositories]


def test_one_request_lists_them_and_its_answer_is_kept(server: HubServer) -> None:
    found = quantised_from(BASE)
    assert [(one.repo, one.downloads) for one in found.repositories] == [
        ("acme/anvil-gptq", 9),
        ("b/anvil-awq", 5),
    ]
    awq = found.repositories[1]
    assert (awq.block, awq.parameters, awq.tags[-1]) == (
        {"quant_method": "awq", "bits": 4},
        {"I32": 7},
        "4-bit",
    )
    assert quantised_from(BASE) == found == quantised_from(BASE, offline=True)
    assert len(server.paths()) == 1


def test_an_old_answer_is_asked_for_again(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    first = names()
    later = datetime.now(UTC) + timedelta(days=1, minutes=1)
    monkeypatch.setattr(config, "now", lambda: later.isoformat(timespec="seconds"))
    del server.repos["b/anvil-awq"]
    assert names(offline=True) == first, "offline one of any age is used"
    assert names() == ["acme/anvil-gptq"]
    server.faults.append(Fault("/api/models?", 503, times=9))
    monkeypatch.setattr(config, "now", lambda: (later + timedelta(days=2)).isoformat(timespec="seconds"))
    monkeypatch.setattr(related_listing, "PATIENCE", Deadline(pause=0.01, tries=2))
    assert names() == ["acme/anvil-gptq"], "so it is after a failure"


def test_offline_without_a_kept_answer_has_a_reason(server: HubServer) -> None:
    problem = quantised_from(BASE, offline=True).problem
    assert problem is not None
    assert problem.kind is RelatedReason.OFFLINE
    assert server.paths() == []


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("/api/models?", 503, times=9), RelatedReason.FAILED),
        (Fault("/api/models?", 404, times=9), RelatedReason.FAILED),
        (Fault("/api/models?", 302, {"Location": "http://10.0.0.1/"}, times=9), RelatedReason.FAILED),
        (Fault("/api/models?", 200, body=b"<html>", times=9), RelatedReason.MALFORMED),
        (Fault("/api/models?", 200, body=b"\xff", times=9), RelatedReason.MALFORMED),
        (Fault("/api/models?", 200, body=b"[" * (MOST_VALUES + 1), times=9), RelatedReason.MALFORMED),
        (
            Fault("/api/models?", 200, body=b" " * (LONGEST + 1), times=9),
            RelatedReason.MALFORMED,
        ),
    ],
)
def test_a_failure_is_a_reason(
    server: HubServer, monkeypatch: pytest.MonkeyPatch, fault: Fault, kind: RelatedReason
) -> None:
    monkeypatch.setattr(related_listing, "PATIENCE", Deadline(pause=0.01, tries=2))
    server.faults.append(fault)
    found = quantised_from(BASE)
    assert found.problem is not None
    assert (found.problem.kind, found.repositories) == (kind, ())
    server.faults.clear()
    assert len(names()) == 2, "a failure is not kept"


def test_what_the_answer_holds_beside_them_is_left_out() -> None:
    good = {"id": "b/x", "tags": OF_IT}
    odd = [
        {},
        7,
        None,
        {"id": 1},
        {"id": "b/y"},
        {"id": "b/\x1b[31m", "tags": OF_IT},
        {"id": "../b", "tags": OF_IT},
        {"id": BASE, "tags": OF_IT},
        {"id": "b/z", "tags": {"a": 1}},
        {**good, "downloads": "many", "config": []},
    ]
    assert [one.repo for one in parse(json.dumps([*odd, good]).encode(), BASE)] == ["b/x", "b/x"]
    assert parse(b"{}", BASE) == parse(b"null", BASE) == ()
    assert len(parse(json.dumps([good] * 99).encode(), BASE)) == MOST


DAMAGED = (
    "[]", "{", '{"format": 2}', '{"format": 2, "at": "x", "repositories": []}',
    '{"format": 2, "at": "2026-01-01", "repositories": [{"tags": 1}]}',
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_cache_is_asked_for_again(server: HubServer, tmp_path: Path, damage: str) -> None:
    first = names()
    (kept,) = (tmp_path / "home").rglob("quantised.json")
    kept.write_text(damage)
    assert names() == first
    assert len(server.paths()) == 2
