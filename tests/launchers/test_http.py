"""Clusters that answer wrongly, over real sockets: each answer has its own kind of failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from importer.errors import LauncherError
from importer.launchers import get
from importer.launchers.base import (
    Cancelled,
    Failed,
    FailureKind,
    Lost,
    Queued,
    RemoteRun,
    RemoteState,
    Running,
    parse_target,
)
from tests.serving import free_port, listening

Answers = dict[str, tuple[int, bytes]]


@contextmanager
def answering(answers: Answers, seen: list[dict[str, str]] | None = None) -> Iterator[str]:
    """A server that is no Ray, with these answers by the end of a path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if seen is not None:
                seen.append(dict(self.headers))
            found = next(
                (a for end, a in answers.items() if self.path.endswith(end)), (404, b"404: Not Found")
            )
            self.send_response(found[0])
            self.send_header("Content-Length", str(len(found[1])))
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(found[1])

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with listening(server):
        yield f"ray://127.0.0.1:{server.server_port}"


RUN = "importer-x"
NO_PLACE = "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"


def state(answer: tuple[int, bytes]) -> RemoteState:
    with answering({f"/api/jobs/{RUN}": answer}) as place:
        target = parse_target(place)
        return get(target).state(RemoteRun.of(RUN, target))


def job(**members: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"submission_id": RUN, **members}).encode()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (job(status="PENDING", message="it waits"), Queued("it waits")),
        (job(status="RUNNING", driver_agent_http_address="http://10.0.0.7:5000"), Running("10.0.0.7")),
        (job(status="STOPPED"), Cancelled()),
        (job(status="FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED", message="gone"), Lost("gone")),
        (job(status="FAILED", error_type="RUNTIME_ENV_SETUP_FAILURE"), Failed(FailureKind.ENVIRONMENT)),
        (job(status="FAILED", error_type=NO_PLACE), Failed(FailureKind.UNSCHEDULABLE)),
        (job(status="FAILED", error_type="SOMETHING_NEW"), Failed(FailureKind.OTHER)),
    ],
)  # fmt: skip
def test_each_status_of_ray_is_a_state(answer: tuple[int, bytes], expected: RemoteState) -> None:
    assert state(answer) == expected


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((401, b"no token"), "cluster-refused"), ((403, b"\x1b[31mno"), "cluster-refused"),
        ((302, b""), "cluster-refused"), ((500, b"trouble"), "cluster-unreachable"),
        ((503, b""), "cluster-unreachable"), ((200, b"<html>"), "cluster-answer"),
        ((200, b"[]"), "cluster-answer"), ((200, b"{}"), "cluster-answer"),
    ],
)  # fmt: skip
def test_an_answer_that_is_no_use_has_its_kind(answer: tuple[int, bytes], kind: str) -> None:
    with pytest.raises(LauncherError) as told:
        state(answer)
    assert told.value.kind == kind
    assert str(told.value).isprintable()


def test_nobody_at_the_address_is_told() -> None:
    target = parse_target(f"ray://127.0.0.1:{free_port()}")
    with pytest.raises(LauncherError) as told:
        get(target).state(RemoteRun.of(RUN, target))
    assert told.value.kind == "cluster-unreachable"


def test_the_clusters_token_goes_in_a_header_and_into_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "very-secret")
    seen: list[dict[str, str]] = []
    with answering({RUN: (403, b"no")}, seen) as place:
        target = parse_target(place)
        launcher = get(target)
        with pytest.raises(LauncherError) as told:
            launcher.state(RemoteRun.of(RUN, target))
    assert [one["Authorization"] for one in seen] == ["Bearer very-secret"]
    assert "very-secret" not in f"{told.value}{told.value.details}{launcher!r}{vars(launcher)!r}"
