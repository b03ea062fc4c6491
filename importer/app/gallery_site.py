"""A gallery as static files: LocalAI's index, each entry, a page for each document, and a first page."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from html import unescape
from pathlib import Path
from urllib.parse import quote, unquote

from importer.app.gallery import ERROR, Gallery, GalleryFinding, GalleryItem
from importer.app.gallery_check import check
from importer.app.overview import DRAFT, FILES, publishable
from importer.document.document_keys import OPTIONS
from importer.document.effective import decisions
from importer.document.entry_facts import entry_facts
from importer.document.store import StoredDocument, make_folder, write_all
from importer.document.validation_state import validation
from importer.errors import DocumentError
from importer.exports.localai_gallery import HUB
from importer.frozen import frozen
from importer.reasons import Reason
from importer.reports.html import GalleryCard, page, write
from importer.reports.report_model import sheet

ENTRIES = "entries"
MARK = '<meta name="generator" content="importer: gallery">'  # of a first page
LINK = re.compile(rf'href="{ENTRIES}/([^"/]+)\.yaml"')  # of a first page to an entry
EMPTY = "[]\n"  # an index
REPORT = "<footer>Written by importer "  # of a page
SMALL = 4000  # characters with the head of a page


@frozen
class Built:
    """The files of a site; none with ``errors``. ``left_out`` has documents that may not be published.

    ``removed`` are files of the build before that this site has no more.
    """

    files: tuple[Path, ...]
    removed: tuple[Path, ...]
    left_out: tuple[tuple[str, Reason], ...]
    errors: tuple[GalleryFinding, ...]


def build_site(gallery: Gallery, site: Path, drafts: Collection[str] = ()) -> Built:
    """Check a folder of documents, and write the site of those that may be published, whole or not at all.

    Where none may be published the site is empty: an older one would go on to show them. Only documents among
    ``drafts`` may be published without an approval. Documents without an entry for LocalAI have a page, and
    stand in no index. Errors of documents that are left out do not count.
    Raises DocumentError: "no-such-document" for a name among ``drafts``, "no-documents", "cannot-write",
    "foreign-file".
    """
    documents = {item.name: (item, item.stored) for item in gallery.items if item.stored is not None}
    folder = next((stored.path.parent for _, stored in documents.values()), Path())
    for name in drafts:
        if name not in documents:
            raise DocumentError("no-such-document", name=name, folder=folder)
    left_out = []
    for name, (_, stored) in documents.items():
        why = next(publishable(stored, DRAFT if name in drafts else FILES), None)
        left_out += [] if why is None else [(name, why)]
    left = {name for name, _ in left_out}
    published = [pair for name, pair in documents.items() if name not in left]
    chosen = Gallery(tuple(item for item, _ in published), gallery.findings)
    errors = tuple(one for one in check(chosen) if one.level == ERROR and one.entry not in left)
    if errors:
        return Built((), (), tuple(left_out), errors)
    before = {*_before(site)}
    files = _write(published, site, before)
    removed = sorted(before.difference(files))
    for path in removed:
        path.unlink(missing_ok=True)
    return Built(tuple(files), tuple(removed), tuple(left_out), ())


def _before(site: Path) -> Iterator[Path]:
    """Yield the files of the build before: its index, its first page, and what that links to.

    Where the first page was removed, they are the pages of documents, and their entries.
    """
    first = site / "index.html"
    with suppress(OSError, UnicodeDecodeError):
        if first.exists():
            text = first.read_text("utf-8")
            stems = [Path(unquote(unescape(name))).name for name in LINK.findall(text)]
            ours = MARK in text[:SMALL]
        else:
            stems = [one.stem for one in site.glob("*.html") if REPORT in one.read_text("utf-8")]
            ours = bool(stems) or (site / "index.yaml").read_text("utf-8") == EMPTY
        if ours:
            yield from (first, site / "index.yaml")
            for stem in stems:
                yield from filter(Path.is_file, (site / f"{stem}.html", site / ENTRIES / f"{stem}.yaml"))


def _write(
    documents: list[tuple[GalleryItem, StoredDocument]], site: Path, before: Collection[Path]
) -> list[Path]:
    # The first page before all others: a build that was killed is known by it.
    contents = {site / "index.html": page([_card(item, stored) for item, stored in documents])}
    contents[site / "index.yaml"] = "".join(item.made.item for item, _ in documents if item.made) or EMPTY
    for item, stored in documents:
        contents[site / f"{item.name}.html"] = write(sheet(stored))
        contents[site / ENTRIES / f"{item.name}.yaml"] = stored.text if item.made is None else item.made.file
    foreign = next((path for path in contents if path not in before and os.path.lexists(path)), None)
    if (site / ENTRIES).is_symlink():
        foreign = site / ENTRIES  # it leads out of the site
    if foreign is not None:
        raise DocumentError("foreign-file", path=foreign)
    for folder in (site, site / ENTRIES):
        make_folder(folder)
    write_all(contents)
    return [*contents]


def _card(item: GalleryItem, stored: StoredDocument) -> GalleryCard:
    about = {} if item.made is None else item.made.about
    receipt, facts = stored.receipt, entry_facts(stored.data, stored.receipt)
    values = {} if receipt is None else decisions(stored)
    parsers = {}
    for key in OPTIONS:
        status = values[key]["status"] if key in values else None
        parsers[key] = " ".join(filter(None, (item.parser(key), status and f"({status})")))
    name, license_ = quote(item.name), str(about.get("license") or "")
    words = [item.name, item.model, item.backend, *parsers.values(), license_, facts.description, *facts.tags]
    shown = tuple(line for line in facts.lines if line != facts.description)
    tools, thinking = (parsers[key] if item.parser(key) else "" for key in OPTIONS)
    return GalleryCard(
        name=item.name,
        model=item.model,
        link=f"{HUB}/{item.repo}" if item.repo else f"{name}.html",
        backend=item.backend,
        tools=tools,
        thinking=thinking,
        license=license_,
        weights=facts.weights,
        review=stored.review,
        validation="never" if receipt is None else validation(receipt, stored.data, stored.digest).state,
        description=facts.description,
        shown=shown[: None if facts.validated else -1],  # a chip has that it is not validated
        page=f"{name}.html",
        entry=f"{ENTRIES}/{name}.yaml",
        text=" ".join(words),
    )
