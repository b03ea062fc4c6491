"""The Hub's search; files that repositories share; and requests paced by its headers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from importer.errors import HubError
from importer.hub import client, rate_limit, resolve
from importer.hub.local import ANYWHERE
from importer.hub.rate_limit import Budget, under
from importer.hub.reference import parse
from importer.hub.search import search
from tests.hubserver import Fault, HubServer, Repo, isolate

FILES = {"config.json": {"model_type": "llama"}, "model.safetensors": b"\0", "README.md": "# mine"}
GGUF = {"a-Q4.gguf": b"GGUF", "README.md": "# mine"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    repos = {f"org/m{i}": Repo(FILES, info={"downloads": i}) for i in range(6)}
    repos |= {"org/g": Repo(GGUF), "org/locked": Repo(FILES, gated=True), "other/m": Repo(FILES)}
    repos["org/qwen"] = Repo(
        FILES, info={"config": {"model_type": "qwen3"}, "downloads": 99, "tags": ["mlx"]}
    )
    with HubServer(repos, tokens=("hf_good",)) as running:
        isolate(monkeypatch, tmp_path, running.url)
        yield running


def test_a_search_is_one_request_and_names_no_private_repository(hub: HubServer) -> None:
    hub.repos["org/m-secret"] = Repo(FILES, private=True)
    found = search("org/m", 3)
    assert [hit.repo for hit in found] == ["org/m5", "org/m4", "org/m3"]  # the most downloaded first
    assert (found[0].downloads, found[0].gated) == (5, False)
    assert [hit.repo for hit in search("lock", 3) if hit.gated] == ["org/locked"]
    assert len(hub.log) == 2


@pytest.mark.parametrize("body", [b"{}", b"[" * 100_000, b"not JSON", b"[" + b"1," * 2_000_000 + b"1]"])
def test_an_answer_to_a_search_that_is_no_list_is_one_sentence(hub: HubServer, body: bytes) -> None:
    hub.faults.append(Fault("search=", 200, body=body))
    with pytest.raises(HubError) as raised:
        search("m", 3)
    assert raised.value.kind == "bad-answer"


def test_equal_files_are_fetched_once(hub: HubServer) -> None:
    found = [resolve(parse(f"org/m{number}"), ANYWHERE) for number in range(6)]
    paths = hub.paths()
    assert sum("/config.json" in p for p in paths) == 1
    assert sum("/README.md" in p for p in paths) == len(found)
    assert {s.texts["config.json"] for s in found} == {json.dumps(FILES["config.json"])}


def test_a_gated_file_is_always_asked_for(hub: HubServer) -> None:
    """That an equal file is public elsewhere lets nobody in."""
    resolve(parse("org/m0"), ANYWHERE)
    with pytest.raises(HubError) as caught:
        resolve(parse("org/locked"), ANYWHERE)
    assert caught.value.kind == "gated"


def test_what_has_another_hash_is_shared_with_nobody(hub: HubServer) -> None:
    body = json.dumps({"model_type": "liama"}).encode()
    hub.faults.append(Fault("/config.json", 200, body=body))
    resolve(parse("org/m0"), ANYWHERE)
    assert resolve(parse("org/m1"), ANYWHERE).json("config.json") == FILES["config.json"]


def spend(budget: Budget, hub: HubServer, number: int, threads: int = 4) -> list[int]:
    """Send so many calls of the API from several threads; their statuses."""
    found: list[int] = []
    todo = iter(range(number))
    lock = threading.Lock()

    def work() -> None:
        with under(budget):
            while True:
                with lock:
                    if next(todo, None) is None:
                        return
                found.append(client.get(f"{hub.url}/api/models/org/m0?blobs=true", limit=10**6).status)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return found


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of a second, which the usual second between two looks takes for one."""
    monkeypatch.setattr(rate_limit, "LOOK", 0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_requests_wait_for_the_next_window_and_none_is_refused(hub: HubServer) -> None:
    hub.quotas = {"api": (6, 1.0)}
    budget = Budget()
    spend(budget, hub, 1)
    assert spend(budget, hub, 12) == [200] * 12
    assert sum(e.status == 429 for e in hub.log) <= 1, "the headers are enough"
    assert len(hub.log) == 13 + sum(e.status == 429 for e in hub.log)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_a_limit_that_is_lowered_in_the_middle(hub: HubServer) -> None:
    hub.quotas = {"api": (100, 1.0)}
    budget = Budget()
    assert spend(budget, hub, 10) == [200] * 10
    hub.quotas = {"api": (3, 1.0)}
    assert spend(budget, hub, 6) == [200] * 6


def test_files_and_calls_have_windows_of_their_own(hub: HubServer) -> None:
    hub.quotas = {"api": (1, 30.0)}
    budget = Budget()
    spend(budget, hub, 1)

    def wait(step: str) -> None:
        raise AssertionError(step)

    with under(budget, wait):
        url = f"{hub.url}/org/m0/resolve/{hub.repos['org/m0'].sha}/config.json"
        assert client.get(url, limit=100).status == 200


def test_waiting_work_can_be_stopped(hub: HubServer) -> None:
    hub.quotas = {"api": (1, 600.0)}
    budget = Budget()
    spend(budget, hub, 1)

    def stop(step: str) -> None:
        raise KeyboardInterrupt(step)

    with under(budget, stop), pytest.raises(KeyboardInterrupt, match="the Hub asks to wait"):
        client.get(f"{hub.url}/api/models/org/m0", limit=10**6)
    assert len(hub.log) == 1
