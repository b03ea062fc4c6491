"""``importer serve`` and ``keys`` as commands: addresses, keys, limits."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.commandline import Desk, desk
from tests.serving import running
from tests.test_service import problem

__all__ = ["desk"]
pytestmark = pytest.mark.slow


def test_any_address_but_loopback_needs_a_key(desk: Desk) -> None:
    url = f"sqlite:///{desk.folder / 'g.sqlite'}"
    refused = desk.alone("serve", "--host", "0.0.0.0", "--database", url)
    assert (refused.code, "bad-setting" in refused.err, "importer keys create" in refused.err) == (
        7,
        False,
        True,
    )
    odd = desk("keys", "revoke", "nobody", "--database", url)
    assert (odd.code, "no-such-key" in odd.err) == (7, False)


def test_a_port_that_is_taken_is_told(desk: Desk) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ran = desk.alone("serve", "--port", port, "--no-validate", "--imports", "0")
    assert ran.code == 7  # "not-listening"
    assert f"port {port}" in ran.err


def test_keys_and_limits_of_a_server_that_others_can_reach(tmp_path: Path, desk: Desk) -> None:
    url = f"sqlite:///{tmp_path / 'gallery.sqlite'}"
    made = desk("keys", "create", "ann", "--scope", "import", "--scope", "read", "--database", url)
    assert desk("keys", "list", "--json", "--database", url).out.count("ann") == 1
    key = {"Authorization": f"Bearer {made.out.strip()}"}
    words = ("--host", "0.0.0.0", "--rate", "2", "--references", "1")
    with running(tmp_path, *words) as service:
        problem(service.client.get("/v1/configs"), 401, "no-key")
        assert service.client.get("/v1/configs", headers=key).status_code == 200
        many = service.client.post("/v1/imports", json={"references": ["a/b"] * 2}, headers=key)
        problem(many, 422, "bad-request")
        problem(service.client.post("/v1/configs/x/approve", headers=key), 403, "wrong-scope")
        refused = service.client.post("/v1/imports", json={"reference": "a/b"}, headers=key)
        problem(refused, 429, "too-many")
        assert int(refused.headers["Retry-After"]) > 0
        assert service.stop() == 0
