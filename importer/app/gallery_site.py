"""A gallery as static files: LocalAI's index, each entry, a page for each document, and a first page."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from importer.app.gallery import Gallery, GalleryItem
from importer.config_file.document_keys import OPTIONS
from importer.config_file.store import StoredDocument, make_folder, write_all
from importer.config_file.validation_status import validation
from importer.exports.localai_gallery import HUB, GalleryEntry
from importer.reports.html import write
from importer.reports.html.gallery import GalleryRow, page
from importer.reports.report_model import sheet

ENTRIES = "entries"
PROVED = "proved"  # a decision's status


def build(gallery: Gallery, site: Path) -> list[Path]:
    """Write the site of a folder of documents, whole or not at all, and return its files.

    Documents without an entry for LocalAI have a page, and stand in no index.
    Raises DocumentError("cannot-write").
    """
    documents = [(item, item.stored) for item in gallery.items if item.stored is not None]
    contents = {site / "index.yaml": "".join(item.made.item for item, _ in documents if item.made) or "[]\n"}
    for item, stored in documents:
        contents[site / f"{item.name}.html"] = write(sheet(stored))
        contents[site / ENTRIES / f"{item.name}.yaml"] = stored.text if item.made is None else item.made.file
    contents[site / "index.html"] = page([_row(item, stored, item.made) for item, stored in documents])
    for folder in (site, site / ENTRIES):
        make_folder(folder)
    write_all(contents)
    return [*contents]


def _row(item: GalleryItem, stored: StoredDocument, made: GalleryEntry | None) -> GalleryRow:
    about = {} if made is None else made.about
    decisions = {} if stored.receipt is None else stored.receipt.decisions
    named = {key: item.parser(key) for key in OPTIONS}
    decided = [key for key, name in named.items() if name and key in decisions]
    statuses = {key: str(decisions[key]["status"]) for key in decided}
    parsers = ", ".join(
        f"{name} ({statuses[key]})" if key in statuses else name for key, name in named.items() if name
    )
    proof = next((one for one in statuses.values() if one != PROVED), PROVED) if statuses else ""
    state = (
        "never" if stored.receipt is None else validation(stored.receipt, stored.data, stored.digest).state
    )
    name, license_ = quote(item.name), str(about.get("license") or "")
    words = [item.name, item.model, item.backend, parsers, license_, str(about.get("description") or "")]
    tags = about.get("tags")
    words += [str(tag) for tag in tags] if isinstance(tags, list) else []
    link = f"{HUB}/{item.repo}" if item.repo else f"{name}.html"
    return GalleryRow(
        item.name, item.model, link, item.backend, parsers, proof, license_, str(about.get("size") or ""),
        state, f"{name}.html", f"{ENTRIES}/{name}.yaml", " ".join(words),
    )  # fmt: skip
