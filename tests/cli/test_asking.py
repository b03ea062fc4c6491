"""What ``validate`` can be told to ask: probes by name, a server that runs."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from importer.cli.validating import _better_form
from importer.document.receipt import Receipt, parse
from importer.document.store import load
from importer.document.validation_state import validation
from importer.signals.observed import CallForm
from importer.validation.client import Client, Exchange, secrets_of, without
from importer.validation.errors import ServerUnreachable
from tests.commandline import Desk
from tests.openai_api import api
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow
WRITTEN = """\
name: chat
backend: mlx
parameters:
  model: ./toy
options:
- tool_parser:json_tools
"""
KEY = "sk-secret-of-the-test"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}},
    },
}


@pytest.fixture
def document(desk: Desk) -> Desk:
    desk("acme/chat", "--yes", "--set", "tool_parser=hermes")
    return desk


@pytest.fixture
def written(desk: Desk) -> Desk:
    """The same by hand, which takes no import."""
    path = desk.folder / "models" / "chat.yaml"
    path.parent.mkdir()
    path.write_text(WRITTEN)
    return desk


def receipt(desk: Desk) -> Receipt:
    return parse(json.loads((desk.folder / "models" / "chat.receipt.json").read_text()))


def test_the_list_of_probes_needs_no_document(desk: Desk) -> None:
    rows = [json.loads(line) for line in desk("validate", "--list-probes", "--json").out.splitlines()]
    assert {"tool-call": "a tool parser is named", "health": "always"}.items() <= {
        r["probe"]: r["needs"] for r in rows
    }.items()
    assert all(r["lesson"] for r in rows)
    assert "tool-result-turn" in desk("validate", "--list-probes").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--probe", "tool-cal"], "There is no probe 'tool-cal'.\nDid you mean tool-call"),
        (["--api-key-env", "KEY"], "is valid with --against only"),
        (["--against", "http://127.0.0.1:1", "--port", "8000"], "is not valid with --against"),
        (["--against", "ftp://a"], "must be an address such as"),
        (["--against", "http://a/\x1b[2J"], "must be an address such as"),
        (["--against", "http://me:secret@a"], "must not hold a password"),
        (["--against", "http://a/v1?x=1"], "must not have a query"),
        (["--against", "http://127.0.0.1:1", "--api-key-env", "NOT_SET"], "NOT_SET is not set"),
        (["--against", "http://127.0.0.1:1", "--api-key-env", "ODD"], "is not a valid key"),
        (["--header-env", "X-Key=FINE"], "is valid with --against only"),
        (["--header-env", "X-Key"], "must be the name of a header and of an environment variable"),
        (["--header-env", "X-Ü=FINE"], "Header number 1 has no valid name"),
        (["--header-env", "X-Key=ODD"], "Header X-Key has a value that is not one line"),
        (["--header-env", "X-Key=LONG"], "Header X-Key has a value that is not one line"),
        (["--header-env", "Host=FINE"], "Header Host belongs to the request itself"),
        (["--header-env", "X-Key=FINE", "--header-env", "x-key=FINE"], "Header x-key is given twice"),
        (["--header-env", "Authorization=FINE", "--api-key-env", "FINE"], "is given beside a key"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(written: Desk, words: Sequence[str], says: str) -> None:
    written.monkeypatch.setenv("ODD", f"{KEY}\nX-Other: 1")
    written.monkeypatch.setenv("FINE", KEY)
    written.monkeypatch.setenv("LONG", "secret" * 2000)
    if words[0].startswith("--header") and "valid with" not in says:
        words = ["--against", "http://127.0.0.1:1", *words]
    ran = written("validate", "chat", *words)
    assert ran.code == 2, ran.err
    assert says in ran.err
    assert len(ran.err.splitlines()) == 2
    assert "secret" not in ran.err


def questions(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was asked beside the one greeting that shows the server's make."""
    return [request for request in asked if request.get("max_tokens") != 1]


def test_a_server_that_runs_is_asked_under_its_name_and_with_its_key(document: Desk) -> None:
    document.monkeypatch.setenv("KEY", KEY)
    with api(KEY) as (url, asked):
        words = ["validate", "chat", "--against", url, "--api-key-env", "KEY", "--model", "hers"]
        ran = document(*words, "--probe", "health", "plain-chat", "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["passed"]) == (0, True), ran.err
    assert report["engine"] == {"name": url, "version": "9.8.7"}
    assert report["partial"] == {"probes": ["health", "plain-chat"], "against": url, "model": "hers"}
    assert [o["reason"] for o in report["outcomes"]] == ["/v1/models answers", "answered 'Hello, Bearer …!'"]
    assert {(a["model"], a["authorization"]) for a in asked} == {("hers", f"Bearer {KEY}")}
    kept = (document.folder / "models" / "chat.receipt.json").read_text()
    assert KEY not in kept + ran.out + ran.err


def test_headers_go_with_every_request_and_into_no_report(document: Desk) -> None:
    """The server sends back all that it gets: whole, in pieces of a stream, in another form, in an error."""
    document.monkeypatch.setenv("TEAM_KEY", f'{KEY}/"quoted" part')
    document.monkeypatch.setenv("BASIC", "Basic c2VjcmV0LW9mLXRoZS10ZXN0")
    sent = ["--header-env", "Authorization=BASIC", "--header-env", "X-Team=TEAM_KEY"]
    with api() as (url, asked):
        words = ["validate", "chat", "--against", url, "--model", "hers", *sent, "--json"]
        ran = document(*words, "--report", "out.html", "--report", "out.json")
    report = json.loads(ran.out)
    reasons = {o["probe"]: o["reason"] for o in report["outcomes"]}
    assert reasons["plain-chat"] == "answered 'Hello, …!'"
    assert {a["authorization"] for a in asked} == {"Basic c2VjcmV0LW9mLXRoZS10ZXN0"}
    assert {a["headers"]["X-Team"] for a in asked} == {f'{KEY}/"quoted" part'}
    kept = "".join(
        path.read_text() for path in document.folder.rglob("*") if path.suffix in (".json", ".html")
    )
    for secret in (KEY, "c2VjcmV0LW9mLXRoZS10ZXN0", "quoted"):
        assert secret not in kept + ran.out + ran.err


def test_no_header_follows_a_redirection_to_another_host(written: Desk) -> None:
    with api() as (elsewhere, asked), api(moved_to=elsewhere) as (url, _):
        written.monkeypatch.setenv("KEY", KEY)
        sent = ["--header-env", "X-Team=KEY", "--model", "hers", "--probe", "plain-chat"]
        ran = written("validate", "chat", "--against", url, *sent)
    assert (ran.code, asked) == (6, [])
    assert "it redirects: " in ran.err
    assert KEY not in ran.out + ran.err


def test_a_part_never_counts_as_the_documents_validation(document: Desk) -> None:
    with api() as (url, _):
        assert (
            document("validate", "chat", "--against", url, "--model", "hers", "--probe", "health").code == 0
        )
    stored = load(document.folder / "models" / "chat.yaml")
    found = receipt(document)
    assert validation(found, stored.data, stored.digest).state == "never"
    assert found.partial is not None
    assert found.partial["digest"] == stored.digest
    assert json.loads(document("list", "--json").out)["validation"] == "never"
    whole = {"engine": {"name": stored.backend}, "seconds": {}, "outcomes": [], "passed": True}
    after = found.with_validation(whole, stored.digest).with_validation(found.partial, stored.digest)
    assert validation(after, stored.data, stored.digest).state == "passed"


def test_the_command_of_another_form_repeats_the_import(
    document: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes the same document in the same folder, on the same engine."""
    stored = load(document.folder / "models" / "chat.yaml")
    forms: list[Any] = [
        CallForm("hermes", right, 12, name).to_json() for right, name in ((0, ""), (9, "none"))
    ]
    _better_form(forms, stored)
    told = capsys.readouterr()
    [command] = re.findall(r"calls: with (importer .*?) 9 of 12 calls arrive", told.out + told.err)
    words = shlex.split(command)
    assert "--template none" in command
    assert document(*words[1:], "--yes", "--no-validate").code == 0
    again = load(document.folder / "models" / "chat.yaml")
    assert (again.name, again.backend, again.reference) == (stored.name, stored.backend, stored.reference)


def test_a_thorough_run_asks_the_same_abilities_until_their_intervals_are_narrow(written: Desk) -> None:
    figures = []
    for words in ((), ("--thorough",)):
        with api() as (url, _):
            tools = ["--probe", "tool-call", "no-tool-needed", *words]
            ran = written("validate", "chat", "--against", url, "--model", "hers", *tools, "--json")
        figures.append(json.loads(ran.out)["abilities"])
    assert figures[1].keys() == figures[0].keys()
    for name in ("tools", "restraint"):
        least, most = figures[1][name]["interval"]
        assert most - least <= 0.1


def test_the_last_run_of_each_other_engine_is_kept(document: Desk) -> None:
    found = receipt(document)
    for name, version in (("mlx", "1"), ("vllm", "1"), ("mlx", "2"), ("mlx", "1"), ("vllm", "1")):
        report = {"engine": {"name": name, "version": version}, "passed": True, "outcomes": [], "seconds": {}}
        found = found.with_validation(report, "sha256:0")
    engines = [(r["engine"]["name"], r["engine"]["version"]) for r in found.runs]
    assert engines == [("vllm", "1"), ("mlx", "1"), ("mlx", "2")]


@pytest.mark.parametrize("key", [None, "wrong-key-that-is-sent-back"])
def test_a_server_that_lets_nobody_in_is_told_in_a_sentence(written: Desk, key: str | None) -> None:
    written.monkeypatch.setenv("KEY", key or "x")
    with api(KEY) as (url, _):
        ran = written("validate", "chat", "--against", url, *(["--api-key-env", "KEY"] if key else []))
    assert ran.code == 6
    assert "does not let this caller in" in ran.err
    assert "wrong-key-that" not in ran.err


def test_a_model_that_the_server_does_not_have_and_a_server_that_is_not_there(written: Desk) -> None:
    with api(names=("hers", "his")) as (url, asked):
        ran = written("validate", "chat", "--against", url)
    assert (ran.code, asked) == (2, [])
    assert "serves no model named 'chat'" in ran.err
    assert "it serves: hers, his" in ran.err
    with api(names=("hers", "his"), knows=("hers", "his")) as (url, asked):
        ran = written("validate", "chat", "--against", url, "--model", "chit")
    assert (ran.code, len(asked)) == (2, 1)
    assert "serves no model named 'chit'" in ran.err
    ran = written("validate", "chat", "--against", url)
    assert ran.code == 6
    assert "cannot be asked" in ran.err


def test_the_only_model_is_taken_and_named(written: Desk) -> None:
    with api(names=("/srv/other",), knows=("/srv/other",)) as (url, _):
        ran = written("validate", "chat", "--against", url, "--probe", "plain-chat")
        quiet = written("validate", "chat", "--against", url, "--probe", "plain-chat", "-q")
    assert ran.code == 0, ran.err
    assert "chat: the server calls the model /srv/other." in ran.err
    assert re.match(r"chat: [12] pass .* against http\S+ \(", quiet.err), quiet.err


def test_an_exchange_ends_when_its_client_hangs_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client, log = Client(f"http://127.0.0.1:{listener.getsockname()[1]}"), list[Exchange]()
        failed: list[BaseException] = []

        def ask() -> None:
            try:
                client.get("/health", log)
            except ServerUnreachable as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            client.hang_up()
            thread.join(PATIENCE)
            assert not thread.is_alive()
    assert failed
    with pytest.raises(ServerUnreachable):
        client.get("/health", log)


@pytest.mark.parametrize("tokenizes", [True, False])
def test_what_a_server_has_beside_the_api_is_found_out(written: Desk, tokenizes: bool) -> None:
    with api(tokenizes=tokenizes, knows=("hers",)) as (url, _):  # without a model's name all is absent
        words = ["validate", "chat", "--against", url, "--model", "hers", "--json"]
        ran = written(*words, "--probe", "tokenizer-whole", "other-paths")
    outcomes = {o["probe"]: o["outcome"] for o in json.loads(ran.out)["outcomes"]}
    assert outcomes == {
        "tokenizer-whole": "pass" if tokenizes else "not-applicable",
        "other-paths": "not-applicable",
    }


@pytest.mark.slow
def test_ctrl_c_waits_for_no_server(written: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        words = ("validate", "chat", "--against", url, "--model", "hers", "--probe", "plain-chat")
        with written.start(*words) as process:
            while True:
                hanging, _ = listener.accept()
                asked = hanging.recv(65536)
                if b"POST /v1/chat" in asked:
                    break  # and is never answered
                with hanging:
                    status = b"200 OK" if b"GET" in asked else b"404 Not Found"
                    hanging.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\n{}")
            with hanging:
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "importer: Stopped." in err) == (130, True), err


def test_a_key_is_cut_out_wherever_a_server_puts_it() -> None:
    said = {"a": [f"x {KEY} y", {KEY: 1}], "b": (KEY,), "c": None}
    assert without(said, secrets_of([KEY])) == {"a": ["x … y", {"…": 1}], "b": ["…"], "c": None}
    assert without({"a": "EMPTY"}, secrets_of(["EMPTY"])) == {"a": "EMPTY"}  # a local server's key


def test_a_key_on_http_to_another_machine_is_warned_of(written: Desk, tmp_path: Path) -> None:
    written.monkeypatch.setenv("KEY", KEY)
    ran = written("validate", "chat", "--against", "http://192.0.2.1.invalid", "--api-key-env", "KEY")
    assert ran.code == 6
    assert "over http, where others can read them" in ran.err
    ran = written("validate", "chat", "--against", "http://192.0.2.1.invalid", "--header-env", "X-Team=KEY")
    assert "over http, where others can read them" in ran.err
