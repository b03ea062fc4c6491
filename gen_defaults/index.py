"""Released files from the package index that pip is configured with, checked by digest, never installed."""

from __future__ import annotations

import hashlib
import html.parser
import io
import re
import ssl
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

PYPI = "https://pypi.org/simple"
TIMEOUT = 180.0  # seconds of silence


class IndexFailure(Exception):
    """The index lacks what is needed, or what came is not what it names."""


@dataclass(frozen=True, slots=True)
class Release:
    """One released file: an sdist where there is one, else a wheel."""

    package: str
    version: str
    file: str
    url: str
    sha256: str


class Index:
    """The package index, with pip's settings as they are when it is made."""

    def __init__(self) -> None:
        settings = _pip()
        self._bases = [settings.get("index-url", PYPI), *settings.get("extra-index-url", "").split()]
        self._context = ssl.create_default_context(cafile=settings.get("cert"))

    def releases(self, package: str) -> dict[str, Release]:
        """Every final version of a package with one of its files, the oldest first. Raises IndexFailure."""
        for base in (url for url in self._bases if url.startswith("http")):
            page = f"{base.rstrip('/')}/{package}/"
            try:
                text = self._get(page).decode()
            except OSError:
                continue
            found = _files(package, page, text)
            if found:
                return dict(sorted(found.items(), key=lambda item: order(item[0])))
        raise IndexFailure(f"no index has {package}")

    def texts(self, release: Release, wanted: Callable[[str], bool]) -> dict[str, str]:
        """The wanted files of a release by path in the package; raises IndexFailure for another digest."""
        data = self._get(release.url)
        if hashlib.sha256(data).hexdigest() != release.sha256:
            raise IndexFailure(f"{release.file} is not the file that the index names")
        if release.file.endswith(".whl"):
            with zipfile.ZipFile(io.BytesIO(data)) as wheel:
                return {name: wheel.read(name).decode() for name in wheel.namelist() if wanted(name)}
        found = {}
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as sdist:
            for member in sdist:
                path = member.name.partition("/")[2]
                content = sdist.extractfile(member) if member.isfile() and wanted(path) else None
                if content is not None:
                    found[path] = content.read().decode()
        return found

    def _get(self, url: str) -> bytes:
        if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
            raise IndexFailure(f"{url} is not on the web")
        request = urllib.request.Request(url, headers={"Accept": "text/html, application/octet-stream"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=self._context) as answer:  # noqa: S310
            return bytes(answer.read())


def order(version: str) -> tuple[int, ...]:
    """By which final versions sort."""
    return tuple(int(part) for part in version.split("."))


def _files(package: str, page: str, text: str) -> dict[str, Release]:
    links = _Links()
    links.feed(text)
    stem = re.sub(r"[-_.]+", "[-_.]", package)
    shape = re.compile(rf"{stem}-(\d+(?:\.\d+)+)(\.tar\.gz|-[^/]*\.whl)", re.IGNORECASE)
    found: dict[str, Release] = {}
    for link in links.found:
        url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(page, link))
        file = urllib.parse.unquote(url.rsplit("/", 1)[-1])
        match = shape.fullmatch(file)
        digest = urllib.parse.parse_qs(fragment).get("sha256")
        if match and digest and (match[2] == ".tar.gz" or match[1] not in found):
            found[match[1]] = Release(package, match[1], file, url, digest[0])
    return found


class _Links(html.parser.HTMLParser):
    """The targets of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link."""
        self.found += [value for key, value in attrs if tag == "a" and key == "href" and value]


def _pip() -> dict[str, str]:
    """What pip is set to: its files first, then the environment, which wins."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = sorted(
        re.findall(r"^(\S+?)\.([a-z-]+)='(.*)'$", told, re.MULTILINE), key=lambda row: row[0] == ":env:"
    )
    return {key: value for _, key, value in lines}
