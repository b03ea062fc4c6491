"""Hostile requests, pages, repositories and clients: the promises of docs/security.md."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importer.service.security import DEPTH, HEADERS, too_deep
from tests.commandline import BASE, TOKEN
from tests.hubserver import Fault, Repo
from tests.serving import PATIENCE, Service, problem, running

slow = pytest.mark.slow
LINK_LOCAL = "http://169.254.169.254/latest/meta-data"
ECHOED = ("pipeline_tag", "library_name", "tags", "gated", "lastModified")
INSIDE = "what only this machine may read"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with a token of the Hub, a repository that needs it, and a folder to import from."""
    folder = tmp_path_factory.mktemp("hostile")
    _folders(folder)
    repos = {"acme/secret": Repo(BASE, private=True, readers=(TOKEN,))}
    words = ("--directory", str(folder / "models"), "--body-seconds", "2", "--references", "5")
    with running(folder, *words, env={"HF_TOKEN": TOKEN}, **repos) as one:
        yield one


def _folders(folder: Path) -> None:
    """A model that may be imported, one that may not, and links from the one to the other."""
    for name in ("models/good", "outside/model", "models/linking"):
        (folder / name).mkdir(parents=True)
        for file, data in BASE.items():
            (folder / name / file).write_text(json.dumps(data))
    (folder / "outside" / "secret.json").write_text(json.dumps({"temperature": 0.1, "inside": INSIDE}))
    (folder / "models" / "link").symlink_to(folder / "outside" / "model")
    (folder / "models/linking/generation_config.json").unlink()
    (folder / "models/linking/generation_config.json").symlink_to(folder / "outside" / "secret.json")


def everything(service: Service) -> str:
    """All that the server answers, logs and keeps."""
    paths = ["/v1/configs", "/v1/jobs?limit=200", "/metrics", "/openapi.json"]
    for job in service.client.get("/v1/jobs?limit=200").json()["items"]:
        paths += [job["links"]["self"]["href"], job["links"]["events"]["href"]]
    for config in service.client.get("/v1/configs").json()["items"]:
        paths += [link["href"] for link in config["links"].values()]
    said = [service.client.get(path).text for path in paths]
    files = [p for p in service.folder.glob("*") if p.is_file()]
    return "\n".join(said + [p.read_bytes().decode("utf-8", "replace") for p in files])


# The Hub, and what it must not be made to do


@slow
def test_the_token_goes_to_the_hub_and_is_answered_logged_and_kept_nowhere(service: Service) -> None:
    assert service.imported("acme/secret", name="private")["state"] == "succeeded"
    asked = [e for e in service.hub.log if "acme/secret" in e.path]
    assert any(e.headers.get("Authorization") == f"Bearer {TOKEN}" for e in asked)
    repeated = json.dumps({"error": f"no access with {TOKEN}"}).encode()
    for status in (401, 403, 404, 500):
        service.hub.faults = [Fault("acme/chat", status, {"X-Error-Message": TOKEN}, repeated, times=9)]
        assert service.imported("acme/chat", name="never")["state"] == "failed"
    service.hub.faults = []
    shown = service.client.post("/v1/imports/preview", json={"reference": "acme/secret", "backend": "vllm"})
    assert shown.status_code == 200
    assert TOKEN not in shown.text + everything(service)


@slow
@pytest.mark.parametrize(
    "reference",
    [
        LINK_LOCAL, "http://127.0.0.1:1/a/b", "http://[::1]/a/b", "http://localhost/a/b", "file:///etc/passwd",
        "ftp://huggingface.co/a/b", "https://huggingface.co@evil.example/a/b", "gopher://huggingface.co/a/b",
        "https://huggingface.co.evil.example/a/b", "https://huggingface.co:8443/a/b", "//evil.example/a/b",
        "https://evil.example/?https://huggingface.co/a/b", "hf://../../etc/passwd", "a/../../b",
        "/etc", "/etc/passwd", "./outside/model", "~/models", "..", "a/b@../../main", "a/b\x00",
        "http://2852039166/a/b", "http://0x7f000001/a/b", "a/b#\r\nHost: evil.example",
    ],
)  # fmt: skip
def test_a_reference_leads_to_the_hub_or_nowhere(service: Service, reference: str) -> None:
    asked = service.hub.asked
    for path in ("/v1/imports", "/v1/imports/preview"):
        answer = service.client.post(path, json={"reference": reference, "backend": "vllm"})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == "/reference"
    assert service.hub.asked == asked


@slow
def test_a_key_or_a_value_that_is_not_what_it_seems_is_refused(service: Service) -> None:
    for said in ({"temperature=0.1 #": 1}, {"description": "\ud800"}, {"roles": {"\udfff": 1}}):
        for path in ("/v1/imports", "/v1/imports/preview"):
            body = json.dumps({"reference": "acme/base", "backend": "vllm", "set": said}).encode()
            answer = service.client.post(path, content=body, headers={"Content-Type": "application/json"})
            assert problem(answer, 422, "bad-request")["errors"][0]["pointer"].startswith("/set/")


@slow
@settings(max_examples=8, deadline=None)
@given(st.sets(st.sampled_from(ECHOED), min_size=1), st.characters(categories=["Cs"]), st.uuids())
def test_half_of_a_character_is_no_fault_of_the_server(
    service: Service, places: set[str], half: str, number: UUID
) -> None:
    """No JSON can be made of it: a search of the Hub answered 500."""
    name, text = f"acme/half-{number.hex}", f"a{half}b"
    info = {place: [text] if place == "tags" else text for place in places}
    card = {"cardData": {"license": text, "base_model": [text]}}
    config = {"model_type": text, "architectures": ["Qwen3ForCausalLM"]}
    service.hub.repos[name] = Repo({**BASE, "config.json": json.dumps(config)}, info=info | card)
    hits = service.client.get("/v1/hub/models", params={"q": number.hex})
    assert (hits.status_code, number.hex in hits.text) == (200, True)
    body = {"reference": name, "backend": "vllm"}
    assert service.client.post("/v1/imports/preview", json=body).status_code == 200
    for wrong in ({place: text} for place in ("name", "note", "device", "reference", text)):
        sent = json.dumps(body | wrong)
        told = service.client.post("/v1/imports", content=sent, headers={"Content-Type": "application/json"})
        assert told.status_code == 422, (wrong, told.text)


@slow
def test_more_than_a_document_holds_is_refused_before_anything_reads_it(service: Service) -> None:
    service.imported("acme/base", name="small")
    for said in ({f"engine_args.k{i}": i for i in range(201)}, {"description": "x" * 64_001}):
        body = {"reference": "acme/base", "backend": "vllm", "set": said}
        for path in ("/v1/imports", "/v1/imports/preview"):
            told = problem(service.client.post(path, json=body), 422, "bad-request")
            assert told["errors"][0]["pointer"] == "/set"
    large = {f"k{i}": "x" * 100 for i in range(5000)}
    for ask in (service.client.put, service.client.patch):
        told = problem(ask("/v1/configs/small", json=large, headers={"If-Match": "*"}), 422, "invalid")
        assert "256,000 bytes" in told["detail"]


@slow
def test_an_address_that_is_none_is_no_fault_of_the_server(service: Service) -> None:
    for host in ("[", "[::1", "[::1]]", "a@127.0.0.1", "127.0.0.1@a", "]["):
        problem(service.client.get("/healthz", headers={"Host": host}), 421, "foreign-host")
    for origin in ("http://[", "http://[::1", "null", "http://", "://"):
        answer = service.client.post("/v1/imports", json={}, headers={"Origin": origin})
        problem(answer, 403, "foreign-page")


@slow
def test_no_request_names_the_endpoint_or_the_token(service: Service) -> None:
    for member in ("endpoint", "token", "hf_endpoint", "env", "trust_remote_code"):
        answer = service.client.post("/v1/imports", json={"reference": "a/b", member: LINK_LOCAL})
        assert problem(answer, 422, "bad-request")["errors"][0]["pointer"] == f"/{member}"


@slow
def test_every_redirect_is_looked_at_again(service: Service) -> None:
    with socket.socket() as inside:
        inside.bind(("127.0.0.1", 0))
        inside.listen()
        inside.settimeout(0.2)
        own = f"http://127.0.0.1:{inside.getsockname()[1]}/"
        for place in (LINK_LOCAL, own, "file:///etc/passwd", "http://[fe80::1]/", "//10.0.0.1/x"):
            service.hub.faults = [Fault("acme/base", 302, {"Location": place}, times=9)]
            job = service.imported("acme/base", name="led")
            assert (job["state"], job["error"]["kind"]) == ("failed", "refused-host"), (place, job)
        service.hub.faults = []
        with pytest.raises(TimeoutError):
            inside.accept()


@slow
def test_directories_are_read_from_where_the_operator_said_alone(service: Service) -> None:
    good = service.folder / "models" / "good"
    assert service.imported(str(good), name="local")["state"] == "succeeded"
    for place in (f"{good}/../../outside/model", str(service.folder / "models" / "link")):
        refused = service.client.post("/v1/imports", json={"reference": place, "backend": "vllm"})
        assert refused.status_code == 422, refused.text
    job = service.imported(str(service.folder / "models" / "linking"), name="linking")
    told = service.client.get("/v1/configs/linking/receipt").text if job["state"] == "succeeded" else ""
    assert INSIDE not in told + json.dumps(job)
    assert '"temperature"' not in service.client.get("/v1/configs/linking").text


# Pages of others, names of others


@slow
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost.evil.example"}, {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"}, {"Origin": "", "Sec-Fetch-Site": "cross-site"},
        {"Cookie": "token=imp_0_0", "Origin": "http://evil.example"},
    ],
)  # fmt: skip
def test_a_page_of_another_site_changes_nothing(service: Service, headers: dict[str, str]) -> None:
    before = service.client.get("/v1/jobs").text
    form = {**headers, "Content-Type": "text/plain"}  # what a form may send without asking first
    body = b'{"reference": "acme/base", "backend": "vllm"}'
    problem(service.client.post("/v1/imports", content=body, headers=form), 403, "foreign-page")
    problem(service.client.delete("/v1/configs/x", headers={**headers, "If-Match": "*"}), 403, "foreign-page")
    assert service.client.get("/v1/jobs").text == before


@slow
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[fe80::1]", "a b", ""]
)
def test_a_name_that_was_bound_to_loopback_is_refused(service: Service, host: str) -> None:
    for path in ("/v1/configs", "/openapi.json", "/healthz", "/metrics"):
        problem(service.client.get(path, headers={"Host": host}), 421, "foreign-host")


@slow
def test_no_answer_lets_another_site_read_it(service: Service) -> None:
    asks = {"Origin": "http://evil.example", "Access-Control-Request-Method": "PUT"}
    for method in ("OPTIONS", "GET", "POST"):
        answer = service.client.request(method, "/v1/configs", headers=asks)
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@slow
def test_every_answer_carries_the_headers(service: Service) -> None:
    service.imported("acme/base", name="dressed")
    tag = {"If-None-Match": service.etag("dressed")}
    asked: list[httpx.Response] = [
        service.client.get("/v1/configs/dressed"), service.client.get("/v1/configs/dressed", headers=tag),
        service.client.get("/nothing"), service.client.put("/healthz"), service.client.post("/v1/imports"),
        service.client.get("/", headers={"Host": "evil.example"}), service.client.get("/openapi.json"),
        service.client.post("/v1/imports", content=b" " * 3_000_000),
    ]  # fmt: skip
    job = service.client.get("/v1/jobs").json()["items"][0]
    asked.append(service.client.get(job["links"]["events"]["href"]))
    assert {200, 304, 404, 405, 413, 421, 422} <= {answer.status_code for answer in asked}
    for answer in asked:
        assert all(answer.headers[name] == value for name, value in HEADERS.items()), answer.request.url
        assert answer.headers["cache-control"] == "no-store" or "etag" in answer.headers
        assert "server" not in answer.headers
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


# Bodies


@slow
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 100_000, 400), (b'{"set":' + b'{"a":' * 500 + b"1" + b"}" * 501, 400),
        (b'{"reference":"a/b","set":{"x":' + b"9" * 5000 + b"}}", 422),
        (b'{"reference":"a/b","set":{"temperature":NaN}}', 422), (b'{"reference":"a/\xff"}', 400),
        (b'{"reference":"acme/base","backend":"vllm","name":"\\ud800"}', 422),
        (b'{"reference":"acme/base","backend":"vllm","name":"../../x"}', 422),
        (b'{"reference":"acme/base","backend":"vllm","name":"a\\u0000b"}', 422),
        (b'{"reference":"acme/base","backend":"vllm","note":"\\u001b[2J"}', 422),
        (b'{"reference":"acme/base","backend":"vllm","set":{"\\u0000":1}}', 422),
        (b'{"references":["a/b","a/b","a/b","a/b","a/b","a/b"]}', 422), (b'{"references":[]}', 422),
        (b"", 422), (b"null", 422), (b"[]", 422), (b'"x"', 422), (b"{" * 63, 400),
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_meant_is_told(service: Service, body: bytes, status: int) -> None:
    json_type = {"Content-Type": "application/json"}
    answer = service.client.post("/v1/imports", content=body, headers=json_type)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), (
        answer.text
    )
    assert len(answer.content) < 8000  # it is not sent back


@slow
@pytest.mark.parametrize(
    "text",
    [
        "name: held\nbackend: !!python/object/apply:os.system ['touch /tmp/x']\n",
        "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n" * 3,
        "name: held\nparameters: " + "[" * 2000, "name: ../../etc/passwd\n", "\x00", "- " * 5000,
        "name: other\n",
    ],
)  # fmt: skip
def test_a_text_that_is_no_document_is_told(service: Service, text: str) -> None:
    if service.client.get("/v1/configs/held").status_code == 404:
        service.imported("acme/base", name="held")
    before = service.client.get("/v1/configs/held").text
    headers = {"If-Match": "*", "Content-Type": "application/yaml"}
    answer = service.client.put("/v1/configs/held", content=text, headers=headers)
    problem(answer, 422, "invalid")
    patch = service.client.patch(
        "/v1/configs/held", content=b'{"a":' * 900 + b"1" + b"}" * 900,
        headers={"If-Match": "*", "Content-Type": "application/json"},
    )  # fmt: skip
    problem(patch, 400, "bad-json")
    assert service.client.get("/v1/configs/held").text == before


@slow
@pytest.mark.parametrize(
    "name", ["..%2F..%2Fetc%2Fpasswd", "%2e%2e", "a%00b", "'; DROP TABLE configs;--", "%"]
)
def test_a_name_in_an_address_is_a_name(service: Service, name: str) -> None:
    for path in (
        f"/v1/configs/{name}",
        f"/v1/configs/{name}/receipt",
        f"/v1/jobs/{name}",
        f"/problems/{name}",
    ):
        answer = service.client.get(path)
        assert answer.status_code in (404, 422), (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    found = service.client.get("/v1/configs", params={"q": name, "family": name, "cursor": "name~~z"})
    assert found.json()["total"] == 0


@slow
def test_whoever_sends_slowly_is_not_waited_for(service: Service) -> None:
    def read(one: socket.socket) -> bytes:
        one.settimeout(PATIENCE)
        found = b""
        while part := one.recv(65536):
            found += part
        return found

    head = f"POST /v1/imports HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Length: 100\r\n\r\n"
    place = ("127.0.0.1", service.port)
    with (
        socket.create_connection(place) as body,
        socket.create_connection(place) as line,
        socket.create_connection(place) as silent,
    ):
        body.sendall(head.encode() + b"{")
        line.sendall(b"GET /v1/configs HT")
        told = read(body)
        assert b" 408 " in told.partition(b"\r\n")[0]
        assert "too-slow" in told.decode()
        assert read(line) == read(silent) == b""
    assert service.client.get("/healthz").status_code == 200


def test_depth_is_counted_outside_of_text() -> None:
    assert not too_deep(json.dumps({"a": "[" * 1000, 'b"': ["\\", '"[[']}).encode(), 2)
    assert too_deep(b"[" * (DEPTH + 1))
    begun = time.process_time()
    assert not too_deep(b'"' + b'\\"' * 1_000_000)
    assert time.process_time() - begun < 10


@pytest.mark.slow
@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_depth_is_that_of_the_data(data: Any) -> None:
    def depth(one: Any) -> int:
        inside = one.values() if isinstance(one, dict) else one if isinstance(one, list) else None
        return 0 if inside is None else 1 + max(map(depth, inside), default=0)

    text = json.dumps(data).encode()
    assert not too_deep(text, depth(data))
    assert depth(data) == 0 or too_deep(text, depth(data) - 1)
