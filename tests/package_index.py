"""A package index on loopback, with pieces of files and without, and small archives to put into it."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.serving import listening


class PackageIndex:
    """``add`` puts a file into it; ``asked`` are the requests in their order, with what they asked for."""

    def __init__(self) -> None:
        self.address = ""
        self.pages: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.pieces = True
        self.as_json = False
        self._files: dict[str, list[dict[str, object]]] = {}

    def add(self, package: str, file: str, data: bytes, digest: str | None = None, day: str = "") -> None:
        """A file, by default under its own digest; again for another content."""
        self.pages[f"/files/{file}"] = data
        known = [f for f in self._files.setdefault(package, []) if f["filename"] != file]
        digest = digest or hashlib.sha256(data).hexdigest()
        known.append({"filename": file, "url": f"../../files/{file}", "hashes": {"sha256": digest}})
        if day:
            known[-1]["upload-time"] = f"{day}T01:02:03.000000Z"
        self._files[package] = known
        links = [
            f'<a href="{f["url"]}#sha256={f["hashes"]["sha256"]}">{f["filename"]}</a>'  # type: ignore[index]
            for f in known
        ]
        page = json.dumps({"files": known}) if self.as_json else f"<html>{''.join(links)}</html>"
        self.pages[f"/simple/{package}/"] = page.encode()


@contextmanager
def serving() -> Iterator[PackageIndex]:
    """The index, for as long as it is needed."""
    index = PackageIndex()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, span = index.pages.get(self.path), self.headers.get("Range", "")
            index.asked.append((self.path, span))
            match = re.fullmatch(r"bytes=(\d*)-(\d*)", span)
            if body is not None and match and index.pieces:
                start = int(match[1]) if match[1] else max(len(body) - int(match[2]), 0)
                end = int(match[2]) + 1 if match[1] else len(body)
                part = body[start:end]
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(body)}")
            else:
                part = body or b""
                self.send_response(200 if body is not None else 404)
            if self.path.startswith("/simple/") and not index.as_json:
                self.send_header("Content-Type", "text/html")  # pip reads no other page
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *args: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that stops reading in the middle is what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    index.address = f"http://127.0.0.1:{server.server_port}"
    with listening(server):
        yield index


def sdist(package: str, version: str, files: Mapping[str, str]) -> bytes:
    """A source archive, its files in the order of their names."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, text in sorted(files.items()):
            member = tarfile.TarInfo(f"{package}-{version}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return raw.getvalue()


def wheel(files: Mapping[str, str], *, lies: Mapping[str, str] | None = None, padding: int = 0) -> bytes:
    """A wheel with a list of its files; ``lies`` are contents that the list has instead of the true ones.

    ``padding`` bytes that nobody wants lie in it, so that it is too large to be fetched whole.
    """
    raw = io.BytesIO()
    rows = []
    with zipfile.ZipFile(raw, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
            told = (lies or {}).get(name, text).encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(told).digest()).decode().rstrip("=")
            rows.append(f"{name},sha256={digest},{len(told)}")
        archive.writestr("padding.bin", b"\0" * padding)
        archive.writestr("package-1.dist-info/RECORD", "\n".join(rows))
    return raw.getvalue()
