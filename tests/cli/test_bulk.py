"""``--from``: one line of JSON per reference, in order, errors included; bounded, paced."""

from __future__ import annotations

import fcntl
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import importer.hub
from importer.app.decide import Decided
from importer.app.import_request import ImportRequest
from importer.cli import bulk, messages
from importer.document import schema
from importer.errors import HubError
from importer.hub import client
from importer.hub.client import Deadline
from tests.commandline import BASE, Desk, Ran
from tests.hubserver import Fault, Repo
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.slow


def lines(ran: Ran) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in ran.out.splitlines()]
    for line in found:
        schema.check("report", line, "stdout")
    return found


def many(desk: Desk, number: int) -> list[str]:
    """So many repositories, every one called ``tiny``; the list is written to the file ``list``."""
    references = [f"owner{i}/tiny" for i in range(number)]
    desk.hub.repos |= {r: Repo(BASE) for r in references}
    Path("list").write_text("\n".join(references))
    return references


def asked(desk: Desk) -> list[str]:
    """The repositories that the API was asked for, sorted."""
    found = (e.path for e in desk.hub.log if e.path.startswith("/api/models/"))
    return sorted("/".join(path.split("?")[0].split("/")[3:5]) for path in found)


def test_a_folder_without_a_dot_before_it_is_named(desk: Desk) -> None:
    for name in ("acme/none", "toy"):
        (desk.folder / name).mkdir(parents=True)
        ran = desk(name, "--json")
        assert f"write ./{name}" in ran.err.splitlines()[-1]
        assert f"write ./{name}" in ran.line["error"]["hint"]
    desk.monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert "write ./acme/none" in desk("acme/none").err, "the Hub need not answer"
    assert "write ./" not in desk("acme/other").err
    assert "write ./" not in messages.hint(HubError("not-cached", what="x", repo="a/b"), "./acme/none")


def test_every_line_is_answered_in_order(desk: Desk) -> None:
    Path("list").write_bytes(
        b"\xef\xbb\xbf# a comment\r\n\r\n  acme/base \r\na b\n./nowhere\n"
        b"other/base@v9\n\tacme/chat\n#x/y\nacme/base"
    )
    ran = desk("--from", "list")
    found = lines(ran)
    assert ran.code == 2  # of the first line that is refused
    references = ["acme/base", "a b", "./nowhere", "other/base@v9", "acme/chat", "acme/base"]
    assert [line["reference"] for line in found] == references
    kinds = [line["error"]["kind"] if "error" in line else line["name"] for line in found]
    assert kinds == ["base", "bad-reference", "no-such-directory", "revision-not-found", "chat", "base"]
    assert {Path(p).name for p in desk.files()} == {
        "document.schema.json",
        *(f"{name}.{end}" for name in ("base", "chat") for end in ("yaml", "receipt.json", "evidence.json")),
    }  # fmt: skip


def test_from_standard_input(desk: Desk) -> None:
    desk.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"acme/base\nother/base\n")))
    ran = desk("--from", "-", "--dry-run", "--json")
    assert [line["reference"] for line in lines(ran)] == ["acme/base", "other/base"]
    assert desk.files() == {}


@pytest.mark.parametrize("content", [None, b"\xff\xfe/x"])
def test_a_list_that_cannot_be_read(desk: Desk, content: bytes | None) -> None:
    if content:
        Path("list").write_bytes(content)
    ran = desk("--from", "list", "--json")
    assert (ran.code, ran.line["reference"]) == (2, None)
    assert "--from list" in ran.line["error"]["message"]


@pytest.mark.parametrize("words", [("--name", "x"), ("acme/base",)])
def test_what_is_for_one_reference_only(desk: Desk, words: tuple[str, ...]) -> None:
    Path("list").write_text("acme/base")
    assert desk("--from", "list", *words).code == 2
    assert desk.hub.asked == 0


def test_options_count_for_every_line(desk: Desk) -> None:
    many(desk, 3)
    ran = desk("--from", "list", "--set", "temperature=0", "--yes", "--dir", "models/deep")
    assert all(line["document"]["parameters"]["temperature"] == 0 for line in lines(ran))
    states = [json.loads(d)["review"]["state"] for p, d in desk.files().items() if p.endswith("receipt.json")]
    assert states == ["approved"] * 3


def test_one_name_is_never_given_twice_and_the_first_line_has_it(desk: Desk) -> None:
    references = many(desk, 12)
    expected = ["tiny", *(f"{r.replace('/', '--')}" for r in references[1:])]
    for options, written in ((("--dry-run",), 0), ((), 12), ((), 12)):
        assert [line["name"] for line in lines(desk("--from", "list", *options))] == expected
        assert len([p for p in desk.files() if p.endswith(".yaml")]) == written


@pytest.mark.nightly
def test_two_processes_at_once_give_no_name_twice(desk: Desk) -> None:
    desk.hub.latency = 0.1
    many(desk, 8)
    Path("backwards").write_text("\n".join(reversed(Path("list").read_text().split())))
    with desk.start("--from", "backwards") as other:
        here = lines(desk("--from", "list"))
        there = [json.loads(line) for line in other.communicate(timeout=PATIENCE)[0].splitlines()]
    assert {line["reference"]: line.get("name") for line in here} == {
        line["reference"]: line.get("name") for line in there
    }
    assert len({line["name"] for line in here}) == 8


def test_a_folder_is_written_by_one_at_a_time_and_not_left_locked(desk: Desk) -> None:
    many(desk, 2)
    assert lines(desk("--from", "list"))
    folder = os.open("models", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with desk.start("acme/base", "--json") as waiting:
        assert wait_until(lambda: asked(desk).count("acme/base") == 1)
        assert waiting.poll() is None
        assert not Path("models/base.yaml").exists()
        os.close(folder)
        assert json.loads(waiting.communicate(timeout=PATIENCE)[0])["name"] == "base"


def test_what_is_under_way_is_bounded() -> None:
    begun: list[str] = []

    def requests() -> Iterator[ImportRequest]:
        for i in range(500):
            begun.append(f"a/{i}")
            yield ImportRequest(begun[-1])

    def decide(request: ImportRequest) -> Decided:
        raise HubError("not-found", repo=request.reference)

    def finish(_: Decided) -> str:
        raise AssertionError

    for number, (line, code) in enumerate(bulk.answers(requests(), decide, finish), 1):
        assert code == HubError.exit_code
        assert json.loads(line)["reference"] == f"a/{number - 1}"
        assert len(begun) - number < 2 * bulk.AT_A_TIME
    assert number == 500


def test_a_fault_in_one_line_does_not_cost_the_others(desk: Desk) -> None:
    resolve = importer.hub.resolver.resolve

    def fails(reference: Any, **options: Any) -> Any:
        if reference.repo == "acme/chat":
            raise ZeroDivisionError("oh")
        return resolve(reference, **options)

    desk.monkeypatch.setattr("importer.hub.resolver.resolve", fails)
    Path("list").write_text("acme/base\nacme/chat\nother/base")
    found = lines(desk("--from", "list"))
    assert ["error" in line for line in found] == [False, True, False]
    assert found[1]["error"]["kind"] == "internal"


@pytest.mark.nightly
def test_it_waits_as_long_as_the_hub_asks(desk: Desk) -> None:
    """One import gives up at once when the wait is long; a long run has the time."""
    references = many(desk, 6)
    desk.monkeypatch.setattr(client, "PATIENCE", Deadline(waits=0.0))
    desk.hub.faults.append(Fault("/api/", 429, {"RateLimit": '"api";r=0;t=1'}, times=6))
    found = lines(desk("--from", "list", "--dry-run"))
    assert [line.get("model_id") for line in found] == references
    assert [e.status for e in desk.hub.log if "/api/" in e.path].count(429) == 6
