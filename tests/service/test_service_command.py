"""``importer serve`` and ``api-keys`` as commands: addresses, keys, limits."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from importer.service.server import listening
from importer.storage.database import Database
from importer.storage.schema import prepare
from tests.commandline import Desk, Ran, desk
from tests.hubserver import HubServer
from tests.serving import Service, problem, running

__all__ = ["desk"]
pytestmark = pytest.mark.slow
LISTENING = re.compile(r"listening on (http://127\.0\.0\.1:[1-9][0-9]*)")


def test_any_address_but_loopback_needs_a_key(desk: Desk) -> None:
    url = f"sqlite:///{desk.folder / 'g.sqlite'}"
    refused = desk("serve", "--host", "0.0.0.0", "--database", url)
    assert (refused.code, "importer admin api-keys create" in refused.err) == (7, True)
    odd = desk("admin", "api-keys", "revoke", "nobody", "--database", url)
    assert (odd.code, "no-such-key" in odd.err) == (7, False)


def test_a_port_that_is_taken_is_told(desk: Desk) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ran = desk.alone("serve", "--port", port, "--no-validate", "--imports", "0")
    assert ran.code == 7  # "not-listening"
    assert f"port {port}" in ran.err
    assert "address already in use" in ran.err.lower()
    assert not list(desk.folder.rglob("*.jobs"))  # nothing had begun that others could wait for


@pytest.mark.parametrize("command", ["serve", "admin worker", "admin api-keys list"])
def test_a_database_that_cannot_be_used_is_one_sentence(desk: Desk, command: str) -> None:
    (desk.folder / "file").write_text("no folder, and no database either: " * 40)
    places = (
        (f"sqlite:///{desk.folder}/file/g.sqlite", "file"),
        (f"sqlite:///{desk.folder}/file", "not a database"),
        ("postgresql://ann:sekret@127.0.0.1:1/x", "refused"),
    )
    for url, said in places:
        ran = desk(*command.split(), "--database", url)
        assert (ran.code, ran.out) == (7, ""), ran.err  # "no-gallery"
        assert said in ran.err.splitlines()[0]
        assert "sekret" not in ran.err


def test_an_audit_of_a_wrong_path_makes_no_database(desk: Desk) -> None:
    ran = desk("admin", "audit", "--database", f"sqlite:///{desk.folder / 'g.sqlite'}")
    assert (ran.code, "there is no such file" in ran.err) == (7, True)
    assert not list(desk.folder.glob("g.sqlite*"))


def keys_of(desk: Desk, *statements: str, prepared: bool = True) -> Ran:
    """The list of keys of a database in which statements were executed."""
    url = f"sqlite:///{desk.folder / 'g.sqlite'}"
    database = Database(url)
    if prepared:
        prepare(database)
    with database.writing() as connection:
        for statement in statements:
            connection.execute(text(statement))
    database.close()
    return desk("admin", "api-keys", "list", "--database", url)


def test_a_database_of_a_newer_importer_is_left_alone(desk: Desk) -> None:
    ran = keys_of(desk, "INSERT INTO migrations (number) VALUES (99)")
    assert (ran.code, "migration 99" in ran.err) == (7, True)  # "newer-gallery"


def test_a_database_of_the_development_is_not_called_newer(desk: Desk) -> None:
    """Its ten migrations had the numbers that are free now."""
    ran = keys_of(
        desk,
        "CREATE TABLE migrations (number INTEGER PRIMARY KEY)",
        "INSERT INTO migrations (number) VALUES (1), (2), (10)",
        "CREATE TABLE audit (id INTEGER PRIMARY KEY, at TEXT, trace TEXT)",
        prepared=False,
    )
    assert (ran.code, "before 0.1.0" in ran.err, "newer" in ran.err) == (7, True, False)  # "early-gallery"


def test_a_database_of_the_development_with_a_column_more_is_refused(desk: Desk) -> None:
    """Its rechecks had a row for each job: read as rows of today they would be those of any job."""
    ran = keys_of(desk, "ALTER TABLE rechecks ADD COLUMN outcome TEXT")
    assert (ran.code, "before 0.1.0" in ran.err) == (7, True)  # "early-gallery"


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--memory", "lots"), ("--allowed-host", "http://here/"), ("--trusted-proxy", "proxy"),
     ("--trusted-proxy", "*")],
)  # fmt: skip
def test_a_setting_that_could_never_count_is_told(desk: Desk, flag: str, value: str) -> None:
    ran = desk("serve", flag, value)
    assert (ran.code, flag in ran.err) == (7, True)  # "bad-setting"


def test_a_free_port_is_told(tmp_path: Path) -> None:
    with HubServer({}) as hub:
        service = Service(tmp_path, hub)
        service.port = 0
        service.start(ready=False)
        found = service.wait(lambda: LISTENING.search(service.log()))
        assert httpx.get(f"{found[1]}/readyz", trust_env=False).status_code == 200
        service.close()


def test_keys_and_limits_of_a_server_that_others_can_reach(tmp_path: Path, desk: Desk) -> None:
    url = f"sqlite:///{tmp_path / 'gallery.sqlite'}"
    made = desk(
        "admin", "api-keys", "create", "ann", "--scope", "import", "--scope", "read", "--database", url
    )
    assert made.err == f"The key is for servers with the database {url}; it is shown once.\n"
    assert desk("admin", "api-keys", "list", "--json", "--database", url).out.count("ann") == 1
    key = {"Authorization": f"Bearer {made.out.strip()}"}
    words = ("--host", "0.0.0.0", "--rate", "2", "--references", "1", "--allowed-host", "127.0.0.1")
    with running(tmp_path, *words) as service:
        balancer = {"Host": "10.1.2.3:8080"}  # knows addresses, and no names
        for path in ("/healthz", "/readyz"):
            assert service.client.get(path, headers=balancer).status_code == 200
        problem(service.client.get("/v1/configs", headers=key | balancer), 421, "foreign-host")
        problem(service.client.get("/v1/configs"), 401, "no-key")
        assert service.client.get("/v1/configs", headers=key).status_code == 200
        many = service.client.post("/v1/imports", json={"references": ["a/b"] * 2}, headers=key)
        problem(many, 422, "bad-request")
        problem(service.client.post("/v1/configs/x/approve", headers=key), 403, "wrong-scope")
        refused = service.client.post("/v1/imports", json={"reference": "a/b"}, headers=key)
        problem(refused, 429, "too-many")
        assert int(refused.headers["Retry-After"]) > 0
        assert service.stop() == 0


def test_the_body_of_an_answer_does_not_wait_for_its_head() -> None:
    with listening("127.0.0.1", 0) as server, socket.create_connection(server.getsockname()):
        taken, _ = server.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
