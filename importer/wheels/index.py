"""Released files in the package index that pip is configured with, or in a folder."""

from __future__ import annotations

import hashlib
import html.parser
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from importer import launcher
from importer.launcher import Purpose
from importer.wheels import PIP, archive
from importer.wheels.archive import IndexFailure, Texts
from importer.wheels.web import Web, local, shown

__all__ = ["Index", "IndexFailure", "Release", "day", "order"]

PYPI = "https://pypi.org/simple"
PAGE = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
PIP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Release:
    """One released file; ``released`` is the day it came out, empty where unknown."""

    package: str
    version: str
    file: str
    url: str
    sha256: str
    released: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the members for generated files."""
        members = {"package": self.package, "file": self.file, "sha256": self.sha256}
        return members | ({"released": self.released} if self.released else {})


class Index:
    """The package index, with pip's settings as they are when it is made; or a folder in its place."""

    def __init__(self, folder: Path | None = None) -> None:
        settings = {} if folder else _pip()
        bases = [settings.get("index-url", PYPI), *settings.get("extra-index-url", "").split()]
        self.bases = [] if folder or _is_on(settings.get("no-index", "")) else bases
        places = settings.get("find-links", "").split()
        self._folders = [folder] if folder else [local(p) or Path(p) for p in places]
        self.web = Web(settings.get("cert"))
        self.is_folder = folder is not None  # a person gave the files
        self._files: dict[str, list[Release]] = {}

    def files(self, package: str) -> list[Release]:
        """Return every file of a final version, the oldest version first. Raises IndexFailure."""
        if package not in self._files:
            self._files[package] = self._look_up(package)
        return self._files[package]

    def _look_up(self, package: str) -> list[Release]:
        tried: list[str] = []
        for base in self.bases:
            page = f"{base.rstrip('/')}/{package}/"
            try:
                url, body = self.web.page(page, PAGE)
            except (OSError, ValueError) as error:
                tried.append(f"{shown(base)} ({str(error).removeprefix(shown(page)).strip()})")
                continue
            releases = [*_from_page(package, url, body)]
            if releases:
                return sorted(releases, key=lambda release: (order(release.version), release.file))
            tried.append(f"{shown(base)} (lists no file of it)")
        releases = [release for folder in self._folders for release in _from_folder(package, folder)]
        if releases:
            return sorted(releases, key=lambda release: (order(release.version), release.file))
        places = ", ".join([*tried, *map(str, self._folders)])
        raise IndexFailure(f"no index has {package}; asked were {places or 'none, as pip is set'}")

    def part(self, release: Release, is_needed: Callable[[str], bool]) -> Texts:
        """Return the wanted files of a wheel without the rest, as far as that is possible. Raises
        IndexFailure.
        """
        return archive.part(self.web, release.url, release.file, release.sha256, is_needed)


def order(version: str) -> tuple[int, ...]:
    """Return the order of final versions."""
    return tuple(int(part) for part in version.split("."))


def _from_page(package: str, page: str, body: bytes) -> Iterator[Release]:
    """Yield the files that a page lists, in either of its forms; those without a SHA-256 cannot be
    checked.
    """
    text = body.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        yield from _from_json(package, page, text)
        return
    links = _Links()
    links.feed(text)
    for link in links.targets:
        url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(page, link))
        file = urllib.parse.unquote(url.rsplit("/", 1)[-1])
        digest = urllib.parse.parse_qs(fragment).get("sha256")
        version = _version(package, file)
        if version and digest:
            yield Release(package, version, file, url, digest[0])


def _from_json(package: str, page: str, text: str) -> Iterator[Release]:
    try:
        files = json.loads(text)["files"]
        for entry in files:
            version, digest = _version(package, entry["filename"]), entry["hashes"].get("sha256")
            if version and digest:
                url = urllib.parse.urljoin(page, entry["url"])
                released = day(entry.get("upload-time") or "")
                yield Release(package, version, entry["filename"], url, digest, released)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise IndexFailure(f"{shown(page)} is no page of a package index") from None


def _from_folder(package: str, folder: Path) -> Iterator[Release]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        version = _version(package, path.name)
        if version:
            yield _on_disk(package, version, path)


def _on_disk(package: str, version: str, path: Path) -> Release:
    if path.exists() and not path.is_file():
        raise IndexFailure(f"{path} cannot be read: it is no file")
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise IndexFailure(f"{path} cannot be read: {error.strerror}") from None
    return Release(package, version, path.name, path.resolve().as_uri(), digest)


def _version(package: str, file: str) -> str:
    """Return the final version in a file name, or an empty text."""
    stem = re.sub(r"[-_.]+", "[-_.]", package)
    match = re.fullmatch(rf"{stem}-(\d+(?:\.\d+)+)(\.tar\.gz|-[^/]*\.whl)", file, re.IGNORECASE)
    return match[1] if match else ""


def day(moment: str) -> str:
    """Return ``2026-10-26`` for ``2026-10-26T14:12:36Z``."""
    match = re.match(r"\d{4}-\d\d-\d\d", moment)
    return match[0] if match else ""


class _Links(html.parser.HTMLParser):
    """The targets of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link."""
        self.targets += [value for key, value in attrs if tag == "a" and key == "href" and value]


def _is_on(setting: str) -> bool:
    return setting.lower() in {"1", "true", "yes", "on"}


def _pip() -> Mapping[str, str]:
    """Return pip's settings: its files first, then the environment, which overrides them."""
    try:
        output = launcher.run([*PIP, "config", "list"], Purpose.INSTALL, seconds=PIP_SECONDS).output
    except OSError as error:
        raise IndexFailure(f"pip did not list its settings: {error.strerror}") from None
    lines = sorted(
        re.findall(r"^(\S+?)\.([a-z-]+)='(.*)'$", output, re.MULTILINE), key=lambda row: row[0] == ":env:"
    )
    return {key: value for _, key, value in lines}
