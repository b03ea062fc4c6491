"""The page of limits: each figure is the code's, and one more is answered as the page says."""

from __future__ import annotations

import re
import resource
from pathlib import Path
from typing import Any

import httpx
import pytest

from importer.app.request import OPTIONS
from importer.hub import client, listing, rate_limit, reference
from importer.service import security
from importer.service.domain import document_text, import_request
from importer.service.jobs import live_jobs
from importer.service.settings import Settings
from importer.storage import processes, queue
from importer.validation import client as answers
from importer.validation import reply
from tests.serving import Service, problem, running

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
ROWS = {
    name: (figure, beyond)
    for name, figure, beyond in re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
}
DEFAULT = Settings()
FIGURES = {
    "bytes of a body": DEFAULT.largest_body, "seconds for a head": DEFAULT.body_seconds,
    "levels of JSON": security.DEPTH, "characters of an address": security.LONGEST_ADDRESS,
    "characters of a document's text": document_text.LONGEST, "keys of `set`": OPTIONS["settings"].most,
    "characters of a reference": reference.LONGEST, "characters of a note": import_request.NOTE,
    "references in one list": DEFAULT.references,
    "entries on a page of documents": 500, "changes in a minute": DEFAULT.rate,
    "other requests in a minute": DEFAULT.reads, "wrong keys": security.REFUSED,
    "connections at a time": DEFAULT.connections, "previews at a time": DEFAULT.previews,
    "imports at a time": DEFAULT.imports, "validations at a time": 1, "rechecks at a time": 1,
    "begins of one attempt": queue.MAX_CLAIMS, "seconds without a heartbeat": processes.LEASE,
    "tries of a request": client.PATIENCE.tries, "seconds of one request": client.PATIENCE.whole,
    "bytes of an answer": answers.MAX_ANSWER, "characters of all texts": reply.LONGEST,
    "bytes of all answers": answers.MAX_RUN, "seconds of a run": answers.TOTAL_LIMIT,
    "seconds of a pause": rate_limit.LONGEST_PAUSE, "files of a repository": listing.MOST_FILES,
}  # fmt: skip
REFUSED, MOST = 3, 400  # requests that a full disk refuses, and all of them
BEYOND: dict[str, tuple[str, dict[str, Any]]] = {
    "characters of a note": (
        "/v1/imports",
        {"reference": "acme/base", "note": "n" * (import_request.NOTE + 1)},
    ),
    "characters of a reference": ("/v1/imports", {"reference": "a" * (reference.LONGEST + 1)}),
    "keys of `set`": (
        "/v1/imports",
        {"reference": "acme/base", "set": {f"k{n}": 1 for n in range(OPTIONS["settings"].most + 1)}},
    ),
    "references in one list": ("/v1/imports", {"references": ["acme/base"] * (DEFAULT.references + 1)}),
}


def row(name: str) -> tuple[str, str]:
    [found] = [one for key, one in ROWS.items() if key.startswith(name)]
    return found


def test_each_figure_is_the_code_s() -> None:
    assert {name: row(name)[0] for name in FIGURES} == {n: f"{f:,.0f}" for n, f in FIGURES.items()}
    assert len(ROWS) == len(FIGURES)
    assert f"try for {sum(live_jobs.PAUSES):.0f} s" in PAGE


@pytest.mark.slow
@pytest.mark.parametrize("name", BEYOND)
def test_one_more_is_answered_as_the_page_says(name: str, service: Service) -> None:
    path, body = BEYOND[name]
    answer = service.client.post(path, json=body)
    assert answer.status_code == int(row(name)[1][:3]), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.slow
def test_a_page_and_an_address_have_their_limits(service: Service) -> None:
    assert service.client.get("/v1/configs", params={"limit": 501}).status_code == 422
    long = "s" * (security.LONGEST_ADDRESS + 1)
    problem(service.client.get("/v1/configs", params={"search": long}), 422, "bad-request")


@pytest.mark.slow
def test_a_disk_without_room_refuses_changes_and_is_read(tmp_path: Path) -> None:
    """A limit of a file's size stands for the disk: the database's log can grow no more."""
    with running(tmp_path, "--imports", "0", "--no-validate") as service:
        pid, body = service.processes[0].pid, {"reference": "acme/base", "backend": "vllm"}
        old = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        used = max(path.stat().st_size for path in tmp_path.glob("gallery.sqlite*"))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (used, old[1]))
        answers = list[httpx.Response]()
        while sum(one.status_code != 202 for one in answers) < REFUSED:
            assert len(answers) < MOST, "the disk has no room"
            answers.append(service.client.post("/v1/imports", json=body))
        refused = [one for one in answers if one.status_code != 202]
        for one in refused:
            problem(one, 503, "no-database")
        total = service.client.get("/v1/jobs").json()["total"]
        assert total == len(answers) - len(refused)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, old)
        assert service.client.post("/v1/imports", json=body).status_code == 202
