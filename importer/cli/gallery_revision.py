"""A gallery of another revision: ``main:models`` is the folder ``models`` of git's ``main``."""

from __future__ import annotations

import os
import posixpath
import re
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from importer import launcher
from importer.errors import UsageError
from importer.launcher import Purpose

SECONDS = 60.0  # for git
REVISION = re.compile(r"(?P<ref>[^-:\s][^:\s]*):(?P<path>[^\s:/][^\s:]*)")  # not of the whole disk
PLAIN = "* -export-ignore -export-subst -text\n"  # no attribute of the tree leaves out or changes a file
SHORT = 40  # letters of a name of git's by SHA-1


@contextmanager
def opened(place: str) -> Iterator[Path]:
    """Yield the path of a gallery: what is on this disk, else the files of a revision for the block.

    Raises UsageError("no-such-directory"), and UsageError("bad-option") for what git does not have.
    """
    matched = None if Path(place).exists() else REVISION.fullmatch(place)
    if matched is None:
        yield Path(place)
        return
    with tempfile.TemporaryDirectory(prefix="importer-revision-") as folder:
        packed, unpacked, bare = (Path(folder, name) for name in ("files.tar", "files", "bare.git"))
        paths = ("--path-format=absolute", "--git-path", "objects", "--show-prefix")
        objects, prefix, tree = _git(
            place, Path.cwd(), "rev-parse", *paths, f"{matched['ref']}^{{tree}}"
        ).split("\n")[:3]
        # Its own repository: that of the folder may name programs that git would run on each file.
        form = "sha256" if len(tree) > SHORT else "sha1"
        how = ("--bare", "--quiet", "--template=", f"--object-format={form}")
        _git(place, Path(folder), "init", *how, str(bare))
        (bare / "objects" / "info" / "alternates").write_text(f"{objects}\n", encoding="utf-8")
        (bare / "info").mkdir(exist_ok=True)
        (bare / "info" / "attributes").write_text(PLAIN, encoding="utf-8")
        path = posixpath.normpath(posixpath.join(prefix, matched["path"]))
        _git(place, bare, "archive", "--format=tar", f"--output={packed}", tree, "--", path)
        try:
            with tarfile.open(packed) as files:
                for one in files:
                    _unpack(files, one, unpacked)
        except (OSError, tarfile.TarError) as error:
            raise _refused(place, str(error)) from None
        if not (unpacked / path).exists():  # a folder without a plain file
            (unpacked / path).mkdir(parents=True)
        yield unpacked / path


def _unpack(files: tarfile.TarFile, one: tarfile.TarInfo, folder: Path) -> None:
    """Write a file; in place of a link out of the folder a link to nothing, so that a reader names it."""
    try:
        files.extract(one, folder, filter="data")
    except tarfile.FilterError:
        (folder / one.name).parent.mkdir(parents=True, exist_ok=True)
        (folder / one.name).symlink_to(os.devnull)


def _git(place: str, folder: Path, *words: str) -> str:
    try:
        done = launcher.run(["git", *words], Purpose.SYSTEM, seconds=SECONDS, folder=folder)
    except OSError as error:
        raise _refused(place, str(error)) from None
    if done.code != 0:
        raise _refused(place, done.errors)
    return done.output


def _refused(place: str, problem: str) -> UsageError:
    return UsageError("bad-option", option=place, problem=f"git: {' '.join(problem.split())}")
