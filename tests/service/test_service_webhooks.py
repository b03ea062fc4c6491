"""Webhooks over REST: signatures, the delivery log, addresses that are refused, failures."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from importer.hub import outgoing
from importer.service.domain.webhooks import key_of, new_secret, signed
from importer.storage import webhooks
from importer.storage.webhooks import TRIES
from tests import impatient
from tests.impatient import DELIVERS, waits
from tests.publishing import gallery_of, published
from tests.receiving import Receiver, receiving
from tests.serving import Service, fresh, problem, running

slow = pytest.mark.slow


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that may send to this machine."""
    words = ("--no-validate", "--webhook-private", "--rate", "0")
    folder = tmp_path_factory.mktemp("webhooks")
    with running(folder, *words, env=waits(DELIVERS), by=impatient.NAME) as one:
        yield one


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def hook(service: Service, receiver: Receiver, **said: Any) -> dict[str, Any]:
    answer = service.client.post("/v1/webhooks", json={"url": receiver.url, **said})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    receiver.secret = made["secret"]
    return made


def deliveries(service: Service, ident: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.client.get(f"/v1/webhooks/{ident}/deliveries").json()["items"]
    return found


def due_now(service: Service) -> None:
    """What waits for its next try waits no longer."""
    with gallery_of(service) as gallery, gallery.database.writing() as connection:
        table = webhooks.tables.deliveries
        connection.execute(table.update().where(table.c.state == "waiting").values(due=0.0))
        connection.execute(webhooks.tables.webhooks.update().values(retry_at=0.0))


def test_a_signature_is_that_of_the_specification() -> None:
    """The example of the Standard Webhooks specification's own libraries."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    headers = signed("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, secret)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert len(key_of(new_secret()) or b"") == 32
    assert [key_of(odd) for odd in ("", "whsec_", "whsec_!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")] == [
        None
    ] * 4


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("ftp://a.example/x", "form"), ("https://", "form"), ("https:///x", "form"), ("nothing", "form"),
        ("https://a.example:x/", "form"), ("https://a.example:0/", "form"), ("https://a.example/x#y", "form"),
        ("https://a.example/é", "form"), ("https://a.example/x y", "form"),
        ("https://a\r\nb.example/", "form"), ("https://[64:ff9b::a00:1]/", "private"),
        ("https://ann:secret@a.example/", "user"), ("http://a.example/", "plain"),
        ("https://127.0.0.1/", "private"), ("https://[::1]/", "private"), ("https://10.1.2.3/", "private"),
        ("https://169.254.169.254/latest", "private"), ("https://[::ffff:10.0.0.1]/", "private"),
        ("https://[2002:0a00:0001::]/", "private"), ("https://0.0.0.0/", "private"),
        ("https://224.0.0.1/", "private"), ("https://100.64.0.1/", "private"),
    ],
)  # fmt: skip
def test_an_address_that_nothing_is_sent_to(url: str, kind: str) -> None:
    found = outgoing.check(url, private=False)
    assert found is not None
    assert found.kind == kind


def test_a_name_of_a_private_address_is_refused_when_it_is_sent_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one of several addresses is public; the connection goes to the address that was checked."""

    def looked_up(*_: object, **__: object) -> list[Any]:
        return [(2, 1, 6, "", ("93.184.216.34", 443)), (2, 1, 6, "", ("10.0.0.7", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("it was connected to"))
    assert outgoing.check("https://inside.example/", private=False) is None
    sent = outgoing.post("https://inside.example/", {}, b"", private=False)
    assert (sent.status, sent.problem and sent.problem.kind) == (None, "private")


@slow
def test_events_arrive_signed_and_are_logged(service: Service, receiver: Receiver) -> None:
    made = hook(service, receiver, types=["job.succeeded", "release.promoted"], note="the CI")
    shown = service.client.get(f"/v1/webhooks/{made['id']}").json()
    assert "secret" not in shown
    assert made["secret"] not in service.client.get("/v1/webhooks").text
    name = fresh(service, "announced")
    published(service, name)
    service.wait(lambda: len(receiver.received) >= 2)
    assert sorted(receiver.types()) == ["job.succeeded", "release.promoted"]
    assert all(one["signed"] for one in receiver.received)
    first, second = sorted(receiver.received, key=lambda one: one["body"]["type"])
    data = first["body"]["data"]
    assert (data["kind"], data["config"], data["state"]) == ("import", name, "succeeded")
    assert second["body"]["data"]["release"] == 1
    service.wait(lambda: {one["state"] for one in deliveries(service, made["id"])} == {"delivered"})
    log = deliveries(service, made["id"])
    assert [(one["type"], one["status"], one["tries"]) for one in log] == [
        ("release.promoted", 204, 1), ("job.succeeded", 204, 1),
    ]  # fmt: skip
    assert {one["id"] for one in log} == {one["id"] for one in receiver.received}
    answer = service.client.post(f"/v1/webhooks/{made['id']}/ping")
    assert answer.status_code == 202, answer.text
    service.wait(lambda: "webhook.ping" in receiver.types())
    service.client.patch(f"/v1/webhooks/{made['id']}", json={"state": "disabled"}).raise_for_status()
    fresh(service, "unheard")
    assert len(deliveries(service, made["id"])) == 3
    service.client.delete(f"/v1/webhooks/{made['id']}").raise_for_status()
    problem(service.client.get(f"/v1/webhooks/{made['id']}"), 404, "no-such-webhook")
    assert made["secret"] not in service.log()
    audit = service.client.get("/v1/audit").text
    assert "create webhook" in audit
    assert made["secret"] not in audit


@slow
def test_a_failed_delivery_is_sent_again_under_its_id_until_the_webhook_is_disabled(
    service: Service, receiver: Receiver
) -> None:
    receiver.status = 307  # redirects are not followed
    made = hook(service, receiver, types=["finding.opened"])
    first = service.client.post(f"/v1/webhooks/{made['id']}/ping").json()
    with receiving() as other:
        told = hook(service, other, types=["webhook.disabled"])
        for count in range(1, TRIES + 1):
            service.wait(lambda count=count: deliveries(service, made["id"])[0]["tries"] >= count)
            service.wait(lambda count=count: _failures(service, made["id"]) >= count)
            due_now(service)
        state = service.client.get(f"/v1/webhooks/{made['id']}").json()
        assert (state["state"], state["failures"]) == ("disabled", TRIES)
        service.wait(lambda: other.received)
        assert other.received[0]["body"]["data"]["webhook"] == made["id"]
        assert other.received[0]["signed"]
        service.client.delete(f"/v1/webhooks/{told['id']}").raise_for_status()
    assert {(one["id"], one["path"]) for one in receiver.received} == {(first["id"], "/hook")}
    [left] = deliveries(service, made["id"])
    assert (left["state"], left["status"], left["problem"]) == ("waiting", 307, None)
    receiver.status = 200
    service.client.patch(f"/v1/webhooks/{made['id']}", json={"state": "enabled"}).raise_for_status()
    service.wait(lambda: deliveries(service, made["id"])[0]["state"] == "delivered")
    assert _failures(service, made["id"]) == 0
    service.client.delete(f"/v1/webhooks/{made['id']}").raise_for_status()


def _failures(service: Service, ident: str) -> int:
    return int(service.client.get(f"/v1/webhooks/{ident}").json()["failures"])


@slow
def test_what_a_webhook_cannot_be(service: Service) -> None:
    url = "https://hooks.example/x"
    key = {"Idempotency-Key": "one webhook"}
    made = service.client.post("/v1/webhooks", json={"url": url}, headers=key)
    assert made.status_code == 201, made.text
    again = service.client.post("/v1/webhooks", json={"url": url}, headers=key)
    assert made.json()["id"] in problem(again, 409, "webhook-made")["detail"]
    service.client.delete(f"/v1/webhooks/{made.json()['id']}").raise_for_status()
    told = problem(service.client.post("/v1/webhooks", json={"url": "nothing"}), 422, "bad-webhook")
    assert told["errors"][0]["pointer"] == "/url"
    weak = service.client.post("/v1/webhooks", json={"url": url, "secret": "whsec_c2hvcnQ="})
    assert problem(weak, 422, "bad-request")["errors"][0]["pointer"] == "/secret"
    odd = service.client.post("/v1/webhooks", json={"url": url, "types": ["job.odd"]})
    problem(odd, 422, "bad-request")
    problem(service.client.post("/v1/webhooks/none/ping"), 404, "no-such-webhook")
