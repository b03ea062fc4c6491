"""The entries of a gallery that lies in files: a folder of documents, or an index in LocalAI's form.

A document is read as the entry that the export ``localai-gallery`` and the service make of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from importer import yaml_reader
from importer.document import template_file
from importer.document.document_keys import Change, KeyPath, differences, parse, parser
from importer.document.schema import document_faults
from importer.document.store import Store, StoredDocument, receipt_path
from importer.document.yaml_edit.source_map import SourceMap, TextReason
from importer.errors import DocumentError, ImporterError, UsageError
from importer.exports.localai_gallery import GalleryEntry
from importer.exports.localai_gallery import entry as entry_of
from importer.frozen import frozen
from importer.hub.folders import read_plain, why
from importer.hub.reference import Reference, is_id
from importer.hub.reference import parse as parse_reference
from importer.hub.snapshot import listed, mapping
from importer.reasons import Reason, ReasonKind
from importer.yaml_reader import YamlError

INDEX = "index.yaml"
LONGEST = 8_000_000  # characters of an index; LocalAI's has a million
MOST_VALUES = 1_000_000
CONFIG = "config_file"
HUB_FORMS = ("huggingface://", "hf://", "https://huggingface.co/", "https://hf.co/")
Level = Literal["error", "warning", "note"]
ERROR: Level = "error"
WARNING: Level = "warning"
NOTE: Level = "note"


class GalleryReason(ReasonKind):
    """What is wrong with an entry of a gallery, or not known of it."""

    UNREADABLE = "it cannot be read: {problem}"
    LINK_OUT = "it is a link out of the gallery's folder, and was not read"
    NO_LIST = "an index is a list of entries, and this is none"
    MIXED = "an index lies among documents: name the document otherwise, or move the index"
    NO_NAME = "it has no name"
    NAME = "the name {name!r} is no file name"
    ODD_CHARACTER = "{place} has the character {code}, and no reader shows it"
    DUPLICATE = "the name {name!r} belongs to the entry in {file}, line {line}, as well"
    UNKNOWN_KEY = "LocalAI reads no key {key!r} of an entry"
    SCHEMA = "it is not valid: {problem}"
    BASE = "its configuration is in {url}, so it was not checked"
    BAD_BASE = "its configuration in {url} cannot be read: {problem}"
    NO_CONFIG = "it installs nothing: it has no url, no configuration, no overrides and no files"
    VARIANT = "its variant {name!r} is no entry of this gallery"
    NESTED = "it is one of the variants of {parent!r} and has variants: LocalAI resolves one level"
    PARENTS = "its variant {name!r} is one of the variants of {parent!r} as well"
    UNKNOWN_PARSER = "{engine} has no {key} named {name!r}{near:?}"
    UNPINNED = "{model} has no commit, so the next upload changes what runs"
    OUTSIDE = "LocalAI writes no file outside of its models' folder, as {file!r} is"
    NO_FILE = "LocalAI downloads no file from {uri!r}; name one, as huggingface://owner/name/file"
    NO_HASH = "the file {file!r} has no sha256"
    GONE = "{problem}"
    FILE_GONE = "{repo} has no file {file!r}{near:?}"
    FILE_CHANGED = "the file {file!r} of {repo} has the SHA-256 {now} now"
    NO_LICENSE = "it names no license"
    STALE = "it was last checked on {date}, {days} days ago"
    UNPUBLISHED = "a gallery's site leaves it out: {why}"
    NOT_INDEXED = "LocalAI gets no entry for it: {problem}"
    NO_PARSER = "it names no {key}; {proved!r} is proved on the model's own template"
    OTHER_PARSER = "it names the {key} {name!r}; {proved!r} is proved on the model's template"
    NEEDLESS_PARSER = "it names the {key} {name!r}; the model's template needs none"
    REFUTED_PARSER = "{why}"
    NOT_COMPARED = "its parsers were not compared with the model: {problem}"
    NO_PROOF = "no proof lies beside it"


WARNINGS = frozenset({
    GalleryReason.UNKNOWN_KEY, GalleryReason.UNPINNED, GalleryReason.NO_HASH, GalleryReason.NO_LICENSE,
    GalleryReason.STALE, GalleryReason.UNPUBLISHED, GalleryReason.NO_PARSER, GalleryReason.NEEDLESS_PARSER,
})  # fmt: skip
NOTES = frozenset({
    GalleryReason.BASE, GalleryReason.NOT_INDEXED, GalleryReason.NOT_COMPARED, GalleryReason.NO_PROOF,
})  # fmt: skip


@frozen
class Located:
    """A reason at a path of an entry; below ``config_file`` at a path of the merged configuration."""

    path: KeyPath
    reason: Reason


@frozen
class GalleryFinding:
    """A finding about an entry, with its file and the line of its value, counted from 1."""

    entry: str
    file: str
    line: int
    reason: Reason

    @property
    def level(self) -> Level:
        """Return error, warning or note."""
        kind = self.reason.kind
        return WARNING if kind in WARNINGS else NOTE if kind in NOTES else ERROR


@frozen
class GalleryItem:
    """An entry: its own keys (``about``), and the configuration that a LocalAI writes for it (``config``).

    ``places``  of an index that has it at ``at``, or the text of a document.
    ``config``  with base and overrides merged; ``None`` where the base is elsewhere. ``base`` has the other
                keys of the base's file.
    ``findings``  those of the reading; ``stored`` and ``made`` are a document and the entry made of it.
    """

    name: str
    file: str
    places: SourceMap | str
    at: KeyPath
    about: Mapping[str, Any]
    config: Mapping[str, Any] | None
    base: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Located, ...] = ()
    stored: StoredDocument | None = None
    made: GalleryEntry | None = None

    def line(self, path: KeyPath) -> int:
        """Return the line of a value, in the entry or in the configuration."""
        if isinstance(self.places, str):
            own = path[1:] if path[:1] == (CONFIG,) else ("importer", *path) if path else ("name",)
            return SourceMap(self.places).line(own)
        if path[:1] == (CONFIG,):
            return self.places.line((*self.at, "overrides", *path[1:]), (*self.at, *path))
        return self.places.line((*self.at, *path))

    def finding(self, one: Located) -> GalleryFinding:
        """Return a finding with its place."""
        return GalleryFinding(self.name, self.file, self.line(one.path), one.reason)

    @property
    def model(self) -> str:
        """Return the model of the configuration; empty without one."""
        return str(mapping(mapping(self.config).get("parameters")).get("model") or "")

    @property
    def files(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the files of the entry, with their places among them."""
        yield from ((at, mapping(one)) for at, one in enumerate(listed(self.about.get("files"))))

    @property
    def repo(self) -> str | None:
        """Return the Hub's id of the model; ``None`` for another one, and for one among the entry's files."""
        files = [str(one.get("filename")) for _, one in self.files]
        if files and not any(file.startswith("models--") for file in files):  # the Hub's cache, as exported
            return None
        parsed = on_hub(self.model)
        return None if parsed is None or parsed.path is not None else parsed.repo

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

    def parser_path(self, key: str) -> KeyPath:
        """Return the path of the option that names a parser."""
        options = enumerate(listed(mapping(self.config).get("options")))
        named = [at for at, one in options if isinstance(one, str) and parse(one).key == key]
        return (CONFIG, "options", *named[-1:])


def on_hub(name: str) -> Reference | None:
    """Return the repository of the Hub, and the file in it, that a text names; ``None`` for another text."""
    if not is_id(name) and not name.startswith(HUB_FORMS):
        return None
    try:
        return parse_reference(name)
    except ImporterError:
        return None


@frozen
class Gallery:
    """The entries of a place, and the findings about its files."""

    items: tuple[GalleryItem, ...]
    findings: tuple[GalleryFinding, ...] = ()


def read(place: Path) -> Gallery:
    """Read an index, a folder with one, or a folder of documents.

    Raises UsageError("no-such-directory").
    """
    if not place.exists():
        raise UsageError("no-such-directory", path=place)
    if not place.is_dir():
        return _index(place)
    index = place / INDEX
    if not index.exists():
        return _documents(place)
    found = _index(index)
    among = any(receipt_path(one).exists() for one in Store(place).folder.glob("*.yaml"))
    if not among and not any(one.reason.kind is GalleryReason.NO_LIST for one in found.findings):
        return found
    mixed = GalleryFinding("", str(index), 1, Reason(GalleryReason.MIXED))
    documents = _documents(place)
    return Gallery(documents.items, (mixed, *documents.findings))


def _documents(folder: Path) -> Gallery:
    store, items, findings = Store(folder), list[GalleryItem](), list[GalleryFinding]()
    inside = folder.resolve()
    for name in store.names():
        path = store.path(name)
        if path.name == INDEX:
            continue
        if not Path(os.path.realpath(path)).is_relative_to(inside):
            findings.append(GalleryFinding(name, str(path), 1, Reason(GalleryReason.LINK_OUT)))
            continue
        try:
            items.append(_document(store.load(name), str(path)))
        except ImporterError as error:
            line = int(getattr(error.details.get("problem"), "fields", {}).get("line", 1))
            reason = Reason(GalleryReason.UNREADABLE, problem=error.message)
            findings.append(GalleryFinding(name, str(path), line, reason))
    return Gallery(tuple(items), tuple(findings))


def _document(stored: StoredDocument, file: str) -> GalleryItem:
    """Return a document as the entry that is made of it, with every fault of its text."""
    about: Mapping[str, Any] = {}
    made: GalleryEntry | None = None
    found = [
        Located((CONFIG, *path), Reason(GalleryReason.SCHEMA, problem=problem.message))
        for path, problem in document_faults(stored.text, stored.data, stored.facts)
    ]
    try:
        stored.check_receipt()
    except DocumentError as error:
        found.append(Located((), Reason(GalleryReason.UNREADABLE, problem=error.message)))
    if not found:
        try:
            stored.chat_template()
            receipt = stored.receipt
            if receipt is not None and stored.review == "draft":  # one that came with the files is none
                receipt = replace(receipt, review={"state": "pending"})
            made = entry_of(stored.data, receipt)
        except DocumentError as error:
            if error.kind == "cannot-export":
                refused = Reason(GalleryReason.NOT_INDEXED, problem=error.details["reason"])
                found.append(Located((CONFIG, "backend"), refused))
            else:
                found.append(Located(("chat_template",), Reason(GalleryReason.SCHEMA, problem=error.message)))
    if made is not None:
        about = yaml_reader.read(made.item)[0]
    return GalleryItem(stored.name, file, stored.text, (), about, stored.data, {}, tuple(found), stored, made)


def _index(path: Path) -> Gallery:
    def failed(reason: Reason, line: int = 1) -> Gallery:
        return Gallery((), (GalleryFinding("", str(path), line, reason),))

    try:
        node = yaml_reader.compose(text_of(path), longest=LONGEST, most=MOST_VALUES)
        data = None if node is None else yaml_reader.data_of(node)
    except YamlError as error:
        return failed(Reason(GalleryReason.UNREADABLE, problem=error.reason), error.line)
    except (OSError, UnicodeDecodeError) as error:
        return failed(Reason(GalleryReason.UNREADABLE, problem=_problem(error)))
    if not isinstance(data, list) or node is None:
        return failed(Reason(GalleryReason.NO_LIST))
    places, bases = SourceMap(node), _Bases(path.parent)
    return Gallery(tuple(_item(one, path, places, at, bases) for at, one in enumerate(data)))


def text_of(path: Path) -> str:
    """Return the text of a plain file; raises OSError and UnicodeDecodeError."""
    return read_plain(path, 4 * LONGEST).decode()


def _problem(error: OSError | ValueError) -> Reason:
    return why(error) if isinstance(error, OSError) else Reason(TextReason.NOT_UTF8)


def _item(data: object, index: Path, places: SourceMap, at: int, bases: _Bases) -> GalleryItem:
    about = mapping(data)
    name = about.get("name")
    base, problem = bases.of(about)
    config = None
    if base is not None:
        own, over = mapping(about.get(CONFIG)), mapping(about.get("overrides"))
        config = merged(merged(mapping(base.get(CONFIG)), own), over)
    found = () if problem is None else (Located(("url",) if about.get("url") else (), problem),)
    return GalleryItem(str(name) if name else "", str(index), places, (at,), about, config, base or {}, found)


class _Bases:
    """The files beside an index that its entries name as their base; each is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Mapping[str, Any] | Reason] = {}

    def of(self, about: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, Reason | None]:
        """Return the base of an entry, its configuration as a map; ``None`` with the reason without one."""
        url = about.get("url")
        if not isinstance(url, str) or not url:
            nothing = not any(about.get(key) for key in (CONFIG, "overrides", "files"))
            return {}, Reason(GalleryReason.NO_CONFIG) if nothing and about.get("name") else None
        if url not in self._read:
            self._read[url] = self._base(url)
        base = self._read[url]
        return (None, base) if isinstance(base, Reason) else (base, None)

    def _base(self, url: str) -> Mapping[str, Any] | Reason:
        path = self._folder / Path(url.partition("@")[0]).name
        try:
            if not path.exists():
                return Reason(GalleryReason.BASE, url=url)
            held = dict(mapping(yaml_reader.read(text_of(path))))
            inner = held.get(CONFIG)
            return {**held, CONFIG: mapping(yaml_reader.read(inner) if isinstance(inner, str) else inner)}
        except YamlError as error:
            return Reason(GalleryReason.BAD_BASE, url=url, problem=error.reason)
        except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
            return Reason(GalleryReason.BAD_BASE, url=url, problem=_problem(error))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with another one merged over it, as LocalAI merges them."""
    found = dict(base)
    for key, value in over.items():
        old = found.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        found[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return found


# Keys that change nothing for those who run a model: names, the day of a check, and how it was imported.
UNCOMPARED = frozenset({"name", "last_checked"})
UNCOMPARED_BLOCK = frozenset({"schema", "reference"})


@frozen
class GalleryChange:
    """An entry that differs between two galleries, with every value that differs."""

    name: str
    what: Literal["added", "removed", "changed"]
    values: tuple[Change, ...]


def changes(before: Gallery, after: Gallery) -> Iterator[GalleryChange]:
    """Yield the entries that differ for those who run the models, by name; of one name in their order.

    An entry that could not be read on one side is not compared.
    """
    old, new = _trees(before), _trees(after)
    unread = {one.entry for one in (*before.findings, *after.findings)}
    for name, at in sorted(both for both in {*old, *new} if both[0] not in unread):
        values = differences(old.get((name, at), {}), new.get((name, at), {}))
        what: Literal["added", "removed", "changed"] = (
            "added" if (name, at) not in old else "removed" if (name, at) not in new else "changed"
        )
        if values or what != "changed":
            yield GalleryChange(f"{name} ({at + 1})" if at else name, what, values)


def _trees(gallery: Gallery) -> dict[tuple[str, int], dict[str, Any]]:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for item in gallery.items:
        found[item.name, sum(name == item.name for name, _ in found)] = _tree(item)
    return found


def _tree(item: GalleryItem) -> dict[str, Any]:
    """Return an entry as it is compared: its own keys, those of its base, and the merged configuration.

    With an unknown base the entry's part of the configuration stands as it is written.
    """
    tree = _compared(item.about)
    if item.base:
        tree["base"] = _compared({key: value for key, value in item.base.items() if key != CONFIG})
    if item.config is not None:
        tree.pop("overrides", None)
        config = tree[CONFIG] = _compared(item.config)
        if isinstance(block := config.get("importer"), dict):
            config["importer"] = {key: one for key, one in block.items() if key not in UNCOMPARED_BLOCK}
    if item.stored is not None:
        tree["chat_template"] = template_file.beside(item.stored.data, item.stored.path)
    return tree


def _compared(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys of an entry; files under their names, since each is fetched whatever their order."""
    found: dict[str, Any] = {key: one for key, one in plain(about).items() if key not in UNCOMPARED}
    files = [mapping(one) for one in listed(found.get("files"))]
    names = [one.get("filename") for one in files]
    if names and all(isinstance(name, str) for name in names) and len({*names}) == len(names):
        found["files"] = dict(zip(names, files, strict=True))
    return found


def plain(value: Any) -> Any:
    """Return data of YAML as JSON has them: LocalAI reads a date as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
