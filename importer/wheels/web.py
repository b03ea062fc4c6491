"""Fetch pages and parts of files, over the web or from this disk, and count the bytes."""

from __future__ import annotations

import base64
import http.client
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TIMEOUT = 60.0  # seconds of silence
TRIES = (0.0, 0.5, 2.0)  # seconds before each
CHUNK = 1 << 16
PAGE_LIMIT = 64 << 20  # bytes of a page

ByteListener = Callable[[str, int, int], None]  # a file's name, the bytes that came, the bytes that it has


class Unreachable(OSError):
    """A server does not answer, or answers with another status."""


class Web:
    """``fetched``  file name to the bytes that came and the bytes that it has."""

    def __init__(self, certificates: str | None = None, on_bytes: ByteListener | None = None) -> None:
        try:
            self._context = ssl.create_default_context(cafile=certificates)
        except (OSError, ValueError) as error:
            raise Unreachable(f"pip's certificates {certificates} cannot be read: {error}") from None
        self.on_bytes = on_bytes
        self.fetched: dict[str, tuple[int, int]] = {}

    def page(self, url: str, accept: str) -> tuple[str, bytes]:
        """Return a page and the address that it has in the end. Raises OSError."""
        path = local(url)
        if path is not None:
            path = path / "index.html" if path.is_dir() else path
            return path.as_uri(), path.read_bytes()
        with self._ask(url, {"Accept": accept}) as answer:
            body = _read(answer, PAGE_LIMIT)
            self.count(url, len(body), len(body))
            return str(answer.url), body

    def piece(self, url: str, start: int, end: int) -> tuple[bytes, int | None]:
        """Return the bytes from ``start`` to before ``end``, and the size of the whole; negative: the last
        ones.

        Where the server has no pieces the whole comes, and its size is ``None``. Raises OSError.
        """
        span = f"bytes=-{-start}" if start < 0 else f"bytes={start}-{end - 1}"
        with self._ask(url, {"Range": span}) as answer:
            body = _read(answer)
            if answer.status != 206:
                self.count(url, len(body), len(body))
                return body, None
            size = int(answer.headers["Content-Range"].rpartition("/")[2])
            self.count(url, len(body), size)
            return body, size

    def stream(self, url: str) -> Iterator[bytes]:
        """Yield the file from its start, as far as the caller reads. Raises OSError."""
        path = local(url)
        if path is not None:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk
            return
        with self._ask(url, {}) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
            while chunk := answer.read(CHUNK):
                self.count(url, len(chunk), size)
                yield chunk

    def count(self, url: str, came: int, size: int) -> None:
        """Note that so many bytes came."""
        name = urllib.parse.unquote(url.rstrip("/").rsplit("/", 1)[-1])
        before, known = self.fetched.get(name, (0, 0))
        self.fetched[name] = (before + came, max(size, known))
        if self.on_bytes:
            self.on_bytes(name, came, size)

    def _ask(self, url: str, headers: dict[str, str]) -> Any:
        if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
            raise Unreachable(f"{url} is not on the web")
        bare, secret = _without_secret(url)
        request = urllib.request.Request(bare, headers=headers)  # noqa: S310
        if secret:
            request.add_unredirected_header("Authorization", secret)
        url, problem = bare, Unreachable(bare)
        for pause in TRIES:
            time.sleep(pause)
            try:
                return urllib.request.urlopen(request, timeout=TIMEOUT, context=self._context)  # noqa: S310
            except urllib.error.HTTPError as error:
                error.close()
                problem = Unreachable(f"{url} answers {error.code}")
                if error.code < 500:
                    break
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = Unreachable(f"{url} cannot be reached: {getattr(error, 'reason', error)}")
        raise problem


def shown(url: str) -> str:
    """Return the address without its password, for display."""
    try:
        return _without_secret(url)[0]
    except ValueError:
        return url.rpartition("@")[2]


def local(url: str) -> Path | None:
    """Return the path that a ``file:`` address means."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return None
    return Path(urllib.request.url2pathname(parts.path)) if parts.scheme == "file" else None


def _without_secret(url: str) -> tuple[str, str]:
    """Return the address without name and password, and the header that sends them to its host alone."""
    parts = urllib.parse.urlsplit(url)
    who, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, ""
    token = base64.b64encode(urllib.parse.unquote(who).encode()).decode()
    return urllib.parse.urlunsplit(parts._replace(netloc=host)), f"Basic {token}"


def _read(answer: Any, limit: int | None = None) -> bytes:
    try:
        body = bytes(answer.read() if limit is None else answer.read(limit + 1))
    except http.client.HTTPException as error:
        raise Unreachable(f"{answer.url} broke off: {error!r}") from None
    if limit is not None and len(body) > limit:
        raise Unreachable(f"{answer.url} is larger than {limit >> 20} MiB")
    return body
