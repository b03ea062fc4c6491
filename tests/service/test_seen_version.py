"""An approval, a release and a rejection are of one version that was seen, and of no other."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from tests.serving import PATIENCE, Service, fresh, problem

pytestmark = pytest.mark.slow
# In each the present version's tag is N.
INEXACT = (
    '"N", "9"', '"8", "N"', '"1", "2", "3", "4", "5", "6"', '"N","N"', '"N",', ',"N"', '"N" "8"',
    "*", '*, "N"', '"N", *', 'W/"N"', 'w/"N"', 'W/"N", "N"', "N", "'N'", '"0N"', '"+N"', '" N"', '"N.0"',
    '"Nx"', '"', '""', "", '"N"; "8"', '"N"\t"8"', "**",
    ", ".join(f'"{n}"' for n in range(1, 150)),
)  # fmt: skip
DOORS = ("approve", "release", "reject")


def post(service: Service, path: str, headers: Any, **body: Any) -> httpx.Response:
    """With headers as they are, each on a line of its own."""
    body = {"note": "seen"} | body
    return httpx.post(f"{service.url}{path}", json=body, headers=headers, trust_env=False, timeout=PATIENCE)


@pytest.mark.parametrize("door", DOORS)
def test_only_one_exact_version_was_seen(service: Service, door: str) -> None:
    path = f"/v1/configs/{fresh(service, f'exact-{door}')}"
    before = service.client.get(path).json()
    version = before["version"]
    for text in INEXACT:
        header = text.replace("N", str(version))
        told = problem(post(service, f"{path}/{door}", {"If-Match": header}), 428, "digest-required")
        assert told["errors"][0]["pointer"] == "/digest"
        # Not with a digest beside it either: both are the caller's word for one thing.
        digest = {"digest": before["digest"]}
        problem(post(service, f"{path}/{door}", {"If-Match": header}, **digest), 428, "digest-required")
    for numbers in ((version, version), (version, 9), (9, version)):
        lines = [("If-Match", f'"{number}"') for number in numbers]
        problem(post(service, f"{path}/{door}", lines), 428, "digest-required")
    problem(post(service, f"{path}/{door}", {"If-Match": f'"{version + 1}"'}), 412, "precondition-failed")
    arabic = [(b"If-Match", f'"{"٠١٢٣٤٥٦٧٨٩"[version]}"'.encode())]
    problem(post(service, f"{path}/{door}", arabic), 428, "digest-required")
    long = ", ".join(f'"{n}"' for n in range(10_000))
    assert post(service, f"{path}/{door}", {"If-Match": long}).status_code in (422, 428, 431)
    assert service.client.get(path).json() == before
    if door != "release":
        assert post(service, f"{path}/{door}", {"If-Match": f'"{version}"'}).status_code == 200


def test_of_an_approval_and_its_withdrawal_the_later_sees_the_other(service: Service) -> None:
    """Many approve the version that they saw while one rejects it: nobody approves over the rejection."""
    path = f"/v1/configs/{fresh(service, 'raced')}"
    tag = {"If-Match": service.etag("raced")}
    answers: list[int] = []
    gate = threading.Barrier(7)

    def act(door: str) -> None:
        gate.wait()
        answers.append(post(service, f"{path}/{door}", tag).status_code)

    threads = [threading.Thread(target=act, args=(d,)) for d in ("reject", *["approve"] * 6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(answers) == [200] + [412] * 6
    assert len(service.client.get(f"{path}/history").json()["reviews"]) == 1


def test_an_edit_takes_what_a_precondition_may_be(service: Service) -> None:
    path = f"/v1/configs/{fresh(service, 'listed')}"
    patch = {"parameters": {"temperature": 0.3}}
    for header in ("*", '"99", "2"'):
        answer = service.client.patch(path, json=patch, headers={"If-Match": header})
        assert answer.status_code == 200, answer.text
    lines = [("If-Match", '"77"'), ("If-Match", service.etag("listed"))]
    assert httpx.patch(f"{service.url}{path}", json=patch, headers=lines, trust_env=False).status_code == 200
    weak = service.client.patch(path, json=patch, headers={"If-Match": f"W/{service.etag('listed')}"})
    problem(weak, 412, "precondition-failed")
