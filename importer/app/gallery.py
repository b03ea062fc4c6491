"""Galleries as files, a folder of documents or an index in LocalAI's form: their faults and differences.

A document is read as the entry that the export ``localai-gallery`` and the service make of it.

A gallery as static files: LocalAI's index, each entry, a page for each document, and a first page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from importer import yaml_reader
from importer.app.decide import Decided, ImportRequest
from importer.app.import_ import resolve_and_decide
from importer.app.session import ImportSession
from importer.config_file import schema
from importer.config_file.document_keys import OPTIONS, parser
from importer.config_file.effective import decisions
from importer.config_file.review import validation
from importer.config_file.schema import SchemaReason
from importer.config_file.store import Store, StoredDocument, make_folder, write_all
from importer.decisions.parsers import Unavailable
from importer.engines import registries
from importer.errors import ImporterError, UsageError
from importer.exports.base import ExportRefused
from importer.exports.localai_gallery import HUB, GalleryEntry
from importer.exports.localai_gallery import entry as entry_of
from importer.frozen import frozen
from importer.hub.local import ANYWHERE
from importer.hub.reference import is_id
from importer.hub.reference import parse as parse_reference
from importer.hub.snapshot import listed, mapping
from importer.progress import Progress, silent
from importer.reasons import Reason, ReasonKind
from importer.reports.html import GalleryRow, page, write
from importer.reports.report_model import sheet
from importer.yaml_reader import YamlError

INDEX = "index.yaml"
LONGEST = 8_000_000  # characters of an index; LocalAI's has a million
MOST_VALUES = 1_000_000
NAME = re.compile(r"(?!\.\.?$)[^/\\@\x00-\x1f]{1,200}")  # GALLERY@NAME installs one
SHA256 = re.compile(r"[0-9a-f]{64}")
KEYS = frozenset({
    "name", "url", "urls", "description", "license", "icon", "tags", "size", "last_checked", "files",
    "config_file", "overrides", "variants",
})  # fmt: skip
HUB_FORMS = ("huggingface://", "hf://", "https://huggingface.co/", "https://hf.co/")
STALE_DAYS = 180
UNKNOWN = (SchemaReason.UNKNOWN_KEY, SchemaReason.UNKNOWN_KEY_NEAR)
UNPROVED = (Unavailable.NOT_INSTALLED, Unavailable.NOT_RUN_HERE, Unavailable.NOT_KNOWN)
CHECKED = ("vllm", "mlx", "mlx-vlm")  # backends whose configurations have a schema here
LOCALAI_PARSERS = ("vllm", "sglang")  # LocalAI's other backends read no parser of the options
ERROR, WARNING, NOTE = "error", "warning", "note"


class GalleryReason(ReasonKind):
    """What is wrong with an entry of a gallery, or not known of it."""

    UNREADABLE = "unreadable", "it cannot be read: {problem}"
    NO_LIST = "no-list", "an index is a list of entries, and this is none"
    NO_NAME = "no-name", "it has no name"
    NAME = "name", "the name {name!r} is no file name"
    DUPLICATE = "duplicate", "the name {name!r} belongs to the entry in {file}, line {line}, as well"
    UNKNOWN_KEY = "unknown-key", "LocalAI reads no key {key!r} of an entry"
    SCHEMA = "schema", "the configuration is not valid: {problem}"
    BASE = "base", "its configuration is in {url}, so it was not checked"
    BAD_BASE = "bad-base", "its configuration in {url} cannot be read: {problem}"
    NO_CONFIG = "no-config", "it installs nothing: it has no url, no configuration, no overrides and no files"
    VARIANT = "variant", "its variant {name!r} is no entry of this gallery"
    UNKNOWN_PARSER = "unknown-parser", "{engine} has no {key} named {name!r}"
    UNPINNED = "unpinned", "{model} has no commit, so the next upload changes what runs"
    NO_HASH = "no-hash", "the file {file!r} has no sha256"
    NO_LICENSE = "no-license", "it names no license"
    STALE = "stale", "it was last checked on {date}, {days} days ago"
    EDITED = "edited", "it was changed after its review"
    NOT_INDEXED = "not-indexed", "LocalAI gets no entry for it: {problem}"
    NO_PARSER = "no-parser", "it names no {key}; {proved!r} is proved on the model's own template"
    OTHER_PARSER = "other-parser", "it names the {key} {name!r}; {proved!r} is proved on the model's template"
    NEEDLESS_PARSER = "needless-parser", "it names the {key} {name!r}; the model's template needs none"
    NOT_COMPARED = "not-compared", "its parsers were not compared with the model: {problem}"


LEVELS: Mapping[GalleryReason, str] = {
    **dict.fromkeys(GalleryReason, WARNING),
    **dict.fromkeys(
        (
            GalleryReason.UNREADABLE, GalleryReason.NO_LIST, GalleryReason.NO_NAME, GalleryReason.NAME,
            GalleryReason.DUPLICATE, GalleryReason.SCHEMA, GalleryReason.NO_CONFIG, GalleryReason.BAD_BASE,
            GalleryReason.VARIANT, GalleryReason.UNKNOWN_PARSER, GalleryReason.OTHER_PARSER,
        ),
        ERROR,
    ),
    **dict.fromkeys((GalleryReason.BASE, GalleryReason.NOT_INDEXED, GalleryReason.NOT_COMPARED), NOTE),
}  # fmt: skip


@frozen
class GalleryFinding:
    """A finding about an entry, with the place of the entry; lines count from 1."""

    entry: str
    file: str
    line: int
    reason: Reason

    @property
    def level(self) -> str:
        """Return error, warning or note."""
        return LEVELS[GalleryReason(self.reason.kind)]


@frozen
class GalleryItem:
    """An entry: its own keys (``about``), and the configuration that a LocalAI writes for it (``config``).

    ``config`` is ``None`` where it is elsewhere. ``findings`` are those of the reading; ``stored`` and
    ``made`` are a document and the entry that importer makes of it.
    """

    name: str
    file: str
    line: int
    about: Mapping[str, Any]
    config: Mapping[str, Any] | None
    stored: StoredDocument | None = None
    findings: tuple[Reason, ...] = field(default=())
    made: GalleryEntry | None = None

    @property
    def model(self) -> str:
        """Return the model of the configuration; empty without one."""
        return str(mapping(mapping(self.config).get("parameters")).get("model") or "")

    @property
    def repo(self) -> str | None:
        """Return the Hub's id of the model; ``None`` for another one, and for one among the entry's files."""
        name = self.model
        files = [str(mapping(one).get("filename")) for one in listed(self.about.get("files"))]
        if files and not any(file.startswith("models--") for file in files):  # the Hub's cache, as exported
            return None
        if not is_id(name) and not name.startswith(HUB_FORMS):
            return None
        try:
            parsed = parse_reference(name)
        except ImporterError:
            return None
        return parsed.repo if parsed.path is None else None

    @property
    def revision(self) -> str | None:
        """Return the commit of the model."""
        config = mapping(self.config)
        sources = [mapping(mapping(one).get("source")) for one in listed(config.get("artifacts"))]
        block = mapping(config.get("importer"))
        found = [block.get("revision"), *(source.get("revision") for source in sources)]
        return next((one for one in found if isinstance(one, str)), None)

    @property
    def backend(self) -> str:
        """Return the engine's name."""
        return str(mapping(self.config).get("backend") or "")

    def parser(self, key: str) -> str | None:
        """Return the parser that an option names; ``None`` without one."""
        options = [one for one in listed(mapping(self.config).get("options")) if isinstance(one, str)]
        return parser({"options": options}, key) or None


@frozen
class Gallery:
    """The entries of a place, and the findings about its files."""

    items: tuple[GalleryItem, ...]
    findings: tuple[GalleryFinding, ...] = ()


def read(place: Path) -> Gallery:
    """Read an index, a folder with one, or a folder of documents.

    Raises UsageError("no-such-directory").
    """
    if place.is_dir():
        index = place / INDEX
        return _index(index) if index.is_file() else _documents(place)
    if not place.is_file():
        raise UsageError("no-such-directory", path=place)
    return _index(place)


def check(
    gallery: Gallery,
    *,
    stale_days: int = STALE_DAYS,
    bench: ImportSession | None = None,
    offline: bool = False,
    progress: Progress = silent,
) -> Iterator[GalleryFinding]:
    """Yield every finding; with ``bench`` the parsers are compared with the models' own templates, too."""
    yield from gallery.findings
    first: dict[str, GalleryItem] = {}
    names = {item.name for item in gallery.items}
    for item in gallery.items:
        reasons = [*item.findings, *_of_entry(item, names, stale_days), *_of_config(item)]
        other = first.setdefault(item.name.casefold(), item)
        if other is not item and item.name:
            reasons.insert(
                0, Reason(GalleryReason.DUPLICATE, name=item.name, file=other.file, line=other.line)
            )
        if bench is not None:
            reasons += _of_template(item, bench, offline=offline, progress=progress)
        yield from (GalleryFinding(item.name, item.file, item.line, reason) for reason in reasons)


def _documents(folder: Path) -> Gallery:
    store, items, findings = Store(folder), list[GalleryItem](), list[GalleryFinding]()
    for name in store.names():
        file = str(store.path(name))
        try:
            stored = store.load(name)
            stored.check()
            made = entry_of(stored.data, stored.receipt)
        except ImporterError as error:
            reason = Reason(GalleryReason.UNREADABLE, problem=error.message)
            findings.append(GalleryFinding(name, file, 1, reason))
            continue
        if isinstance(made, ExportRefused):
            refused = (Reason(GalleryReason.NOT_INDEXED, problem=made.reason),)
            items.append(GalleryItem(name, file, 1, {}, stored.data, stored, refused))
        else:
            about = yaml_reader.read(made.item)[0]
            items.append(GalleryItem(name, file, 1, about, stored.data, stored, made=made))
    return Gallery(tuple(items), tuple(findings))


def _index(path: Path) -> Gallery:
    def failed(reason: Reason, line: int = 1) -> Gallery:
        return Gallery((), (GalleryFinding("", str(path), line, reason),))

    try:
        text = _text(path)
        data = yaml_reader.read(text, longest=LONGEST, most=MOST_VALUES)
        node = yaml_reader.compose(text, longest=LONGEST, most=MOST_VALUES)
    except YamlError as error:
        return failed(Reason(GalleryReason.UNREADABLE, problem=error.reason), error.line)
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "it is not UTF-8 text"
        return failed(Reason(GalleryReason.UNREADABLE, problem=problem))
    if not isinstance(data, list) or node is None:
        return failed(Reason(GalleryReason.NO_LIST))
    lines = [one.start_mark.line + 1 for one in node.value]
    return Gallery(tuple(_item(one, path, line) for one, line in zip(data, lines, strict=True)))


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(4 * LONGEST).decode()


def _item(data: object, index: Path, line: int) -> GalleryItem:
    about = mapping(data)
    name = about.get("name")
    config, problem = _config(about, index.parent)
    return GalleryItem(
        str(name) if name else "", str(index), line, about, config, findings=tuple(filter(None, [problem]))
    )


def _config(about: Mapping[str, Any], folder: Path) -> tuple[Mapping[str, Any] | None, Reason | None]:
    """Return the configuration with its base and its overrides, as LocalAI merges them."""
    own, url = about.get("config_file"), about.get("url")
    base: Mapping[str, Any] = {}
    if isinstance(url, str) and url:
        path = folder / Path(url.partition("@")[0]).name
        try:
            held = mapping(yaml_reader.read(_text(path)))
            inner = held.get("config_file")
            base = mapping(yaml_reader.read(inner) if isinstance(inner, str) else inner)
        except OSError:
            return None, Reason(GalleryReason.BASE, url=url)
        except (YamlError, UnicodeDecodeError) as error:
            problem = error.reason  # both name it
            return None, Reason(GalleryReason.BAD_BASE, url=url, problem=problem)
    elif not any(about.get(key) for key in ("config_file", "overrides", "files")):
        return None, Reason(GalleryReason.NO_CONFIG) if about.get("name") else None
    return _merged(_merged(base, mapping(own)), mapping(about.get("overrides"))), None


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        merged[key] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _of_entry(item: GalleryItem, names: set[str], stale_days: int) -> Iterator[Reason]:
    """Yield what is wrong with an entry's own keys."""
    about = item.about
    if not item.name:
        yield Reason(GalleryReason.NO_NAME)
        return
    if not NAME.fullmatch(item.name):
        yield Reason(GalleryReason.NAME, name=item.name[:80])
    yield from (Reason(GalleryReason.UNKNOWN_KEY, key=str(key)[:80]) for key in about if key not in KEYS)
    yield from _of_parts(item, names)
    if about and not about.get("license"):
        yield Reason(GalleryReason.NO_LICENSE)
    checked = _date(about.get("last_checked"))
    if checked is not None and (days := (datetime.now(UTC).date() - checked).days) > stale_days:
        yield Reason(GalleryReason.STALE, date=checked.isoformat(), days=days)


def _of_parts(item: GalleryItem, names: set[str]) -> Iterator[Reason]:
    """Yield what is wrong with an entry's variants and files, and with a document's review."""
    for one in listed(item.about.get("variants")):
        if (variant := str(mapping(one).get("model"))) not in names - {item.name}:
            yield Reason(GalleryReason.VARIANT, name=variant[:80])
    for one in listed(item.about.get("files")):
        if item.stored is None and not SHA256.fullmatch(str(mapping(one).get("sha256"))):
            yield Reason(GalleryReason.NO_HASH, file=str(mapping(one).get("filename"))[:80])
    receipt = None if item.stored is None else item.stored.receipt
    if item.stored is not None and receipt is not None and receipt.state(item.stored.digest) == "stale":
        yield Reason(GalleryReason.EDITED)


def _of_config(item: GalleryItem) -> Iterator[Reason]:
    """Yield what is wrong with the configuration; a document was checked when it was read."""
    if item.config is None:
        return
    if item.stored is None and item.backend in CHECKED:
        for fault in schema.faults("localai-model", {**item.config, "name": "entry"}):
            if getattr(fault.message, "kind", None) in UNKNOWN:
                continue  # LocalAI has keys that no language model needs
            yield Reason(GalleryReason.SCHEMA, problem=schema.at(fault.path, fault.message))
    if item.backend in registries.FAMILY or registries.versions(item.backend):
        for key, kind in zip(OPTIONS, ("tool", "reasoning"), strict=True):
            name = item.parser(key)
            known = registries.versions(item.backend)
            if name and known and not any(registries.load(item.backend, v).has(kind, name) for v in known):  # type: ignore[arg-type]
                yield Reason(GalleryReason.UNKNOWN_PARSER, engine=item.backend, key=key, name=name[:80])
    if item.repo is not None and item.revision is None:
        yield Reason(GalleryReason.UNPINNED, model=item.repo)


def _of_template(
    item: GalleryItem, bench: ImportSession, *, offline: bool, progress: Progress
) -> Iterator[Reason]:
    """Yield where an entry's parsers are not those that an import proves on the model's own template."""
    if item.repo is None or not registries.versions(item.backend):
        return
    if item.stored is None and item.backend not in LOCALAI_PARSERS:
        return
    if item.stored is not None and item.stored.chat_template() is not None:
        return
    try:
        decided = resolve_and_decide(_request(item, offline=offline), bench, ANYWHERE, progress)
    except ImporterError as error:
        yield Reason(GalleryReason.NOT_COMPARED, problem=error.message)
        return
    why = [reason for key in OPTIONS if key in decided.decisions for reason in decided.decisions[key].why]
    unproved = next((reason for reason in why if reason.kind in UNPROVED), None)
    if decided.proof is None and unproved is not None:
        yield Reason(GalleryReason.NOT_COMPARED, problem=unproved)
    yield from filter(None, (_compared(item, key, decided) for key in OPTIONS))


def _request(item: GalleryItem, *, offline: bool) -> ImportRequest:
    return ImportRequest.of(
        str(item.repo), {"backend": item.backend, "revision": item.revision, "offline": offline}
    )


def _compared(item: GalleryItem, key: str, decided: Decided) -> Reason | None:
    decision, name = decided.decisions.get(key), item.parser(key)
    if decision is None or decision.status not in {"proved", "none"}:
        return None
    proved = decision.value
    if proved is None:
        needless = name is not None and decision.status == "none"
        return Reason(GalleryReason.NEEDLESS_PARSER, key=key, name=name) if needless else None
    if name is None:
        return Reason(GalleryReason.NO_PARSER, key=key, proved=proved)
    known = registries.load(item.backend, decided.target.version)
    kind: registries.Kind = "tool" if key == "tool_parser" else "reasoning"
    same = name == proved or known.class_of(kind, name) == known.class_of(kind, str(proved))
    return None if same else Reason(GalleryReason.OTHER_PARSER, key=key, name=name, proved=proved)


@frozen
class GalleryChange:
    """An entry that differs between two galleries: its values by key, before and after.

    An empty mapping on one side: the entry is added or removed.
    """

    name: str
    before: Mapping[str, str]
    after: Mapping[str, str]


def changes(before: Gallery, after: Gallery) -> Iterator[GalleryChange]:
    """Yield the entries that differ for those who run the models, by name."""
    old, new = ({item.name: item for item in one.items} for one in (before, after))
    for name in sorted({*old, *new}):
        values = [_facts(side[name]) if name in side else {} for side in (old, new)]
        if values[0] != values[1]:
            yield GalleryChange(name, values[0], values[1])


def _facts(item: GalleryItem) -> dict[str, str]:
    """Return what runs: the configuration's values by their path, and license and size."""
    flat = dict(_flat("", {k: v for k, v in mapping(item.config).items() if k not in {"importer", "name"}}))
    about = {key: str(item.about[key]) for key in ("license", "size", "url") if item.about.get(key)}
    revision = {} if item.revision is None else {"commit": item.revision}
    flat.pop("parameters.model", None)
    facts = {"backend": item.backend, "model": item.model, **revision, **about, **flat}
    return {key: value for key, value in facts.items() if key and value}


def _flat(path: str, value: object) -> Iterable[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}" if path else str(key), inner)
    elif isinstance(value, list):
        yield path, ", ".join(map(str, value))
    else:
        yield path, str(value)


def _date(value: object) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        return None


ENTRIES = "entries"
PROVED = "proved"  # a decision's status


def build_site(gallery: Gallery, site: Path) -> list[Path]:
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
    values = {} if stored.receipt is None else decisions(stored)
    named = {key: item.parser(key) for key in OPTIONS}
    statuses = {key: str(values[key]["status"]) for key, name in named.items() if name and key in values}
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
