"""Folders of this disk, each opened once: its files are found below the descriptor, by names without a link.

A link is followed where it stays in the folder, or leads to a blob of the cache that the folder belongs to.
Its target is found by name, the name is checked, and what is opened has that name without a link in it. So
renames meanwhile lead nowhere else.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from string import hexdigits
from typing import BinaryIO, Self, TypeVar

from importer.hub.snapshot import UnreadReason
from importer.reasons import Reason

# A folder on the way need not be readable; Linux and macOS have different names for that.
WAY = os.O_CLOEXEC | os.O_DIRECTORY | getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY))
LIST = os.O_CLOEXEC | os.O_DIRECTORY | os.O_RDONLY
READ = os.O_CLOEXEC | os.O_RDONLY | os.O_NONBLOCK  # a pipe or a device would block or never end
LINKED = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)  # of a link where none is followed
UP = ("..", os.sep)  # steps that leave a folder
HASHES = (40, 64)  # letters of a blob's name: git's hash, or SHA-256
Result = TypeVar("Result")


class NotPlain(OSError):
    """A path that is no plain file of its folder."""

    def __init__(self, kind: UnreadReason) -> None:
        super().__init__(kind)
        self.reason = Reason(kind)


class Folder:
    """An opened folder, closed by ``with``; paths in it are relative. ``path`` is its own, without a link."""

    def __init__(self, path: Path) -> None:
        """Open a folder.

        Raises OSError for a path with a link in it: ``AllowedFolders.folder`` returns one without.
        """
        self.path = path.absolute()
        self._own = self.path.parts
        self._fd = _descend(None, self._own[1:])
        self._opened: dict[tuple[str, ...], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (self._fd, *self._opened.values()):
            os.close(descriptor)

    def open(self, path: str) -> BinaryIO:
        """Open a file.

        Raises OSError, NotPlain for a link that leaves the folder and for what is no plain file.
        """
        return self._act(path, lambda name, at: plain(name, os.O_NOFOLLOW, at))

    def read(self, path: str, limit: int) -> bytes:
        """Return a file's bytes.

        Raises OSError, also for more than ``limit`` bytes.
        """
        with self.open(path) as file:
            return _whole(file, limit)

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a file or a folder.

        Raises OSError, NotPlain for a link that leaves the folder.
        """
        return self._act(path, _status)

    def has(self, path: str) -> bool:
        """Return whether a path is a plain file of the folder."""
        try:
            return stat.S_ISREG(self.stat(path).st_mode)
        except OSError:
            return False

    def names(self) -> list[str]:
        """Return the names of all that lies at the top, sorted.

        Raises OSError.
        """
        with _listed(self._fd) as entries:
            return sorted(entry.name for entry in entries)

    def files(self, depth: int, left: Iterator[int]) -> Iterator[tuple[str, int | None]]:
        """Yield path and bytes of all files in so many levels, hidden ones left out.

        The bytes are ``None`` for a link that leads nowhere or out of the folder. ``left`` counts the entries
        that remain. Raises OSError.
        """
        return self._files(self._fd, "", depth, left)

    def _files(
        self, at: int, prefix: str, depth: int, left: Iterator[int]
    ) -> Iterator[tuple[str, int | None]]:
        with _listed(at) as entries:
            for entry, _ in zip(entries, left, strict=False):
                path = prefix + entry.name
                if entry.name.startswith("."):
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    yield path, self._size(path, entry)
                elif depth > 1:
                    below = _descend(at, [entry.name])
                    try:
                        yield from self._files(below, f"{path}/", depth - 1, left)
                    finally:
                        os.close(below)

    def _size(self, path: str, entry: os.DirEntry[str]) -> int | None:
        try:
            status = self.stat(path) if entry.is_symlink() else entry.stat(follow_symlinks=False)
        except OSError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def _act(self, path: str, act: Callable[[str, int], Result]) -> Result:
        """Return what ``act`` makes of a file: of its name, without a link, and its folder's descriptor."""
        try:
            for place in self._places(PurePath(path).parts):
                inside = place[: len(self._own)] == self._own
                if not inside and not self._is_blob(place):
                    continue
                try:
                    if inside:
                        return _acted(self._fd, place[len(self._own) :], act)
                    return act(place[-1], self._blobs(place[:-1]))
                except OSError as error:
                    if error.errno not in LINKED:
                        raise
        except ValueError:  # a name that no file can have
            raise NotPlain(UnreadReason.NO_FILE) from None
        raise NotPlain(UnreadReason.OUTSIDE)

    def _places(self, steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield where a path may lead, from the root of the disk: itself, its link's target, and the end of
        all links.
        """
        if set(UP).isdisjoint(steps):
            yield self._own + steps
            with suppress(OSError):
                text = _acted(self._fd, steps, lambda name, at: os.readlink(name, dir_fd=at))
                target = PurePath(text).parts
                up = next((n for n, step in enumerate(target) if step != ".."), len(target))
                folder = self._own + steps[:-1]
                if set(UP).isdisjoint(target[up:]) and up < len(folder):
                    yield folder[: len(folder) - up] + target[up:]
        yield Path(os.path.realpath(self.path.joinpath(*steps), strict=True)).parts

    def _is_blob(self, place: tuple[str, ...]) -> bool:
        """Return whether a place is a blob of a cache that the folder belongs to: named by its hash.

        The Hub's client links ``snapshots/<commit>/file`` to ``../../blobs/<hash>``; copies of a cache may be
        less deep.
        """
        above, name = place[:-2], place[-1]
        near = place[-2:-1] == ("blobs",) and len(above) < len(self._own) and self._own[: len(above)] == above
        return near and len(name) in HASHES and {*name} <= {*hexdigits}

    def _blobs(self, place: tuple[str, ...]) -> int:
        """Return the descriptor of a folder of blobs, opened once."""
        if place not in self._opened:
            self._opened[place] = _descend(None, place[1:])
        return self._opened[place]


def _descend(start: int | None, steps: Sequence[str]) -> int:
    """Open the folder so many steps below ``start``, else below the root of the disk.

    Raises OSError for a step that is a link or leads up.
    """
    if not set(UP).isdisjoint(steps):
        raise _linked()
    here = os.open(os.sep, WAY) if start is None else os.dup(start)
    try:
        for step in steps:
            below = os.open(step, WAY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here


def _acted(start: int | None, steps: Sequence[str], act: Callable[[str, int], Result]) -> Result:
    if not steps:
        raise NotPlain(UnreadReason.NO_FILE)
    if steps[-1] in UP:
        raise _linked()
    at = _descend(start, steps[:-1])
    try:
        return act(steps[-1], at)
    finally:
        os.close(at)


def _status(name: str, at: int) -> os.stat_result:
    status = os.stat(name, dir_fd=at, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise _linked()
    return status


def _linked() -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP))


@contextmanager
def _listed(at: int) -> Iterator[Iterator[os.DirEntry[str]]]:
    descriptor = os.open(".", LIST, dir_fd=at)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def plain(path: str | Path, flags: int = 0, at: int | None = None) -> BinaryIO:
    """Open a file, links followed unless ``flags`` forbid it; ``at`` is the descriptor of its folder.

    Raises OSError for a path that is no plain file.
    """
    descriptor = os.open(path, READ | flags, dir_fd=at)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlain(UnreadReason.NO_FILE)
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, limit: int) -> bytes:
    """Return the bytes of a file that a person named, links followed.

    Raises OSError for a path that is no plain file or is longer than ``limit`` bytes.
    """
    with plain(path) as file:
        return _whole(file, limit)


def _whole(file: BinaryIO, limit: int) -> bytes:
    """Return all bytes of a file.

    Raises OSError for more than ``limit``.
    """
    data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data


def read_object(folder: Path, path: str, limit: int) -> dict[str, object] | None:
    """Return the object in a file of JSON; ``None`` where the file is absent, longer, or holds no object."""
    try:
        with Folder(folder) as opened:
            data = json.loads(opened.read(path, limit))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def has_files(folder: Path, *paths: str) -> bool:
    """Return whether all of these are plain files of a folder."""
    try:
        with Folder(folder) as opened:
            return all(map(opened.has, paths))
    except OSError:
        return False


def holds(folder: Path, endings: tuple[str, ...]) -> bool:
    """Return whether a name at the top of a folder has one of these endings."""
    try:
        with Folder(folder) as opened:
            return any(name.endswith(endings) for name in opened.names())
    except OSError:
        return False


def why(error: OSError) -> Reason:
    """Return the reason of an error from opening or reading a file."""
    text = error.strerror or type(error).__name__
    return error.reason if isinstance(error, NotPlain) else Reason(UnreadReason.SYSTEM, says=text)
