"""The overview: cards kept when a version is written, facets, filters and sorts, on both databases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from importer.app.overview import PublicationState
from importer.document.receipt import Receipt
from importer.document.store import StoredDocument
from importer.service.domain.listing import columns
from importer.service.http.query import AttentionKind
from importer.storage import document_rows, documents
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.documents import CountCache, Filters, Listed, Room, Version, facets
from tests.publishing import gallery_of
from tests.serving import Service, events, fresh, problem, service
from tests.storing import database, empty

__all__ = ["database", "empty", "service"]
pytestmark = pytest.mark.xdist_group("postgres")
GB = 10**9
NO_TOOLS = {"kind": "no-tools", "key": "tool_parser", "reason": {}, "message": ""}
UNKNOWN = {"kind": "never heard of", "key": "x", "reason": {}, "message": ""}


def fit(weights: int, memory: int, count: int = 1) -> dict[str, Any]:
    return {
        "weights": {"likely": weights, "parameters": weights // 2},
        "device": {"name": "h100-80g", "kind": "gpu", "count": count},
        "cards": count,
        "estimate": {
            "load": {"context": 4096},
            "terms": [{"part": "kv cache", "likely": memory // 6}],
            "total": {"likely": memory},
        },
    }


def add(
    database: Database, name: str, *, state: str = "draft", validation: str = "never", **more: Any
) -> None:
    data = {
        "name": name, "backend": "vllm", "parameters": {"model": f"org/{name}"},
        "description": f"A model called {name}.", "options": more.pop("options", []),
        "importer": {
            "kind": "chat", "license": more.pop("license", None), "modalities": more.pop("modalities", []),
        },
    }  # fmt: skip
    receipt = Receipt(
        name, f"org/{name}", f"org/{name}", None, None, "sha256:0",
        more.pop("imported_at", "2026-11-01T00:00:00+00:00"), "1", {"name": "vllm"}, {}, [], {},
        {"state": "pending"}, **more,
    )  # fmt: skip
    stored = StoredDocument(Path(f"{name}.yaml"), "", data, "sha256:0", receipt)
    row = Version(
        name=name, number=1, action="import", text="", data=json.dumps(data), receipt=receipt.to_text(),
        template=None, digest="sha256:0", state=state, by="ann", at="2026-11-02T00:00:00+00:00", why=None,
    )  # fmt: skip
    listed = {
        **columns(stored, PublicationState(state, "draft", validation)),
        "model": f"org/{name}", "backend": "vllm", "family": "llama", "release": None,
    }  # fmt: skip
    with database.writing() as connection:
        documents.add(connection, row, listed)


@pytest.fixture
def four(database: Database) -> Database:
    add(database, "small", fit=fit(2 * GB, 4 * GB), options=["tool_parser:hermes"], license="mit")
    add(database, "wide", fit=fit(100 * GB, 70 * GB, 2), modalities=["image"], state="published",
        warnings=[NO_TOOLS])  # fmt: skip
    add(database, "broken", validation="failed", warnings=[NO_TOOLS, UNKNOWN])
    add(database, "odd", validation="stale", imported_at="2026-10-01T00:00:00+00:00")
    return database


def names(database: Database, sort: str = "name", **chosen: Any) -> list[str]:
    with database.reading() as connection:
        return [
            one.name
            for one in documents.page(
                connection,
                Filters(**{k: tuple(v) if isinstance(v, list) else v for k, v in chosen.items()}),
                10,
                sort=sort,
            )
        ]


def test_filters_select_what_cards_say(four: Database) -> None:
    assert names(four, tool_parser=["hermes"]) == ["small"]
    assert names(four, tool_parser=["none", "hermes"]) == ["broken", "odd", "small", "wide"]
    assert names(four, modality=["image"]) == ["wide"]
    assert names(four, license=["mit"]) == ["small"]
    assert names(four, size=["1b-4b"]) == ["small"]
    assert names(four, attention=["any"]) == ["broken", "odd", "wide"]
    assert names(four, attention=["none"]) == ["small"]
    assert names(four, attention=["failed"]) == ["broken"]
    assert names(four, q="CALLED wide") == ["wide"]
    assert names(four, q="wide broken") == names(four, q="100%") == []
    room = {n: Room(n * GB, ("vllm",)) for n in (80, 125, 140)}
    assert names(four, room=room[80]) == ["small"]  # the other one has two devices with 70 GB each
    assert names(four, room=room[125]) == ["small", "wide"]  # with a shorter context
    assert names(four, room=Room(140 * GB, ("mlx",))) == []
    with four.reading() as connection:
        found = {n: facets(connection, Filters(), one).fits for n, one in room.items()}
    counts = {"no": 0, "unknown": 2, "not_applicable": 0}
    assert found[140] == counts | {"yes": 2, "part": 0}
    assert found[125] == counts | {"yes": 1, "part": 1}
    assert found[80] == counts | {"yes": 1, "part": 0, "no": 1}


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("-attention", ["broken", "odd", "wide", "small"]), ("weights", ["small", "wide", "broken", "odd"]),
        ("-weights", ["wide", "small", "odd", "broken"]), ("state", ["broken", "odd", "small", "wide"]),
        ("checked_at", ["odd", "broken", "small", "wide"]),
    ],
)  # fmt: skip
def test_each_sort_goes_on_behind_its_cursor(four: Database, sort: str, expected: list[str]) -> None:
    assert names(four, sort) == expected
    seen = list[str]()
    with four.reading() as connection:
        last: Listed | None = None
        while page := documents.page(
            connection, Filters(), 1, () if last is None else (last.place, last.name), sort
        ):
            last = page[0]
            seen.append(last.name)
    assert seen == expected


def test_each_facet_ignores_its_own_filter_and_heeds_the_others(four: Database) -> None:
    with four.reading() as connection:
        found = facets(
            connection, Filters(modality=("image",), state=("draft", "published")), Room(80 * GB, ("vllm",))
        )
    assert (found.total, found.documents, found.attention) == (1, 4, 1)
    assert found.values["modality"] == {"text": 4, "image": 1}
    assert found.values["state"] == {"published": 1}
    assert found.fits == {"yes": 0, "part": 0, "no": 1, "unknown": 0, "not_applicable": 0}
    with four.reading() as connection:
        found = facets(connection, Filters(), None)
    assert found.values["attention"] == {
        "no-tools": 2, "other": 1, None: 1, "failed": 1, "outdated": 1,
    }  # fmt: skip
    assert found.values["tool_parser"] == {None: 3, "hermes": 1}
    assert found.values["size"] == {None: 2, "1b-4b": 1, "35b-100b": 1}


def test_every_kind_of_a_warning_is_a_kind_of_a_row() -> None:
    assert {*get_args(AttentionKind)} == {*document_rows.KINDS}


def test_a_document_that_an_import_would_change_needs_attention(four: Database) -> None:
    cache = CountCache()
    with four.writing() as connection:
        before = cache.facets(connection, Filters(), None).values["attention"].get("differs")
        version = documents.last_number(connection, "small")
        document_rows.checked(connection, "small", version - 1, "2026", differs=True)  # of an older version
        [small] = documents.page(connection, Filters(q="small"), 1)
        assert json.loads(small.row)["attention"] == []
        document_rows.checked(connection, "small", version, "2026", differs=True)
        after = cache.facets(connection, Filters(), None).values["attention"].get("differs")
        [small] = documents.page(connection, Filters(q="small"), 1)
    assert (before, after) == (None, 1)
    assert json.loads(small.row)["attention"] == ["differs"]
    assert names(four, "-attention")[2] == "small"
    with four.writing() as connection:
        document_rows.checked(connection, "small", version, "2026", differs=False)
    assert names(four, attention=["differs"]) == []


@pytest.mark.slow
def test_the_service_lists_and_counts_cards(service: Service) -> None:
    name = fresh(service, "carded", device="h100-80g")
    [row] = service.client.get("/v1/configs", params={"q": "carded acme"}).json()["items"]
    assert row["facts"]["device"] == "h100-80g"
    assert row["facts"]["modalities"] == ["text"]
    assert row["run"] is None
    assert row["checked_at"]
    found = service.client.get("/v1/overview", params={"q": name, "fits": "h100"}).json()
    assert found["total"] == 1
    assert found["facets"]["state"] == [{"value": "draft", "count": 1}]
    assert {key: found["fits"][key] for key in ("yes", "no", "unknown")} == {"yes": 1, "no": 0, "unknown": 0}
    fitting = service.client.get("/v1/configs", params={"device": "h100", "q": name}).json()
    assert fitting["total"] == 1
    for parameter in ("device", "fits"):
        refused = service.client.get("/v1/overview", params={parameter: "tpu"})
        said = problem(refused, 422, "unknown-device")
        assert said["errors"][0]["pointer"] == f"/query/{parameter}"
    wrong = problem(service.client.get("/v1/overview", params={"attention": "odd"}), 422, "bad-request")
    assert [one["pointer"] for one in wrong["errors"]] == ["/query/attention/0"]
    problem(service.client.get("/v1/configs", params={"size": "huge"}), 422, "bad-request")


@pytest.mark.slow
def test_figures_of_memory_and_runs_are_those_of_the_receipt(service: Service) -> None:
    name = fresh(service, "measured", device="h100-80g")
    with gallery_of(service) as gallery, gallery.change(AuditContext("worker", "validate")) as change:
        stored = change.checkout.load(name)
        probes = [
            {"probe": "health", "outcome": "pass", "reason": "up", "exchanges": [], "seconds": 0.1},
            {"probe": "tools", "outcome": "fail", "reason": "no call", "cause": {"kind": "X.no-call"}},
        ]
        run = {
            "engine": {"name": "vllm", "version": "0.33.0"}, "started": "2026-11-01T00:00:00+00:00",
            "passed": False, "outcomes": probes, "seconds": {"start": 2.0, "probes": 1.5},
            "speed": {"first_token_seconds": 0.3, "tokens_per_second": 41.0},
            "fit": {"weights": {"predicted": 100, "reported": 80, "error": 0.25}},
        }  # fmt: skip
        change.checkout.amend(name, lambda receipt: receipt.with_validation(run, stored.digest))
    memory = service.client.get(f"/v1/configs/{name}/memory").json()
    assert memory["holds"] is None
    assert memory["verdict"] == "fits"
    assert memory["figures"][0]["name"] == "memory"
    judged = service.client.get(f"/v1/configs/{name}/memory", params={"devices": True}).json()["holds"]
    holds = {one["device"]: one for one in judged}
    assert (holds["h100-80g"]["answer"], holds["m4-max-64g"]["answer"]) == ("whole", "not-applicable")
    seen = service.client.get("/v1/overview", params={"fits": "m4-max-64g"}).json()["fits"]
    assert (seen["yes"], seen["part"], seen["no"]) == (0, 0, 0)
    assert seen["not_applicable"] > 0
    [row] = service.client.get("/v1/configs", params={"q": name}).json()["items"]
    assert (row["run"]["passed"], row["run"]["failed"], row["attention"]) == (1, 1, ["failed"])


@pytest.mark.slow
def test_progress_has_seconds_and_the_summary_streams(service: Service) -> None:
    job = service.imported("acme/base", name="later")
    progress = service.client.get(f"/v1/jobs/{job['id']}").json()["progress"]
    assert [one["step"] for one in progress["steps"]] == ["resolve", "decide", "prove", "store"]
    assert all(one["state"] == "done" and one["seconds"] is not None for one in progress["steps"])
    refused = service.imported("acme/nothing", name="nothing")
    assert refused["state"] == "failed"
    before = service.client.get("/v1/jobs/summary").json()
    assert before["failed"] >= 1
    with service.client.stream("GET", "/v1/jobs/summary/events") as stream:
        seen = events(stream)
        assert next(seen)["data"]["queued"] >= 0
        answer = service.client.post(
            "/v1/configs/later/validate", json={"engine": "vllm"}
        )  # no worker here takes it
        assert answer.status_code == 202, answer.text
        assert (
            next(one for one in seen if one["data"]["queued"] == before["queued"] + 1)["event"] == "summary"
        )
    service.client.post(f"/v1/jobs/{answer.json()['id']}/cancel").raise_for_status()
