"""Steps that change how files of a model's folder were saved, and what lies beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.faults.fault import Site
from tests.faults.steps import TEMPLATE, read_json


@dataclass(frozen=True)
class Beside:
    """A further file in the model's folder, or in one below it."""

    file: str
    text: str

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")


@dataclass(frozen=True)
class LinesOfWindows:
    """Lines of a file of the model end as on Windows."""

    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@dataclass(frozen=True)
class Encoded:
    """A file of the model was saved in another encoding."""

    encoding: str
    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_bytes(path.read_text(encoding="utf-8").encode(self.encoding))


@dataclass(frozen=True)
class ReadAs:
    """A file of the model in UTF-8 was read as if it were in another encoding, and saved again."""

    encoding: str
    file: str

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_text(path.read_bytes().decode(self.encoding), encoding="utf-8")


@dataclass(frozen=True)
class OneLine:
    """Line breaks of a file of the model are spaces."""

    file: str = TEMPLATE

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_text(path.read_text(encoding="utf-8").replace("\n", " "), encoding="utf-8")


@dataclass(frozen=True)
class LinkedToNothing:
    """A file of the model is a link to one that is not there."""

    file: str
    to: str

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.unlink()
        path.symlink_to(self.to)


@dataclass(frozen=True)
class Linked:
    """The files are links into a cache's folder of blobs; these blobs were cleared away."""

    cleared: tuple[str, ...] = ()

    def plant(self, site: Site) -> None:
        blobs = site.folder.parent / "blobs"
        blobs.mkdir()
        for number, path in enumerate(sorted(p for p in site.folder.iterdir() if p.is_file())):
            blob = blobs / f"{number:040x}"
            path.rename(blob)
            path.symlink_to(Path("..") / blobs.name / blob.name)
            if path.name in self.cleared:
                blob.unlink()


@dataclass(frozen=True)
class Written:
    """A JSON file was written again, with indents and without letters beyond ASCII."""

    file: str = "tokenizer.json"

    def plant(self, site: Site) -> None:
        path = site.folder / self.file
        path.write_text(json.dumps(read_json(site, self.file), indent=2) + "\n", encoding="utf-8")
