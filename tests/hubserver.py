"""A small Hub on loopback for tests and benchmarks: API, files by commit, refusals, faults, request log.

with HubServer({"owner/name": Repo({"config.json": "{}"})}) as hub:
    os.environ["HF_ENDPOINT"] = hub.url
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import pytest

from tests.waiting import wait_until

Reply = tuple[int, dict[str, str], bytes]
Content = str | bytes | Mapping[str, Any]
OVERRIDES = (
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
)  # fmt: skip
BAD_TOKEN = "Invalid credentials in Authorization header"
LARGE = 10 * 1024**2  # bytes above which the Hub keeps a file by its SHA-256
MODIFIED = "2026-01-05T01:02:03.000Z"  # of every commit


class Repo:
    """A repository: files of ``main`` from a dict or folder, commits, who may read it, what the API adds."""

    def __init__(
        self,
        files: Mapping[str, Content] | Path,
        *,
        private: bool = False,
        gated: bool = False,
        readers: tuple[str, ...] = (),
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.private, self.gated, self.readers, self.info = private, gated, readers, dict(info or {})
        self.commits: dict[str, dict[str, bytes]] = {}
        self.revisions: dict[str, str] = {}
        self.commit(files)

    def commit(self, files: Mapping[str, Content] | Path, revision: str = "main") -> str:
        """Put files under a revision; returns the commit."""
        content = _load(files)
        sha = hashlib.sha1(repr(sorted(content.items())).encode()).hexdigest()
        self.commits[sha] = content
        self.revisions[revision] = sha
        return sha

    @property
    def sha(self) -> str:
        return self.revisions["main"]


@dataclass
class Fault:
    """An answer given instead of the real one to the next ``times`` requests whose path contains ``path``.

    ``cut`` sends the headers of the real answer and only half of its body.
    """

    path: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    cut: bool = False
    times: int = 1


@dataclass(frozen=True)
class Entry:
    """One request: when it arrived and when its answer was sent, in seconds of one clock."""

    method: str
    path: str
    status: int
    start: float
    end: float
    headers: Message


class HubServer:
    """Serves ``repos`` until closed; ``latency``: seconds before each answer; ``renamed``: old id to new."""

    def __init__(
        self,
        repos: Mapping[str, Repo | Path | Mapping[str, Content]],
        *,
        tokens: tuple[str, ...] = (),
        renamed: Mapping[str, str] | None = None,
        latency: float = 0.0,
        quotas: Mapping[str, tuple[int, float]] | None = None,
    ) -> None:
        self.repos = {i: r if isinstance(r, Repo) else Repo(r) for i, r in repos.items()}
        self.tokens, self.renamed, self.latency = tokens, dict(renamed or {}), latency
        self.quotas = dict(quotas or {})  # of "api" and "resolvers": requests in a window of so many seconds
        self.windows: dict[str, tuple[float, int]] = {}  # end of each window, and the requests in it
        self.hidden: set[str] = set()  # repositories that are listed, and gone when they are asked for
        self.faults: list[Fault] = []
        self.lists: Callable[[str, int], Reply] | None = None  # answers of lists, by path and their number
        self.listed = 0
        self.log: list[Entry] = []
        self.asked = 0  # requests that have arrived, answered or not
        self.held = self.at_once = 0
        self.lock = threading.Lock()
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> HubServer:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def paths(self) -> list[str]:
        """What was asked for so far, in order of arrival."""
        return [e.path for e in sorted(self.log, key=lambda e: e.start)]

    def together(self, number: int) -> None:
        """Answer no request for a file from now on until so many have arrived, answered or not."""
        self.held, self.at_once = 0, number

    def spend(self, path: str) -> tuple[bool, dict[str, str]]:
        """Count a request; whether its window still grants it, and the headers that tell."""
        kind = "api" if path.startswith("/api/") else "resolvers"
        with self.lock:
            if kind not in self.quotas:
                return True, {}
            most, seconds = self.quotas[kind]
            now = time.monotonic()
            end, used = self.windows.get(kind, (0.0, 0))
            if now >= end:
                end, used = now + seconds, 0
            granted = used < most
            used += granted
            self.windows[kind] = end, used
        wait = math.ceil(end - now)
        policy = f'"fixed window";"{kind}";q={most};w={math.ceil(seconds)}'
        return granted, {"RateLimit": f'"{kind}";r={most - used};t={wait}', "RateLimit-Policy": policy}

    def fault(self, path: str) -> Fault | None:
        with self.lock:
            found = next((f for f in self.faults if f.times > 0 and f.path in path), None)
            if found:
                found.times -= 1
            return found


def isolate(monkeypatch: pytest.MonkeyPatch, folder: Path, endpoint: str) -> None:
    """Point the importer and the Hub client at ``endpoint`` and at folders of this test, without a token."""
    import huggingface_hub.constants

    for name in OVERRIDES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("HF_HOME", str(folder / "hf"))
    monkeypatch.setenv("IMPORTER_HOME", str(folder / "home"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(folder / "hf" / "token"))


def _load(files: Mapping[str, Content] | Path) -> dict[str, bytes]:
    if isinstance(files, Path):
        return {p.relative_to(files).as_posix(): p.read_bytes() for p in files.rglob("*") if p.is_file()}
    return {name: _bytes(content) for name, content in files.items()}


def _bytes(content: Content) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


class _Refused(Exception):
    def __init__(self, status: int, code: str = "", message: str = "", location: str = "") -> None:
        named = {"X-Error-Code": code, "X-Error-Message": message, "Location": location}
        self.status, self.headers = status, {k: v for k, v in named.items() if v}
        self.body = json.dumps({"error": message}).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error here."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server_hub: HubServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on stderr; the log is a list."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        start, hub = time.monotonic(), self.server_hub
        with hub.lock:
            hub.asked += 1
            hub.held += "/resolve/" in self.path
        if "/resolve/" in self.path:
            wait_until(lambda: hub.held >= hub.at_once)
        time.sleep(hub.latency)
        fault = hub.fault(self.path)
        granted, told = hub.spend(self.path)
        if fault and not fault.cut:
            status, headers, body = fault.status, dict(fault.headers), fault.body
        elif not granted:
            status, headers, body = 429, {}, b"{}"
        else:
            try:
                status, headers, body = self._answer()
            except _Refused as refused:
                status, headers, body = refused.status, refused.headers, refused.body
        with hub.lock:
            hub.log.append(Entry(self.command, self.path, status, start, time.monotonic(), self.headers))
        self._send(status, told | headers, body, cut=bool(fault and fault.cut))

    def _send(self, status: int, headers: Mapping[str, str], body: bytes, *, cut: bool) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True

    def _answer(self) -> Reply:
        parts = urlsplit(self.path)
        steps = [unquote(s) for s in parts.path.strip("/").split("/")]
        hub = self.server_hub
        if hub.lists is not None and (steps == ["api", "models"] or "tree" in steps[4:5]):
            hub.listed += 1
            return hub.lists(self.path, hub.listed)
        if steps == ["api", "models"]:
            return self._models(parse_qs(parts.query))
        if steps[:2] == ["api", "models"] and len(steps) >= 4:
            return self._api("/".join(steps[2:4]), steps[4:], parse_qs(parts.query))
        if len(steps) >= 5 and steps[2] == "resolve":
            return self._file("/".join(steps[:2]), steps[3], "/".join(steps[4:]))
        raise _Refused(404, message="Not Found")

    def _api(self, name: str, rest: list[str], query: Mapping[str, list[str]]) -> Reply:
        repo = self._repo(name)
        kind, revision = rest[:2] if len(rest) > 1 else ("revision", "main")
        sha = self._commit(repo, revision)
        files = repo.commits[sha]
        if kind == "tree":
            listed: Any = [{"type": "file", "path": p, **_blob(d)} for p, d in sorted(files.items())]
        else:
            sized = "blobs" in query
            siblings = [{"rfilename": p, **(_blob(d) if sized else {})} for p, d in sorted(files.items())]
            words = {"id": name, "modelId": name, "sha": sha, "private": repo.private, "gated": repo.gated,
                     "lastModified": MODIFIED}  # fmt: skip
            listed = {**words, "siblings": siblings, "tags": [], **repo.info}
        return 200, {"Content-Type": "application/json"}, json.dumps(listed).encode()

    def _models(self, query: Mapping[str, list[str]]) -> Reply:
        """The listing of models: those that this caller may see, with all tags of ``filter``, by ``sort``.

        A page has at most ``limit`` entries, and a cursor in ``Link`` where there are more; ``expand`` gives
        the named fields alone, and the names of files without sizes and hashes.
        """
        hub, token = self.server_hub, self._token()
        if token and token not in hub.tokens:
            raise _Refused(401, message=BAD_TOKEN)
        seen = {i: r for i, r in hub.repos.items() if not r.private or token in r.readers}
        wanted, authors, tasks = ({*query.get(k, ())} for k in ("filter", "author", "pipeline_tag"))
        names = [i for i in seen if not authors or i.partition("/")[0] in authors]
        names = [
            i for i in names if wanted <= {*seen[i].info.get("tags", ()), seen[i].info.get("library_name")}
        ]
        names = [i for i in names if not tasks or seen[i].info.get("pipeline_tag") in tasks]
        for text in query.get("search", ()):
            names = [i for i in names if text.lower() in i.lower()]
        for gated in query.get("gated", ()):
            names = [i for i in names if bool(seen[i].gated) is (gated == "true")]
        for key in query.get("sort", ()):
            names.sort(
                key=lambda i: seen[i].info.get(key, MODIFIED if key == "lastModified" else 0), reverse=True
            )
        most, start = int(query.get("limit", ["1000"])[0]), int(query.get("cursor", ["0"])[0])
        expanded = [*query.get("expand", ()), *query.get("expand[]", ())]
        kept = {"id", "modelId", *expanded}
        rows = [_row(i, seen[i], files="siblings" in expanded) for i in names[start : start + most]]
        listed = [{k: v for k, v in row.items() if k in kept or not expanded} for row in rows]
        headers = {"Content-Type": "application/json"}
        if start + most < len(names):
            again = [(k, v) for k, values in query.items() if k != "cursor" for v in values]
            target = f"{hub.url}/api/models?{urlencode([*again, ('cursor', start + most)])}"
            headers["Link"] = f'<{target}>; rel="next"'
        return 200, headers, json.dumps(listed).encode()

    def _file(self, name: str, revision: str, path: str) -> Reply:
        repo = self._repo(name)
        if repo.gated and self._token() not in repo.readers:
            raise _Refused(403 if self._token() else 401, "GatedRepo", "Access to this model is restricted")
        sha = self._commit(repo, revision)
        data = repo.commits[sha].get(path)
        if data is None:
            raise _Refused(404, "EntryNotFound", "Entry not found")
        headers = {"ETag": f'"{_blob(data)["oid"]}"', "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        unit, _, span = self.headers.get("Range", "").partition("=")
        if unit != "bytes":
            return 200, headers, data
        first, _, final = span.partition("-")
        end = min(int(final or len(data) - 1), len(data) - 1)
        headers["Content-Range"] = f"bytes {first}-{end}/{len(data)}"
        return 206, headers, data[int(first) : end + 1]

    def _token(self) -> str:
        return str(self.headers.get("Authorization", "")).removeprefix("Bearer ")

    def _repo(self, name: str) -> Repo:
        """The repository as this caller may see it, refused as the real Hub refuses."""
        hub, token = self.server_hub, self._token()
        if token and token not in hub.tokens:
            raise _Refused(401, message=BAD_TOKEN)
        if name in hub.renamed:
            raise _Refused(307, location=self.path.replace(name, hub.renamed[name], 1))
        repo = hub.repos.get(name)
        if repo is None or name in hub.hidden or (repo.private and token not in repo.readers):
            raise _Refused(404 if token else 401, "RepoNotFound", "Repository not found")
        return repo

    def _commit(self, repo: Repo, revision: str) -> str:
        sha = revision if revision in repo.commits else repo.revisions.get(revision)
        if sha is None:
            raise _Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha


def _row(name: str, repo: Repo, *, files: bool) -> dict[str, Any]:
    """An entry of the listing, with all fields that the Hub may give."""
    named = {"id": name, "modelId": name, "sha": repo.sha, "private": repo.private, "gated": repo.gated,
             "lastModified": MODIFIED, **repo.info}  # fmt: skip
    return named | ({"siblings": [{"rfilename": p} for p in repo.commits[repo.sha]]} if files else {})


def _blob(data: bytes) -> dict[str, Any]:
    oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    large = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 135}
    return {"size": len(data), "blobId": oid, "oid": oid, **({"lfs": large} if len(data) > LARGE else {})}
