"""What the Hub refuses, what breaks on the way, where redirects may lead, and where the token never goes."""

from __future__ import annotations

import logging
import os
import socket
import ssl
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from importer.cli.messages import hint
from importer.errors import HubError, ImporterError
from importer.hub import client, endpoint, resolve
from importer.hub.client import Deadline
from importer.hub.local import ANYWHERE
from importer.hub.reference import parse
from tests.hubserver import Content, Fault, HubServer, Repo, isolate

TOKEN = "hf_secretsecretsecret"
FILES: dict[str, Content] = {"config.json": {"model_type": "toy"}, "chat_template.jinja": "x"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    repos = {
        "a/open": Repo(FILES),
        "a/gated": Repo(FILES, gated=True, readers=(TOKEN,)),
        "a/private": Repo(FILES, private=True, readers=(TOKEN,)),
    }
    with HubServer(repos, tokens=(TOKEN, "hf_other")) as running:
        isolate(monkeypatch, tmp_path, running.url)
        monkeypatch.setattr(client, "PATIENCE", Deadline(pause=0.01))
        yield running


def refused(text: str) -> ImporterError:
    with pytest.raises(ImporterError) as caught:
        resolve(parse(text), ANYWHERE)
    said = f"{caught.value.message} {hint(caught.value)}"
    assert TOKEN not in said
    assert "hf_" not in said
    return caught.value


@pytest.mark.parametrize(
    ("text", "token", "kind"),
    [
        ("a/none", None, "private"), ("a/none", TOKEN, "not-found"), ("a/private", None, "private"),
        ("a/private", "hf_other", "not-found"), ("a/gated", None, "gated"), ("a/gated", "hf_other", "gated"),
        ("a/open", "hf_wrong", "bad-token"), ("a/open", "hf_wröng", "bad-token"),
        ("a/open@v9", None, "revision-not-found"), ("a/open@" + "f" * 40, None, "revision-not-found"),
    ],
)  # fmt: skip
def test_refusals(
    server: HubServer, monkeypatch: pytest.MonkeyPatch, text: str, token: str | None, kind: str
) -> None:
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    assert refused(text).kind == kind


@pytest.mark.parametrize("place", ["/api/models/a/open", "config.json"])
@pytest.mark.parametrize(
    "fault",
    [
        Fault("", 429, {"Retry-After": "0"}), Fault("", 429, {"RateLimit": '"api";r=0;t=0'}), Fault("", 429),
        Fault("", 500), Fault("", cut=True),
    ],
)  # fmt: skip
def test_passing_faults_are_retried(server: HubServer, place: str, fault: Fault) -> None:
    server.faults.append(Fault(place, fault.status, fault.headers, fault.body, fault.cut, times=2))
    assert set(resolve(parse("a/open"), ANYWHERE).texts) == set(FILES)
    assert len(server.log) == 5


LASTING: list[tuple[str, Fault, str, int]] = [
    ("429 with a short wait", Fault("", 429, {"Retry-After": "0"}), "rate-limited", Deadline().tries),
    ("429 with a long wait", Fault("", 429, {"Retry-After": "3600"}), "rate-limited", 1),
    ("429 with a used-up quota", Fault("", 429, {"RateLimit": '"api";r=0;t=299'}), "rate-limited", 1),
    ("503 with a long wait", Fault("", 503, {"Retry-After": "600"}), "server", 1),
    ("cut", Fault("", cut=True), "bad-answer", Deadline().tries),
    ("not JSON", Fault("", 200, body=b"<html>hello</html>"), "bad-answer", 1),
    ("not JSON of this form", Fault("", 200, body=b'{"a":' * 5000), "bad-answer", 1),
    ("no commit", Fault("", 200, body=b'{"sha": "main"}'), "bad-answer", 1),
    ("403", Fault("", 403), "forbidden", 1),
    ("404 without the Hub's code", Fault("", 404), "no-route", 1),
    ("404", Fault("", 404, {"X-Error-Code": "RepoNotFound"}), "not-found", 1),
    ("a route that is not there", Fault("", 404, {"X-Error-Code": "EntryNotFound"}), "no-route", 1),
    ("redirects in a circle", Fault("", 307, {"Location": "/api/models/a/open"}), "bad-answer", 5),
    ("redirect elsewhere", Fault("", 302, {"Location": "http://example.com/"}), "refused-host", 1),
    ("headers of a megabyte", Fault("", 403, {"X-Error-Message": "x" * 1_000_000}), "bad-answer", 5),
    ("redirect to a file", Fault("", 302, {"Location": "file:///etc/passwd"}), "refused-host", 1),
    ("redirect to metadata", Fault("", 302, {"Location": "http://169.254.169.254/x"}), "refused-host", 1),
]


@pytest.mark.parametrize(
    ("fault", "kind", "requests"), [row[1:] for row in LASTING], ids=[row[0] for row in LASTING]
)
def test_lasting_faults_have_a_kind(server: HubServer, fault: Fault, kind: str, requests: int) -> None:
    server.faults.append(Fault("/api/", fault.status, fault.headers, fault.body, fault.cut, times=99))
    assert refused("a/open").kind == kind
    assert len(server.log) == requests
    assert not list(Path(os.environ["IMPORTER_HOME"]).rglob("*.json"))


def test_the_wait_is_told(server: HubServer) -> None:
    server.faults.append(Fault("/api/", 429, {"Retry-After": "3600"}))
    assert "Wait 3600 seconds" in hint(refused("a/open"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": formatdate(0, usegmt=True)}, 0.0),
        ({"ratelimit": '"api";r=0;t=55', "retry-after": "7"}, 55.0),
        ({"ratelimit": '"api";r=0;t=5, "pages";r=0;t=9'}, 9.0),
        ({"retry-after": "9" * 5000}, None),
        ({}, None),
    ],
)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert client._requested_pause(headers) == seconds


def test_a_file_that_never_arrives_whole(server: HubServer) -> None:
    server.repos["a/open"].info["siblings"] = [{"rfilename": "config.json", "size": 5}]
    error = refused("a/open")
    assert (error.kind, "of 5 bytes arrived" in error.message) == ("bad-answer", True)


def test_a_redirect_within_the_hub_is_followed(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    target = "/a/gated/resolve/main/config.json?cached"
    server.faults.append(Fault("config.json", 307, {"Location": target}))
    assert set(resolve(parse("a/gated"), ANYWHERE).texts) == set(FILES)
    assert [e.headers["Authorization"] for e in server.log if e.path == target] == [f"Bearer {TOKEN}"]


def test_the_token_stays_with_the_endpoint(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer({"a/open": FILES}) as stranger:
        server.faults.append(
            Fault("config.json", 302, {"Location": f"{stranger.url}/a/open/resolve/main/config.json"})
        )
        assert refused("a/open").kind == "refused-host"
        assert stranger.log == []


def test_a_server_that_repeats_the_token(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    server.faults.append(Fault("/api/", 403, {"X-Error-Message": f"{TOKEN} may not"}, TOKEN.encode()))
    assert refused("a/open").kind == "forbidden"


def test_the_token_is_neither_logged_nor_kept(
    server: HubServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    caplog.set_level(logging.DEBUG)
    server.faults.append(Fault("/api/", 500, body=TOKEN.encode()))
    resolve(parse("a/gated"), ANYWHERE)
    assert server.log[-1].headers["Authorization"]
    assert "importer.hub" in {record.name for record in caplog.records}
    assert TOKEN not in caplog.text
    kept = [p.read_bytes() for p in Path(os.environ["IMPORTER_HOME"]).rglob("*") if p.is_file()]
    assert kept
    assert not any(TOKEN.encode() in data for data in kept)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (403, None, "forbidden"), (403, "GatedRepo", "gated"), (401, None, "bad-token"),
        (429, None, "rate-limited"), (503, None, "server"),
    ],
)  # fmt: skip
def test_the_servers_own_message_is_shown(
    server: HubServer, monkeypatch: pytest.MonkeyPatch, status: int, code: str | None, kind: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    said = f"\x1b[31mAccess to {TOKEN} is disabled.\x07 " + "x" * 9000
    headers = {"X-Error-Message": said, "Retry-After": "999"} | ({"X-Error-Code": code} if code else {})
    server.faults.append(Fault("/api/", status, headers))
    error = refused("a/open")
    assert (error.kind, "is disabled." in error.message) == (kind, True)
    assert error.message.isprintable()
    assert len(str(error.details)) < 1000


# The way to the Hub


@pytest.fixture
def new_session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the HTTP session, whose proxies and certificates are read once, and this machine's variables."""
    from huggingface_hub import close_session

    for scheme in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{scheme}_proxy", raising=False)
        monkeypatch.delenv(f"{scheme}_proxy".upper(), raising=False)
    close_session()
    yield
    close_session()


@pytest.mark.parametrize(
    ("variable", "address", "shown"),
    [
        ("http_proxy", "http://127.0.0.1:9", "http://127.0.0.1:9 of http_proxy"),
        ("ALL_PROXY", "http://user:secret@127.0.0.1:9", "http://127.0.0.1:9 of ALL_PROXY"),
        ("http_proxy", "socks5://127.0.0.1:9", "socksio"),
        ("http_proxy", "ftp://127.0.0.1:9", "of http_proxy"),
        ("http_proxy", "http://user:secret", "malformed"),
    ],
)
@pytest.mark.usefixtures("new_session")
def test_a_proxy_that_leads_nowhere_is_named(
    server: HubServer, monkeypatch: pytest.MonkeyPatch, variable: str, address: str, shown: str
) -> None:
    monkeypatch.setenv(variable, address)
    error = refused("a/open")
    assert (error.kind, shown in error.message, server.log) == ("proxy", True, [])
    assert variable in hint(error)
    assert "secret" not in f"{error.message} {hint(error)} {error.details}"


@pytest.mark.usefixtures("new_session")
def test_a_proxy_that_wants_a_password_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path, "http://hub.example")
    with HubServer({}) as proxy:
        proxy.faults.append(Fault("", 407))
        monkeypatch.setenv("http_proxy", proxy.url)
        error = refused("a/open")
    assert (error.kind, "status 407" in error.message) == ("proxy", True)


@pytest.mark.usefixtures("new_session")
def test_a_hub_that_no_proxy_is_for_is_not_laid_on_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    isolate(monkeypatch, tmp_path, "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:10")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert refused("a/open").kind == "network"


@pytest.mark.usefixtures("new_session")
def test_a_certificate_that_is_not_trusted_names_the_variable_that_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("tests/fixtures/self_signed.pem")
    with HubServer({"a/open": FILES}) as running:
        running._server.socket = context.wrap_socket(running._server.socket, server_side=True)
        isolate(monkeypatch, tmp_path, running.url.replace("http://", "https://"))
        error = refused("a/open")
        assert (error.kind, "self-signed" in error.message) == ("certificate", True)
        assert "Set SSL_CERT_FILE" in hint(error)


@pytest.mark.parametrize("content", [None, "no certificate"])
@pytest.mark.usefixtures("new_session")
def test_a_file_of_authorities_that_cannot_be_used_is_named(
    server: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "authorities.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    error = refused("a/open")
    assert (error.kind, server.log) == ("certificate", [])
    assert f"SSL_CERT_FILE={file}" in hint(error)


def test_a_mirror_that_sends_on_to_the_hub_is_named(server: HubServer) -> None:
    server.faults.append(Fault("/api/", 308, {"Location": "https://huggingface.co/api/models/a/open"}))
    error = refused("a/open")
    told = f"{server.url}/api/models/a/open redirects to"
    assert (error.kind, told in error.message) == ("refused-host", True)
    assert "unset" in hint(error)


STORAGE = [
    ("", False),
    ("OTHER", True),
    ("files.example, OTHER", True),
    ("127.0.0.1", False),  # the default port
    ("http://OTHER", None),
]


@pytest.mark.parametrize(("listed", "followed"), STORAGE)
def test_a_host_of_the_operators_list_is_followed_without_the_token(
    server: HubServer, monkeypatch: pytest.MonkeyPatch, listed: str, followed: bool | None
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer({"a/gated": FILES}) as other:
        place = other.url.removeprefix("http://")
        monkeypatch.setenv("IMPORTER_HUB_HOSTS", listed.replace("OTHER", place))
        target = f"{other.url}/a/gated/resolve/main/config.json"
        server.faults.append(Fault("config.json", 302, {"Location": target}))
        if followed:
            assert resolve(parse("a/gated"), ANYWHERE).texts["config.json"]
            assert [entry.headers["Authorization"] for entry in other.log] == [None]
            return
        error = refused("a/gated")
        assert error.kind == ("bad-value" if followed is None else "refused-host")
        assert followed is None or place in hint(error)
        assert other.log == []


def test_no_list_of_hosts_leads_to_a_clouds_metadata_or_away_from_https(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example")
    monkeypatch.setenv("IMPORTER_HUB_HOSTS", "169.254.169.254,files.example,forged.example")
    addresses = {"forged.example": "::ffff:169.254.169.254", "169.254.169.254": "169.254.169.254"}
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *_: [(0, 0, 0, "", (addresses.get(host, "10.0.0.1"), 443))]
    )
    assert endpoint.redirected("https://hub.example/a", "https://files.example/x")
    for target in (
        "https://169.254.169.254/x", "http://files.example/x", "https://user@files.example/x",
        "https://files.example:8443/x", "https://forged.example/x", "https://a.files.example/x",
    ):  # fmt: skip
        with pytest.raises(HubError) as caught:
            endpoint.redirected("https://hub.example/a", target)
        assert caught.value.kind == "refused-host", target


PUBLIC = [
    ("https://huggingface.co/api/models/a/b", True, True),
    ("https://cdn-lfs-us-1.hf.co/x?Signature=1", True, False),
    ("https://cdn-lfs.huggingface.co/x", True, False), ("http://huggingface.co/x", False, False),
    ("https://cdn-lfs.hf.co:8443/x", False, False), ("https://huggingface.co.example.com/x", False, False),
    ("https://nothf.co/x", False, False), ("https://huggingface.co@example.com/x", False, False),
    ("https://127.0.0.1/x", False, False), ("https://[::1", False, False),
    ("https://huggingface.co/" + "x" * 9000, False, False),
]  # fmt: skip


@pytest.mark.parametrize(("url", "follow", "token"), PUBLIC)
def test_redirects_of_the_public_hub(
    monkeypatch: pytest.MonkeyPatch, url: str, follow: bool, token: bool
) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(0, 0, 0, "", ("18.1.2.3", 443))])
    if follow:
        assert endpoint.redirected("https://huggingface.co/a", url) == url
        assert endpoint.may_carry_token(url) == token
        return
    with pytest.raises(HubError) as caught:
        endpoint.redirected("https://huggingface.co/a", url)
    assert caught.value.kind == "refused-host"
