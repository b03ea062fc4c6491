"""Files inside a released archive: a wheel's by range requests, an sdist's by reading only as far as needed.

What comes whole is compared with the digest that the index names; a small wheel does for that reason. Of a
large one only parts come: each file is compared with the wheel's own list.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, cast

from gen_defaults.web import Web, local

BLOCK = 1 << 16  # bytes of a range request
TAIL = 1 << 18  # bytes at a wheel's end that are asked for first: most tables of contents fit
SMALL = 1 << 22  # bytes of a wheel that is fetched whole, for its digest
LARGEST = 16 << 20  # bytes of a file that is read
BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, UnicodeDecodeError, NotImplementedError,
    RuntimeError, OSError, ValueError, KeyError,
)  # fmt: skip

Wanted = Callable[[str], bool]


class IndexFailure(Exception):
    """The index lacks what is needed, or what came is not what it names."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Files by path in the package.

    ``whole``  whether the archive came whole, so that its digest was checked; else each file's was, by
               the wheel's own list, where the archive is a wheel.
    """

    texts: Mapping[str, str]
    whole: bool

    def only(self, wanted: Wanted) -> Texts:
        """Some of them."""
        return Texts({path: text for path, text in self.texts.items() if wanted(path)}, self.whole)

    @property
    def digest(self) -> str:
        """One SHA-256 over the paths and contents of everything that was read."""
        total = hashlib.sha256()
        for path, text in sorted(self.texts.items()):
            total.update(f"{path}\0{hashlib.sha256(text.encode()).hexdigest()}\n".encode())
        return total.hexdigest()


def whole(web: Web, url: str, file: str, sha256: str, wanted: Wanted) -> Texts:
    """The wanted files, after the digest of the whole archive. Raises IndexFailure."""
    data = b"".join(_checked(web.stream(url), file, sha256))
    return _opened(file, lambda: Texts(_read(data, file, wanted), whole=True))


def part(web: Web, url: str, file: str, sha256: str, wanted: Wanted, last: str) -> Texts:
    """The wanted files without the rest, as far as that is possible. Raises IndexFailure."""
    if local(url) is not None:
        return whole(web, url, file, sha256, wanted)
    if file.endswith(".whl"):
        return _opened(file, lambda: _ranged(web, url, file, sha256, wanted))
    return _opened(file, lambda: _streamed(web, url, file, sha256, wanted, last))


def _opened(file: str, read: Callable[[], Texts]) -> Texts:
    try:
        return read()
    except BROKEN as error:
        raise IndexFailure(f"{file} cannot be read: {str(error) or type(error).__name__}") from None


def _read(data: bytes, file: str, wanted: Wanted) -> dict[str, str]:
    if file.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            return _from_wheel(wheel, file, wanted)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as sdist:
        return dict(_from_sdist(sdist, file, wanted, ""))


def _ranged(web: Web, url: str, file: str, sha256: str, wanted: Wanted) -> Texts:
    tail, size = web.piece(url, -TAIL, 0)
    if size is None:
        _same(file, sha256, hashlib.sha256(tail).hexdigest())
        return Texts(_read(tail, file, wanted), whole=True)
    if size <= SMALL:
        rest = web.piece(url, 0, size - len(tail))[0] if size > len(tail) else b""
        _same(file, sha256, hashlib.sha256(rest + tail).hexdigest())
        return Texts(_read(rest + tail, file, wanted), whole=True)
    with zipfile.ZipFile(io.BufferedReader(_Ranges(web, url, size, tail), BLOCK)) as wheel:
        return Texts(_from_wheel(wheel, file, wanted), whole=False)


def _streamed(web: Web, url: str, file: str, sha256: str, wanted: Wanted, last: str) -> Texts:
    stream = _Stream(web.stream(url))
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|gz") as sdist:
        texts = dict(_from_sdist(sdist, file, wanted, last))
    if stream.ended:
        _same(file, sha256, stream.digest.hexdigest())
    return Texts(texts, whole=stream.ended)


def _from_wheel(wheel: zipfile.ZipFile, file: str, wanted: Wanted) -> dict[str, str]:
    """The wanted files, each compared with the wheel's list of digests."""
    names = [name for name in wheel.namelist() if wanted(name)]
    listed = _record(wheel, file) if names else {}
    found = {}
    for name in names:
        if wheel.getinfo(name).file_size > LARGEST:
            raise IndexFailure(f"{name} in {file} is larger than {LARGEST >> 20} MiB")
        data = wheel.read(name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        if listed.get(name) != f"sha256={digest}":
            raise IndexFailure(f"{name} is not the file that {file} lists")
        found[name] = data.decode()
    return found


def _record(wheel: zipfile.ZipFile, file: str) -> dict[str, str]:
    path = next((n for n in wheel.namelist() if n.endswith(".dist-info/RECORD") and n.count("/") == 1), None)
    if path is None or wheel.getinfo(path).file_size > LARGEST:
        raise IndexFailure(f"{file} has no list of its files")
    rows = csv.reader(wheel.read(path).decode().splitlines())
    return {row[0]: row[1] for row in rows if len(row) > 1}


def _from_sdist(sdist: tarfile.TarFile, file: str, wanted: Wanted, last: str) -> Iterator[tuple[str, str]]:
    """The wanted files, until the sorted archive is past the folder that is the last needed."""
    sorted_so_far, before = True, ""
    for member in sdist:
        path = member.name.partition("/")[2]
        top = path.partition("/")[0]
        sorted_so_far, before = sorted_so_far and top >= before, top
        if last and sorted_so_far and top > last:
            return
        if member.isfile() and wanted(path):
            if member.size > LARGEST:
                raise IndexFailure(f"{path} in {file} is larger than {LARGEST >> 20} MiB")
            content = sdist.extractfile(member)
            if content is not None:
                yield path, content.read().decode()


def _checked(chunks: Iterator[bytes], file: str, sha256: str) -> Iterator[bytes]:
    digest = hashlib.sha256()
    try:
        for chunk in chunks:
            digest.update(chunk)
            yield chunk
    except OSError as error:
        raise IndexFailure(f"{file} cannot be read: {error}") from None
    _same(file, sha256, digest.hexdigest())


def _same(file: str, named: str, found: str) -> None:
    if named != found:
        raise IndexFailure(f"{file} is not the file that the index names: its SHA-256 is {found}")


class _Ranges(io.RawIOBase):
    """A file on the web of which each block is asked for once."""

    def __init__(self, web: Web, url: str, size: int, tail: bytes) -> None:
        super().__init__()
        self._web, self._url, self._size, self._place = web, url, size, 0
        self._tail, self._tail_from = tail, size - len(tail)
        self._blocks: dict[int, bytes] = {}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(base + offset, 0)
        return self._place

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._at(self._place, len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _at(self, place: int, length: int) -> bytes:
        if place >= self._tail_from:
            return self._tail[place - self._tail_from :][:length]
        end = min(place + length, self._tail_from)
        first, last = place // BLOCK, (end - 1) // BLOCK
        missing = [n for n in range(first, last + 1) if n not in self._blocks]
        if missing:
            self._fetch(missing[0], missing[-1])
        found = b"".join(self._blocks[n] for n in range(first, last + 1))
        return found[place - first * BLOCK :][:length]

    def _fetch(self, first: int, last: int) -> None:
        start, end = first * BLOCK, min((last + 1) * BLOCK, self._tail_from)
        data, size = self._web.piece(self._url, start, end)
        if size != self._size or len(data) != end - start:
            raise IndexFailure(f"{self._url} changed while it was read")
        for number in range(first, last + 1):
            self._blocks[number] = data[(number - first) * BLOCK :][:BLOCK]


class _Stream:
    """Chunks as a file that is read once; ``ended`` once nothing is left."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""
        self.digest, self.ended = hashlib.sha256(), False

    def read(self, size: int) -> bytes:
        """As many bytes, fewer only at the end."""
        while len(self._rest) < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                self.ended = True
                break
            self.digest.update(chunk)
            self._rest += chunk
        data, self._rest = self._rest[:size], self._rest[size:]
        return data
