"""The tensors of a repository's weights, read from the beginnings of its safetensors files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from importer.errors import HubError, RepositoryError
from importer.frozen import frozen
from importer.hub import safetensors
from importer.hub.folders import Folder, has_files, why
from importer.hub.safetensors import PREFIX, HeaderReason, MalformedHeader, Tensor
from importer.hub.snapshot import RepoFile, Snapshot
from importer.hub.threads import side_by_side
from importer.reasons import Reason, ReasonKind

FIRST = 128 * 1024  # bytes of the first request: they hold most headers and their length
MOST_FILES = 1024  # models of a trillion parameters come in 200
TOTAL = 256 * 1024 * 1024  # bytes of all headers together
AT_A_TIME = 16
RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")
Item = TypeVar("Item")
Result = TypeVar("Result")
Part = Callable[
    [RepoFile, int, int], tuple[bytes, int]
]  # of file, first byte, count; returns bytes and the file's size


class WeightsReason(ReasonKind):
    """Reasons why the beginnings of weight files, or responses with them, cannot be used."""

    FILES = "it is one of more files, or of larger headers, than importer reads"
    TWICE = "{name!r} is in another file as well"
    OTHER = "it is another part than was asked for"


def examined(snapshot: Snapshot, paths: Sequence[str], *, exact: bool, offline: bool) -> Snapshot:
    """Return the snapshot with the names of its tensors, where the headers lie on this disk or are requested.

    Without ``exact`` a header that cannot be used is among the broken files, and the names are unknown.
    Raises what ``tensors`` raises, with ``exact`` alone.
    """
    if not paths or not (exact or snapshot.model_id is None):
        return snapshot
    whole = [path for path in paths if path not in snapshot.broken]
    try:
        if exact or len(whole) == len(paths):
            return replace(snapshot, tensors=tuple(tensors(snapshot, paths, offline=offline)))
    except RepositoryError as error:
        if exact:
            raise
        problem = error.details.get("problem")  # others are of importer's limits, or of two files
        if isinstance(problem, Reason) and isinstance(problem.kind, HeaderReason):
            return replace(snapshot, broken={**snapshot.broken, str(error.details["file"]): problem})
    return snapshot


def tensors(snapshot: Snapshot, paths: Sequence[str], *, offline: bool = False) -> dict[str, Tensor]:
    """Return the tensors of these files by name, from this disk, the cache, or the Hub unless ``offline``.

    Raises HubError, and RepositoryError("bad-weights") for malformed headers.
    """
    sizes = {f.path: f.size for f in snapshot.files}
    files = [RepoFile(path, sizes.get(path)) for path in paths]
    if len(files) > MOST_FILES:
        raise _bad(snapshot, files[0].path, Reason(WeightsReason.FILES))
    root = snapshot.directory
    if root is not None and (snapshot.model_id is None or has_files(root, *paths)):
        return _read(snapshot, files, lambda file, first, count: _local(snapshot, root, file, first, count))
    from importer.hub import cache, endpoint  # a folder needs no client of the Hub

    repo, commit = str(snapshot.model_id), str(snapshot.revision)
    known = cache.load_tensors(repo, commit, paths)
    if known is None:
        if offline or endpoint.offline():
            raise HubError("not-cached", what=Reason(cache.Uncached.HEADERS), repo=repo)
        known = _read(
            snapshot, files, lambda file, first, count: _remote(snapshot, repo, commit, file, first, count)
        )
        cache.store_tensors(repo, commit, paths, known)
    return known


def edge(snapshot: Snapshot, path: str, count: int, *, offline: bool = False) -> bytes | None:
    """Return the first bytes of a file, or with a negative ``count`` the last, from this disk or the Hub.

    ``None`` where the file is not there to be read: decisions need none.
    """
    from importer.hub import cache, endpoint

    size = next((f.size for f in snapshot.files if f.path == path), None)
    if not size:
        return None
    file, first, most = RepoFile(path, size), max(0, size + count) if count < 0 else 0, abs(count)
    root, commit = snapshot.directory, snapshot.revision
    try:
        if root is not None and (snapshot.model_id is None or has_files(root, path)):
            return _local(snapshot, root, file, first, most)[0]
        repo = str(snapshot.model_id)
        known = None if commit is None else cache.load_edge(repo, commit, path, count)
        if known is None and commit is not None and not (offline or endpoint.offline()):
            known, _ = _remote(snapshot, repo, commit, file, first, most)
            cache.store_edge(repo, commit, path, count, known)
    except (HubError, RepositoryError):
        return None
    return known


def _read(snapshot: Snapshot, files: Sequence[RepoFile], part: Part) -> dict[str, Tensor]:
    """Return the tensors from the beginning of every file, and the rest of longer headers."""

    def begin(file: RepoFile) -> _Begun:
        data, size = part(file, 0, FIRST)
        with _valid_header(snapshot, file.path):
            return _Begun(RepoFile(file.path, size), data, PREFIX + safetensors.length(data, size))

    def finish(begun: _Begun) -> bytes:
        data = begun.data
        if begun.end > len(data):
            data += part(begun.file, len(data), begun.end - len(data))[0]
        return data[PREFIX : begun.end]

    started = [*_batches(begin, files)]
    if sum(begun.end for begun in started) > TOTAL:
        raise _bad(snapshot, files[0].path, Reason(WeightsReason.FILES))
    tensors: dict[str, Tensor] = {}
    for begun, header in zip(started, _batches(finish, started), strict=True):
        with _valid_header(snapshot, begun.file.path):
            more = safetensors.parse(header, begun.file.size)  # one at a time, to limit memory
        twice = tensors.keys() & more.keys()
        if twice:
            raise _bad(snapshot, begun.file.path, Reason(WeightsReason.TWICE, name=min(twice)[:80]))
        tensors |= more
    return tensors


@frozen
class _Begun:
    """The beginning of a file, and where its header ends."""

    file: RepoFile
    data: bytes
    end: int


def _batches(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the results in order; a batch begins after the results of the last one are consumed."""
    for start in range(0, len(items), AT_A_TIME):
        yield from side_by_side(work, items[start : start + AT_A_TIME])


def _remote(
    snapshot: Snapshot, repo: str, commit: str, file: RepoFile, first: int, count: int
) -> tuple[bytes, int]:
    """Return a part of a file on the Hub, up to the end of the file, and the file's size."""
    if file.size is not None and first >= file.size:
        raise _bad(snapshot, file.path, Reason(HeaderReason.MALFORMED))
    last = min(first + count, file.size if file.size is not None else first + count) - 1
    from importer.hub import client, listing

    url = listing.file_url(repo, commit, file.path)
    try:
        answer = client.get(url, limit=last - first + 1, span=(first, last))
    except client.TooLarge:
        raise _unusable(url, WeightsReason.OTHER) from None
    if answer.status not in {200, 206}:
        raise listing.refusal(answer, repo, commit, file.path)
    content_range = RANGE.fullmatch(answer.headers.get("content-range", ""))
    if answer.status == 206 and content_range is not None:
        began, ended, size = map(int, content_range.groups())
        if began == first and ended + 1 - began == len(answer.body) and file.size in {None, size}:
            return answer.body, size
    raise _unusable(url, WeightsReason.OTHER)


def _local(snapshot: Snapshot, root: Path, file: RepoFile, first: int, count: int) -> tuple[bytes, int]:
    """Return a part of a file on this disk, and the file's size."""
    try:
        with Folder(root) as folder, folder.open(file.path) as opened:
            size = os.fstat(opened.fileno()).st_size
            opened.seek(first)
            return opened.read(count), size
    except OSError as error:
        problem = why(error)
        raise RepositoryError("unreadable", file=file.path, repo=snapshot.label, problem=problem) from None


@contextmanager
def _valid_header(snapshot: Snapshot, path: str) -> Iterator[None]:
    try:
        yield
    except MalformedHeader as error:
        raise _bad(snapshot, path, error.reason) from None


def _bad(snapshot: Snapshot, path: str, problem: Reason) -> RepositoryError:
    return RepositoryError("bad-weights", file=path, repo=snapshot.label, problem=problem)


def _unusable(url: str, kind: WeightsReason) -> HubError:
    from importer.hub import endpoint

    return HubError("bad-answer", url=endpoint.plain(url), problem=Reason(kind))
