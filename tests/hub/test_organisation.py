"""The Hub's list of an organisation: pages, filters, hostile answers; and requests paced by its headers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from importer.errors import HubError, UsageError
from importer.hub import ANYWHERE, client, organisation, parse, resolve
from importer.hub.organisation import Entry, Filters
from importer.hub.rate_limit import Budget, under
from importer.hub.resolver import resolve_listed
from importer.sentences import render
from tests.hubserver import Fault, HubServer, Repo, isolate

FILES = {"config.json": {"model_type": "llama"}, "model.safetensors": b"\0", "README.md": "# mine"}
GGUF = {"a-Q4.gguf": b"GGUF", "README.md": "# mine"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    monkeypatch.setattr(organisation, "PAGE", 4)
    repos = {f"org/m{i}": Repo(FILES, info={"downloads": i}) for i in range(6)}
    repos |= {"org/g": Repo(GGUF), "org/locked": Repo(FILES, gated=True), "other/m": Repo(FILES)}
    repos["org/qwen"] = Repo(
        FILES, info={"config": {"model_type": "qwen3"}, "downloads": 99, "tags": ["mlx"]}
    )
    with HubServer(repos, tokens=("hf_good",)) as running:
        isolate(monkeypatch, tmp_path, running.url)
        yield running


def listed(*texts: str) -> list[Entry]:
    filters = organisation.parse_filters(texts)
    return [
        e for page in organisation.pages(organisation.first("org", filters), filters) for e in page.entries
    ]


def test_a_search_is_one_request_and_names_no_private_repository(hub: HubServer) -> None:
    hub.repos["org/m-secret"] = Repo(FILES, private=True)
    found = organisation.search("org/m", 3)
    assert [hit.repo for hit in found] == ["org/m5", "org/m4", "org/m3"]  # the most downloaded first
    assert (found[0].downloads, found[0].gated) == (5, False)
    assert [hit.repo for hit in organisation.search("lock", 3) if hit.gated] == ["org/locked"]
    assert len(hub.log) == 2


@pytest.mark.parametrize("body", [b"{}", b"[" * 100_000, b"not JSON", b"[" + b"1," * 2_000_000 + b"1]"])
def test_an_answer_to_a_search_that_is_no_list_is_one_sentence(hub: HubServer, body: bytes) -> None:
    hub.faults.append(Fault("search=", 200, body=body))
    with pytest.raises(HubError) as raised:
        organisation.search("m", 3)
    assert raised.value.kind == "bad-answer"


def test_all_pages_of_one_owner(hub: HubServer) -> None:
    found = {entry.repo: entry for entry in listed()}
    assert set(found) == {i for i in hub.repos if i.startswith("org/")}
    assert len(hub.log) == 3, "nine repositories in pages of four"
    assert found["org/m1"] == Entry("org/m1", hub.repos["org/m1"].sha)
    assert found["org/g"].gguf
    assert found["org/locked"].gated
    assert [Entry.from_json(json.loads(json.dumps(e.to_json()))) for e in found.values()] == [*found.values()]


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["family=qwen*"], {"qwen"}), (["name=M[0-2]"], {"m0", "m1", "m2"}),
        (["downloads=5"], {"m5", "qwen"}), (["gated=yes"], {"locked"}),
        (["gated=no", "library=mlx"], {"qwen"}), (["updated=2026-01-05", "name=m0"], {"m0"}),
        (["task=text-generation"], set()),
    ],
)  # fmt: skip
def test_filters(hub: HubServer, texts: list[str], names: set[str]) -> None:
    assert {e.repo.partition("/")[2] for e in listed(*texts)} == names
    assert hub.log


def test_the_hub_sorts(hub: HubServer) -> None:
    assert [e.repo for e in listed("sort=downloads")][:2] == ["org/qwen", "org/m5"]
    assert "direction=-1" in hub.log[0].path


@pytest.mark.parametrize(
    "text",
    [
        "x", "name=", "colour=red", "downloads=-1", "updated=soon", "gated=maybe", "library=a&b",
        "name=" + "x" * 300,
    ],
)  # fmt: skip
def test_a_bad_filter_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        organisation.parse_filters([text])
    assert caught.value.kind == "bad-value"
    assert "\n" not in render(caught.value.details["problem"])  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        organisation.parse_filters(["gated=yes", "gated=no"])


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "https://x"])
def test_a_bad_name_asks_nothing(hub: HubServer, name: str) -> None:
    with pytest.raises(UsageError):
        organisation.first(name, Filters())
    assert not hub.log


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("/api/models", 200, body=b"{}"), "bad-answer"),
        (Fault("/api/models", 200, body=b"[" * 5000), "bad-answer"),
        (Fault("/api/models", 401), "bad-token"),
        (Fault("/api/models", 404), "server"),
        (Fault("/api/models", 200, {"Link": '<http://127.0.0.9/x>; rel="next"'}, b"[]"), "refused-host"),
    ],
)
def test_hostile_lists(hub: HubServer, fault: Fault, kind: str) -> None:
    hub.faults.append(fault)
    with pytest.raises(HubError) as caught:
        listed()
    assert caught.value.kind == kind


def test_a_list_without_an_end_is_refused(hub: HubServer) -> None:
    link = {"Link": f'<{hub.url}/api/models?x=1>; rel="next"'}
    hub.faults.append(Fault("/api/models", 200, link, b"[]", times=9))
    with pytest.raises(HubError):
        listed()
    assert len(hub.log) == 2


def test_rows_that_are_none_are_left_out(hub: HubServer) -> None:
    odd, disabled = {"id": "../x", "sha": "0" * 40}, {"id": "org/b", "disabled": True}
    rows = [None, 3, {}, odd, {"id": "org/a", "sha": "no"}, disabled]
    hub.faults.append(Fault("/api/models", 200, body=json.dumps(rows).encode()))
    assert listed() == [Entry("org/a", None)]


def test_a_page_that_is_too_long_is_asked_for_in_tenths(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(organisation, "LONGEST", 900)
    monkeypatch.setattr(organisation, "PAGE", 20)
    assert len(listed()) == 9
    assert "limit=20" in hub.log[0].path
    assert "limit=2" in hub.log[1].path


def test_equal_files_are_fetched_once_and_a_listed_commit_without_a_request(hub: HubServer) -> None:
    entries = [e for e in listed() if e.repo.startswith("org/m")]
    hub.log.clear()
    first = [resolve_listed(e.repo, e.repo, str(e.commit)) for e in entries]
    paths = hub.paths()
    assert sum("/config.json" in p for p in paths) == 1
    assert sum("/README.md" in p for p in paths) == len(entries)
    assert {s.texts["config.json"] for s in first} == {json.dumps(FILES["config.json"])}
    hub.log.clear()
    assert [resolve_listed(e.repo, e.repo, str(e.commit)) for e in entries] == first
    assert not hub.log


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


@pytest.mark.slow
def test_requests_wait_for_the_next_window_and_none_is_refused(hub: HubServer) -> None:
    hub.quotas = {"api": (6, 1.0)}
    budget = Budget()
    spend(budget, hub, 1)
    assert spend(budget, hub, 20) == [200] * 20
    assert budget.requests == len(hub.log) == 21 + sum(e.status == 429 for e in hub.log)
    assert sum(e.status == 429 for e in hub.log) <= 1, "the headers are enough"
    assert budget.bound > 0
    assert budget.quota(f"{hub.url}/api/models") == (6, 1)


@pytest.mark.slow
def test_a_limit_that_is_lowered_in_the_middle(hub: HubServer) -> None:
    hub.quotas = {"api": (100, 1.0)}
    budget = Budget()
    assert spend(budget, hub, 10) == [200] * 10
    hub.quotas = {"api": (3, 1.0)}
    assert spend(budget, hub, 12) == [200] * 12
    assert budget.quota(f"{hub.url}/api/models") == (3, 1)


def test_files_and_calls_have_windows_of_their_own(hub: HubServer) -> None:
    hub.quotas = {"api": (1, 30.0)}
    budget = Budget()
    spend(budget, hub, 1)
    begun = budget.bound
    with under(budget):
        url = f"{hub.url}/org/m0/resolve/{hub.repos['org/m0'].sha}/config.json"
        assert client.get(url, limit=100).status == 200
    assert budget.bound == begun == 0.0


def test_waiting_work_can_be_stopped(hub: HubServer) -> None:
    hub.quotas = {"api": (1, 600.0)}
    budget = Budget()
    spend(budget, hub, 1)

    def stop(step: str) -> None:
        raise KeyboardInterrupt(step)

    with under(budget, stop), pytest.raises(KeyboardInterrupt, match="the Hub asks to wait"):
        client.get(f"{hub.url}/api/models/org/m0", limit=10**6)
    assert len(hub.log) == 1
