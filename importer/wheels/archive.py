"""Files inside a released wheel, by range requests.

A whole wheel is compared with the digest of the index; small ones come whole for that reason. Of a large one
only parts come: each file is compared with the wheel's own list.
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
from typing import IO

from importer.wheels import digest_of
from importer.wheels.web import Web, local

BLOCK = 1 << 16  # bytes of a range request
TAIL = 1 << 18  # bytes at a wheel's end that are fetched first: most tables of contents fit
SMALL = 1 << 22  # bytes of a wheel that is fetched whole, for its digest
LARGEST = 16 << 20  # bytes of a file that is read
MOST = 128 << 20  # bytes of all files that are read
BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, UnicodeDecodeError, NotImplementedError,
    RuntimeError, OSError, ValueError, KeyError,
)  # fmt: skip

PathFilter = Callable[[str], bool]
Reader = Callable[[IO[bytes], str, PathFilter], dict[str, str]]


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

    def only(self, is_needed: PathFilter) -> Texts:
        """Return some of them."""
        return Texts({path: text for path, text in self.texts.items() if is_needed(path)}, self.whole)

    @property
    def digest(self) -> str:
        """Return one SHA-256 over the paths and contents of everything that was read."""
        return digest_of((path, text.encode()) for path, text in self.texts.items())


def from_wheel(data: IO[bytes], file: str, is_needed: PathFilter) -> dict[str, str]:
    """Return the wanted files, each compared with the wheel's list of digests."""
    with zipfile.ZipFile(data) as wheel:
        return _listed_files(wheel, file, is_needed)


def whole(
    web: Web, url: str, file: str, sha256: str, is_needed: PathFilter, read: Reader = from_wheel
) -> Texts:
    """Return the wanted files, after a check of the whole archive's digest. Raises IndexFailure."""
    path = local(url)
    if path is None:
        data: IO[bytes] = io.BytesIO(b"".join(_checked(web.stream(url), file, sha256)))
        return opened(file, lambda: Texts(read(data, file, is_needed), whole=True))
    for _ in _checked(web.stream(url), file, sha256):
        """Read once for its digest, so that a large one is never held."""
    with path.open("rb") as on_disk:
        return opened(file, lambda: Texts(read(on_disk, file, is_needed), whole=True))


def part(web: Web, url: str, file: str, sha256: str, is_needed: PathFilter) -> Texts:
    """Return the wanted files without the rest, as far as that is possible. Raises IndexFailure."""
    if local(url) is not None:
        return whole(web, url, file, sha256, is_needed)
    return opened(file, lambda: _ranged(web, url, file, sha256, is_needed))


def opened(file: str, read: Callable[[], Texts]) -> Texts:
    """Return what is read; raises IndexFailure where an archive is broken."""
    try:
        return read()
    except BROKEN as error:
        raise IndexFailure(f"{file} cannot be read: {str(error) or type(error).__name__}") from None


def _ranged(web: Web, url: str, file: str, sha256: str, is_needed: PathFilter) -> Texts:
    tail, size = web.piece(url, -TAIL, 0)
    if size is None:
        same(file, sha256, hashlib.sha256(tail).hexdigest())
        return Texts(from_wheel(io.BytesIO(tail), file, is_needed), whole=True)
    if size <= SMALL:
        rest = web.piece(url, 0, size - len(tail))[0] if size > len(tail) else b""
        same(file, sha256, hashlib.sha256(rest + tail).hexdigest())
        return Texts(from_wheel(io.BytesIO(rest + tail), file, is_needed), whole=True)
    with zipfile.ZipFile(io.BufferedReader(_Ranges(web, url, size, tail), BLOCK)) as wheel:
        return Texts(_listed_files(wheel, file, is_needed), whole=False)


def _listed_files(wheel: zipfile.ZipFile, file: str, is_needed: PathFilter) -> dict[str, str]:
    names = [name for name in wheel.namelist() if is_needed(name)]
    listed = _record(wheel, file) if names else {}
    texts = Collected(file)
    for name in names:
        texts.expect(name, wheel.getinfo(name).file_size)
        data = wheel.read(name)
        if listed.get(name) != _listed(data):
            raise IndexFailure(f"{name} is not the file that {file} lists")
        texts.add(name, data)
    return texts.by_path


def _listed(data: bytes) -> str:
    """Return a file's digest in the spelling of a wheel's list."""
    digest = hashlib.sha256(data).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def _record(wheel: zipfile.ZipFile, file: str) -> dict[str, str]:
    path = next((n for n in wheel.namelist() if n.endswith(".dist-info/RECORD") and n.count("/") == 1), None)
    if path is None or wheel.getinfo(path).file_size > LARGEST:
        raise IndexFailure(f"{file} has no list of its files")
    rows = csv.reader(wheel.read(path).decode().splitlines())
    return {row[0]: row[1] for row in rows if len(row) > 1}


class Collected:
    """The texts of an archive, up to a limit of their size."""

    def __init__(self, file: str) -> None:
        self._file, self._size = file, 0
        self.by_path: dict[str, str] = {}

    def expect(self, path: str, size: int) -> None:
        """Raise IndexFailure for a file that is too large, or that makes all of them so."""
        self._size += size
        if size > LARGEST:
            raise IndexFailure(f"{path} in {self._file} is larger than {LARGEST >> 20} MiB")
        if self._size > MOST:
            raise IndexFailure(f"what is read of {self._file} is larger than {MOST >> 20} MiB")

    def add(self, path: str, data: bytes) -> None:
        """Keep a file; raises IndexFailure for one that is no text, or that has no place inside."""
        if not path.isprintable() or "\\" in path or {"..", ""} & {*path.split("/")}:
            raise IndexFailure(f"{self._file} has a file with the odd name {path!r}")
        try:
            self.by_path[path] = data.decode()
        except UnicodeDecodeError as error:
            raise IndexFailure(f"{path} in {self._file} is no text: {error.reason}") from None


def _checked(chunks: Iterator[bytes], file: str, sha256: str) -> Iterator[bytes]:
    digest = hashlib.sha256()
    try:
        for chunk in chunks:
            digest.update(chunk)
            yield chunk
    except OSError as error:
        raise IndexFailure(f"{file} cannot be read: {error}") from None
    same(file, sha256, digest.hexdigest())


def same(file: str, named: str, actual: str) -> None:
    """Raise IndexFailure for another digest than the named one."""
    if named != actual:
        raise IndexFailure(f"{file} is not the file that the index names: its SHA-256 is {actual}")


class _Ranges(io.RawIOBase):
    """A file on the web whose blocks are each fetched once."""

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
        content = b"".join(self._blocks[n] for n in range(first, last + 1))
        return content[place - first * BLOCK :][:length]

    def _fetch(self, first: int, last: int) -> None:
        start, end = first * BLOCK, min((last + 1) * BLOCK, self._tail_from)
        data, size = self._web.piece(self._url, start, end)
        if size != self._size or len(data) != end - start:
            raise IndexFailure(f"{self._url} changed while it was read")
        for number in range(first, last + 1):
            self._blocks[number] = data[(number - first) * BLOCK :][:BLOCK]
