"""Files inside a released sdist, by reading only as far as needed."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
from collections.abc import Iterator
from typing import IO, cast

from importer.wheels import archive
from importer.wheels.archive import BLOCK, Collected, IndexFailure, PathFilter, Texts, opened, same
from importer.wheels.web import Web, local

UNPACKED = 4 << 30  # bytes of an archive of which everything is read


def part(web: Web, url: str, file: str, sha256: str, is_needed: PathFilter, last: str) -> Texts:
    """Return the wanted files, read only as far as needed. Raises IndexFailure."""
    if local(url) is not None:
        return whole(web, url, file, sha256, is_needed)
    return opened(file, lambda: _streamed(web, url, file, sha256, is_needed, last))


def whole(web: Web, url: str, file: str, sha256: str, is_needed: PathFilter) -> Texts:
    """Return the wanted files, after a check of the whole archive's digest. Raises IndexFailure."""
    return archive.whole(web, url, file, sha256, is_needed, _from_sdist)


def _streamed(web: Web, url: str, file: str, sha256: str, is_needed: PathFilter, last: str) -> Texts:
    stream = _Stream(web.stream(url))
    texts = _from_sdist(cast("IO[bytes]", stream), file, is_needed, last)
    if stream.ended:
        same(file, sha256, stream.digest.hexdigest())
    return Texts(texts, whole=stream.ended)


def _from_sdist(data: IO[bytes], file: str, is_needed: PathFilter, last: str = "") -> dict[str, str]:
    """Return the wanted files, until the sorted archive is past the folder that is the last needed."""
    texts, unpacked = Collected(file), _Unpacked(data, file)
    sorted_so_far, before = True, ""
    with tarfile.open(fileobj=cast("IO[bytes]", unpacked), mode="r|") as sdist:
        for member in sdist:
            path = member.name.partition("/")[2]
            top = path.partition("/")[0]
            sorted_so_far, before = sorted_so_far and top >= before, top
            if last and sorted_so_far and top > last:
                return texts.by_path
            content = sdist.extractfile(member) if member.isfile() and is_needed(path) else None
            if content is not None:
                texts.expect(path, member.size)
                texts.add(path, content.read())
    while unpacked.read(BLOCK):
        """To the end, where its checksum is."""
    return texts.by_path


class _Unpacked:
    """An sdist's archive, unpacked as it is read, up to a limit."""

    def __init__(self, packed: IO[bytes], file: str) -> None:
        self._stream, self._file, self._left = gzip.GzipFile(fileobj=packed, mode="rb"), file, UNPACKED

    def read(self, size: int) -> bytes:
        """Return the next bytes. Raises IndexFailure where there are too many."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise IndexFailure(f"{self._file} unpacks to more than {UNPACKED >> 30} GiB")
        return data


class _Stream:
    """Chunks as a file that is read once; ``ended`` once nothing is left."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""
        self.digest, self.ended = hashlib.sha256(), False

    def read(self, size: int) -> bytes:
        """Return as many bytes as requested, fewer only at the end."""
        while len(self._rest) < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                self.ended = True
                break
            self.digest.update(chunk)
            self._rest += chunk
        data, self._rest = self._rest[:size], self._rest[size:]
        return data
