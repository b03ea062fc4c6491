"""Lists of the Hub without an end: each is left after a bounded number of requests, in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from importer.errors import HubError
from importer.hub import listing, paging, resolve
from importer.hub.listing import ListingReason
from importer.hub.local import ANYWHERE
from importer.hub.paging import Bounds, PagingReason
from importer.hub.reference import parse
from importer.hub.weights import fetch_weights
from importer.reasons import ReasonKind
from importer.sentences import render
from tests.hubserver import HubServer, Reply, Repo, isolate

FILES = {"config.json": {"model_type": "llama"}, "model.safetensors": b"\0", "tokenizer.json": {}}
PAGES = 60
Rows = Callable[[int], list[Any]]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with HubServer({"org/m": Repo(FILES)}) as running:
        isolate(monkeypatch, tmp_path, running.url)
        yield running


def reply(rows: list[Any], following: str | None) -> Reply:
    link = {} if following is None else {"Link": f'<{following}>; rel="next"'}
    return 200, {"Content-Type": "application/json", **link}, json.dumps(rows).encode()


def endless(hub: HubServer, rows: Rows) -> None:
    """Each page has a next one, under a cursor of its own."""
    hub.lists = lambda path, number: reply(rows(number), f"{hub.url}{path.partition('?')[0]}?cursor={number}")


def listed() -> None:
    """The Hub's own client follows the pages of a commit's files, without a bound of its own."""
    fetch_weights(resolve(parse("org/m"), ANYWHERE), lambda *_: None)


def file(name: object) -> dict[str, Any]:
    return {"type": "file", "path": f"m{name}", "size": 1, "oid": "0" * 40}


def left(hub: HubServer, ask: Callable[[], object] = listed) -> tuple[ReasonKind, int]:
    """Why a list was left, and after how many of its pages."""
    with pytest.raises(HubError) as caught:
        ask()
    assert caught.value.kind == "bad-answer"
    reason = caught.value.details["problem"]
    assert "\n" not in render(reason)  # type: ignore[arg-type]
    return reason.kind, hub.listed  # type: ignore[union-attr, return-value]


@pytest.mark.parametrize("ring", [1, 3])
@pytest.mark.parametrize("rows", [[], [file(0)]])
def test_pages_that_lead_to_each_other_are_left(hub: HubServer, ring: int, rows: list[Any]) -> None:
    hub.lists = lambda path, number: reply(rows, f"{hub.url}{path.partition('?')[0]}?cursor={number % ring}")
    kind, asked = left(hub)
    assert kind is PagingReason.BEYOND
    assert asked <= ring + 2


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [Bounds(pages=PAGES), Bounds(seconds=0.3)])
def test_pages_with_something_new_each_are_left(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    monkeypatch.setattr(paging, "BOUNDS", bounds)
    endless(hub, lambda number: [file(number)])
    found, asked = left(hub)
    assert found is PagingReason.BEYOND
    assert asked <= PAGES + 1 or bounds.pages != PAGES


@pytest.mark.parametrize(
    "target", ["http://127.0.0.9/x", "//other.example/x", "file:///etc/passwd", "http://[::1"]
)
def test_a_next_page_elsewhere_is_not_asked_for(hub: HubServer, target: str) -> None:
    hub.lists = lambda *_: reply([], target)
    with pytest.raises(HubError) as caught:
        listed()
    assert (caught.value.kind, hub.listed) == ("refused-host", 1)


def test_a_list_of_files_in_pages_is_read(hub: HubServer) -> None:
    snapshot = resolve(parse("org/m"), ANYWHERE)
    files = hub.repos["org/m"].commits[str(snapshot.revision)]
    rows = [{"type": "file", "path": p, "size": len(d), "oid": "0" * 40} for p, d in sorted(files.items())]

    def page(path: str, number: int) -> Reply:
        link = f"{hub.url}{path.partition('?')[0]}?cursor={number}" if number < len(rows) else None
        return reply([rows[number - 1]], link)

    hub.lists = page
    folder = fetch_weights(snapshot, lambda *_: None)
    assert {path.name for path in folder.iterdir()} == set(files)
    assert hub.listed == len(rows)


def test_a_listing_without_files_is_followed_by_the_tree(hub: HubServer) -> None:
    """Some servers leave them out; the Hub's own client asks for the tree then."""
    files = {f.path: (f.size, f.hash) for f in resolve(parse("org/m"), ANYWHERE).files}
    hub.repos["org/m"].info["siblings"] = []
    hub.log.clear()
    found = resolve(parse("org/m"), ANYWHERE)
    assert {f.path: (f.size, f.hash) for f in found.files} == files
    assert [path.partition("?")[0] for path in hub.paths()] == [
        "/api/models/org/m", f"/api/models/org/m/tree/{found.revision}",
    ]  # fmt: skip
    hub.lists = lambda *_: (404, {}, b"{}")
    assert resolve(parse("org/m"), ANYWHERE).files == ()


def test_a_tree_without_an_end_is_left(hub: HubServer) -> None:
    hub.repos["org/m"].info["siblings"] = []
    endless(hub, lambda number: [file(number)])
    kind, asked = left(hub, lambda: resolve(parse("org/m"), ANYWHERE))
    assert (kind, asked) == (ListingReason.LARGE, listing.MOST_PAGES)
