"""Who may ask the service, and how often: keys, scopes, buckets, previews."""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

from importer.errors import ServiceError
from importer.service import security
from importer.service.http import localai
from importer.service.security import Limiter
from importer.storage import keys
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.schema import prepare
from tests.publishing import keys_by_scopes
from tests.serving import PATIENCE, Service, problem, running

slow = pytest.mark.slow
# The scope of an action on many is that of the action.
NAMES = defaultdict(lambda: "x", number="1")  # what stands in a place of a route


# Keys


@slow
def test_every_route_needs_a_key_and_its_scope(tmp_path: Path) -> None:
    made = keys_by_scopes(tmp_path, "read", "import", "approve")
    with running(tmp_path, "--host", "0.0.0.0", "--rate", "1000", "--trusted-proxy", "127.0.0.1") as service:
        wrong = []
        for number, (method, path) in enumerate(_operations(service)):
            found = path.format_map(NAMES)
            somewhere = {"X-Forwarded-For": f"192.0.2.{number}"}  # one address has few tries
            nobody = service.client.request(method, found, headers=somewhere)
            assert nobody.status_code == 401, (found, nobody.text)
            if path.startswith("/v1/"):  # LocalAI's clients are told in its own words
                problem(nobody, 401, "no-key")
                assert nobody.headers["WWW-Authenticate"] == "Bearer"
            reads = method == "GET" or path.endswith("/check")
            asked = {"x-api-key": made["import" if reads else "read"], "If-Match": "*"}
            with service.client.stream(method, found, headers=asked, json={}) as answer:  # events go on
                if (answer.status_code == 403) is reads:
                    wrong.append((method, found, answer.status_code))
        assert wrong == []
        _wrong_keys(service, made["read"])
    log = service.log()
    secrets = [key.split("_", 2)[2] for key in made.values()]
    kept = b"".join(p.read_bytes() for p in tmp_path.glob("gallery.sqlite*"))
    assert not [s for s in secrets if s in log or s.encode() in kept]


def _operations(service: Service) -> list[tuple[str, str]]:
    """All that OpenAPI tells of and that is not for everybody, and LocalAI's routes."""
    told = service.client.get("/openapi.json").json()["paths"]
    described = [
        (method.upper(), path)
        for path, methods in told.items()
        for method, said in methods.items()
        if "security" in said
    ]
    routes = (route for route in localai.router.routes if isinstance(route, APIRoute))
    return described + [(m, r.path) for r in routes for m in r.methods or ()]


def _wrong_keys(service: Service, key: str) -> None:
    """Nearly right is wrong; too many of them are told to wait, and who has a key is not."""
    ident, secret = key.split("_", 2)[1:]
    near = [key[:-1], f"{key}x", f"imp_{ident}_", f"imp_{ident}", f"xxx_{ident}_{secret}", key.upper(), "é"]
    for wrong in near:
        answer = service.client.get("/v1/configs", headers={"Authorization": f"Bearer {wrong}".encode()})
        assert answer.status_code == 401
    asked = [service.client.get("/v1/configs", headers={"x-api-key": "imp_0_0"}) for _ in range(70)]
    told = problem(asked[-1], 429, "too-many")
    assert int(asked[-1].headers["Retry-After"]) > 0, told
    assert service.client.get("/v1/configs", headers={"x-api-key": key}).status_code == 200


def test_a_key_is_compared_in_constant_time_also_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(f"sqlite:///{tmp_path / 'g.sqlite'}")
    prepare(database)
    with database.writing() as connection:
        made = keys.create(connection, "ann", ["read"], AuditContext("ann", "create key"))
    compared: list[tuple[str, str]] = []
    real = keys.hmac.compare_digest

    def recorded(one: str, other: str) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(keys.hmac, "compare_digest", recorded)
    with database.reading() as connection:
        for said in (made, made[:-1], "imp_000000000000_x", "", "imp__"):
            assert (keys.find(connection, said) is not None) is (said == made)
    assert [(len(a), len(b)) for a, b in compared] == [(64, 64)] * 5  # hashes, never what was said
    database.close()


# Limits


def test_a_bucket_fills_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(security.time, "monotonic", lambda: now)
    found = Limiter(60)
    for _ in range(60):
        found.count("ann")
    with pytest.raises(ServiceError) as caught:
        found.count("ann")
    assert (caught.value.kind, caught.value.details["seconds"]) == ("too-many", 1)
    found.count("ben")  # has a bucket of his own
    now = 1.5
    found.count("ann")
    with pytest.raises(ServiceError):
        found.count("ann")


def test_a_limiter_remembers_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "MOST", 10)
    found = Limiter(1)
    for number in range(100):
        found.count(str(number))
    assert len(found._left) == 10
    with pytest.raises(ServiceError):
        found.count("99")


@slow
def test_previews_do_not_hold_up_the_rest(tmp_path: Path) -> None:
    with running(tmp_path, "--previews", "1", "--reads", "10") as service:
        service.hub.latency = 1
        looks = {
            "/v1/imports/preview": {"reference": "acme/base", "backend": "vllm"},
            "/models/import-uri": {"uri": "acme/base", "preferences": {"backend": "vllm"}},
        }
        answers: list[httpx.Response] = []

        def ask(path: str) -> None:
            with httpx.Client(base_url=service.url, timeout=PATIENCE, trust_env=False) as client:
                answers.append(client.post(path, json=looks[path]))

        threads = [threading.Thread(target=ask, args=(path,)) for path in [*looks] * 4]
        for thread in threads:
            thread.start()
        assert service.client.get("/readyz").status_code == 200
        for thread in threads:
            thread.join()
        assert sorted({a.status_code for a in answers}) == [200, 503]
        refused = {a.request.url.path: a for a in answers if a.status_code == 503}
        assert refused.keys() == looks.keys()
        assert all(int(one.headers["Retry-After"]) > 0 for one in refused.values())
        assert problem(refused["/v1/imports/preview"], 503, "busy")
        reads = [service.client.get("/v1/configs") for _ in range(30)]
        assert problem(reads[-1], 429, "too-many")
