"""The findings about a gallery: LocalAI's types and rules, proofs of parsers, files at the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from importer import backends
from importer.app.gallery import (
    CONFIG,
    Gallery,
    GalleryFinding,
    GalleryItem,
    GalleryReason,
    Located,
    on_hub,
    plain,
)  # fmt: skip
from importer.app.import_ import resolve_and_decide
from importer.app.import_request import ImportRequest
from importer.app.overview import FILES, PublicationReason, publishable
from importer.app.session import ImportSession
from importer.decisions.parsers import Unavailable
from importer.document import schema
from importer.document.argument_check import near
from importer.document.document_keys import OPTIONS, KeyPath, frontend_of
from importer.document.effective import OUTDATED, effective, refuted
from importer.document.engine_arguments import version_of
from importer.document.receipt import verdicts_of
from importer.document.schema import SchemaReason
from importer.document.store import StoredDocument
from importer.document.validation_state import validation
from importer.engines import registries
from importer.errors import HubError, ImporterError
from importer.hub.local import AllowedFolders
from importer.hub.resolver import files_at
from importer.hub.snapshot import RepoFile, listed, mapping
from importer.progress import Progress, silent
from importer.reasons import Reason

STALE_DAYS = 180
SHA256 = 64  # hex digits
NEAR = 2  # names in a finding
UNKNOWN = SchemaReason.UNKNOWN_KEY
UNPROVED = (Unavailable.NOT_INSTALLED, Unavailable.NOT_RUN_HERE, Unavailable.NOT_KNOWN)
MISSING = ("not-found", "revision-not-found", "private")  # refusals that end an installation
# Kinds that have a finding of their own.
TOLD = (
    PublicationReason.INVALID, PublicationReason.REFUTED, PublicationReason.NO_COMMIT,
    PublicationReason.NO_ENTRY, PublicationReason.NOT_FOR_LOCALAI,
)  # fmt: skip
WEIGHTS = ".gguf"  # other weights may lie in an archive
ADDRESSES = ("url", "urls", "icon", "files", "variants")  # texts that lead somewhere


def check(
    gallery: Gallery,
    *,
    stale_days: int = STALE_DAYS,
    bench: ImportSession | None = None,
    offline: bool = False,
    progress: Progress = silent,
) -> Iterator[GalleryFinding]:
    """Yield every finding.

    With ``bench`` the Hub is asked what the entries point to, and the parsers are compared with the models'
    own templates; else with the proofs that lie beside documents.
    """
    yield from gallery.findings
    first, relations, hub = dict[str, GalleryItem](), _Relations(gallery), _Hub()
    for item in gallery.items:
        found = [*item.findings, *_of_entry(item, stale_days), *relations.of(item), *_of_config(item)]
        name = str(item.about.get("name") or item.name)  # in the index
        other = first.setdefault(name.casefold(), item)
        if other is not item and name:
            reason = Reason(GalleryReason.DUPLICATE, name=name, file=other.file, line=other.line(("name",)))
            found.insert(0, Located(("name",), reason))
        gone = [] if bench is None or offline else [*hub.of(item)]
        if not gone:
            found += _of_parsers(item, bench, offline=offline, progress=progress)
        yield from map(item.finding, [*found, *gone])


def _of_entry(item: GalleryItem, stale_days: int) -> Iterator[Located]:
    """Yield what is wrong with an entry's own keys, by LocalAI's types and by what an installation needs."""
    about = item.about
    if not item.name:
        yield Located((), Reason(GalleryReason.NO_NAME))
        return
    yield from _of_types(about)
    yield from _odd(item)
    if item.stored is not None:
        yield from _of_publication(item.stored)
    for at, one in () if item.stored is not None else item.files:
        digest = str(one.get("sha256") or "")
        if len(digest) != SHA256 or not set(digest) <= set("0123456789abcdef"):
            yield Located(("files", at), Reason(GalleryReason.NO_HASH, file=_short(one.get("filename"))))
    yield from _undownloaded(item)
    if about and not about.get("license"):
        yield Located(("license",), Reason(GalleryReason.NO_LICENSE))
    checked = _date(about.get("last_checked"))
    if checked is not None and (days := (datetime.now(UTC).date() - checked).days) > stale_days:
        reason = Reason(GalleryReason.STALE, date=checked.isoformat(), days=days)
        yield Located(("last_checked",), reason)


def _undownloaded(item: GalleryItem) -> Iterator[Located]:
    """Yield each weights file of the configuration that no installation fetches."""
    fetched = [
        str(mapping(one).get("filename")) for of in (item.about, item.base) for one in listed(of.get("files"))
    ]
    if not fetched or item.stored is not None:
        return
    for path, text in _texts((CONFIG,), item.config):
        own = path[1] == "options"  # each backend has its own form and folder there
        if text.endswith(WEIGHTS) and "://" not in text and text not in fetched and not own:
            reason = Reason(
                GalleryReason.FILE_GONE, repo="files", file=_short(text), near=near(text, fetched)
            )
            yield Located(path, reason)


def _of_types(about: Mapping[str, Any]) -> Iterator[Located]:
    for fault in schema.faults("localai-gallery", [plain(about)]) if about else ():
        path = fault.path[1:]
        if getattr(fault.message, "kind", None) is UNKNOWN:
            yield Located(path, Reason(GalleryReason.UNKNOWN_KEY, key=_short(path[-1])))
        elif path == ("name",):
            yield Located(path, Reason(GalleryReason.NAME, name=_short(about["name"])))
        elif path[::2] == ("files", "filename") and ".." in str(about["files"][path[1]][path[2]]):
            yield Located(path, Reason(GalleryReason.OUTSIDE, file=_short(about["files"][path[1]][path[2]])))
        elif path[::2] == ("files", "uri") and isinstance(about["files"][path[1]][path[2]], str):
            yield Located(path, Reason(GalleryReason.NO_FILE, uri=_short(about["files"][path[1]][path[2]])))
        else:
            yield Located(path, Reason(GalleryReason.SCHEMA, problem=schema.at(path, fault.message)))


def _odd(item: GalleryItem) -> Iterator[Located]:
    """Yield the first invisible character of each address, and of the name of the file."""
    texts: list[tuple[KeyPath, str]] = [(("name",), item.file)]
    for key in ADDRESSES:
        texts += _texts((key,), item.about.get(key))
    for path, text in texts:
        odd = next((character for character in text if not character.isprintable()), None)
        if odd is not None:
            place = "the file's name" if text == item.file else ".".join(map(str, path))
            yield Located(path, Reason(GalleryReason.ODD_CHARACTER, place=place, code=f"U+{ord(odd):04X}"))


def _texts(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(listed(value))
    for step, one in inner:
        yield from _texts((*path, step), one)


def _of_publication(stored: StoredDocument) -> Iterator[Located]:
    """Yield why a gallery's build leaves a document out."""
    for why in publishable(stored, FILES):
        if why.kind not in TOLD:
            yield Located((), Reason(GalleryReason.UNPUBLISHED, why=why))


class _Relations:
    """The variants of a gallery, by the rules of LocalAI's own index (``variants_lint_test.go``)."""

    def __init__(self, gallery: Gallery) -> None:
        self._names = {item.name for item in gallery.items}
        self._parents: dict[str, list[str]] = {}
        for item in gallery.items:
            for _, name in self._variants(item):
                self._parents.setdefault(name, []).append(item.name)

    @staticmethod
    def _variants(item: GalleryItem) -> Iterator[tuple[int, str]]:
        for at, one in enumerate(listed(item.about.get("variants"))):
            yield at, str(mapping(one).get("model"))

    def of(self, item: GalleryItem) -> Iterator[Located]:
        """Yield a variant that is no other entry, one of several parents, and variants of a variant."""
        for at, name in self._variants(item):
            path = ("variants", at)
            if name not in self._names - {item.name}:
                yield Located(path, Reason(GalleryReason.VARIANT, name=_short(name)))
            elif self._parents[name][0] != item.name:
                reason = Reason(GalleryReason.PARENTS, name=_short(name), parent=self._parents[name][0])
                yield Located(path, reason)
        above = [name for name in self._parents.get(item.name, ()) if name != item.name]
        if above and item.about.get("variants"):
            yield Located(("variants",), Reason(GalleryReason.NESTED, parent=above[0]))


def _of_config(item: GalleryItem) -> Iterator[Located]:
    """Yield what is wrong with the configuration; the types of a document were checked when it was read."""
    if item.config is None:
        return
    if item.stored is None:
        for fault in schema.faults("localai-model", {**item.config, "name": "entry"}):
            if getattr(fault.message, "kind", None) is UNKNOWN or _of_others(item, fault.path):
                continue  # LocalAI has keys that no language model needs
            reason = Reason(GalleryReason.SCHEMA, problem=schema.at(fault.path, fault.message))
            yield Located((CONFIG, *fault.path), reason)
    for key in OPTIONS:
        name, version, frontend = item.parser(key), version_of(item.config), frontend_of(item.config)
        if name and (of := registries.lacking(item.backend, version, key, name, frontend)) is not None:
            yield Located(item.parser_path(key), Reason(
                GalleryReason.UNKNOWN_PARSER, engine=item.backend, key=key, name=_short(name),
                near=of.near(registries.KINDS[key], name)[:NEAR],
            ))  # fmt: skip
    if item.repo is not None and item.revision is None:
        yield Located((CONFIG, "parameters", "model"), Reason(GalleryReason.UNPINNED, model=item.repo))


def _of_others(item: GalleryItem, path: KeyPath) -> bool:
    """Return whether the schema asks this of its own backends alone: keys to be there, and words."""
    words = path == ("backend",) or (path[:1] == ("known_usecases",) and len(path) > 1)
    return "checked" not in backends.of(item.backend).in_localai and (words or not path)


class _Hub:
    """The files of the repositories that entries point to, each listed once."""

    def __init__(self) -> None:
        self._listed: dict[tuple[str, str], dict[str, RepoFile] | HubError] = {}

    def of(self, item: GalleryItem) -> Iterator[Located]:
        """Yield a repository or a file that is gone, and a file with another hash."""
        if item.repo is not None:
            yield from self._missing((CONFIG, "parameters", "model"), item.repo, item.revision)
        for at, one in () if item.stored is not None else item.files:
            target = on_hub(str(one.get("uri") or ""))
            if target is not None and target.repo is not None and target.path is not None:
                gone = [*self._missing(("files", at, "uri"), target.repo, target.revision)]
                yield from gone or self._file(at, one, target.repo, target.revision, target.path)

    def _missing(self, path: KeyPath, repo: str, revision: str | None) -> Iterator[Located]:
        found = self._files(repo, revision)
        if isinstance(found, HubError) and found.kind in MISSING:
            yield Located(path, Reason(GalleryReason.GONE, problem=found.message))

    def _file(
        self, at: int, one: Mapping[str, Any], repo: str, revision: str | None, path: str
    ) -> Iterator[Located]:
        found, digest = self._files(repo, revision), str(one.get("sha256") or "").lower()
        if isinstance(found, HubError):
            return
        now = found.get(path)
        if now is None:
            alike = [name for name in found if name.casefold() == path.casefold()] or near(path, found)
            reason = Reason(GalleryReason.FILE_GONE, repo=repo, file=_short(path), near=alike)
            yield Located(("files", at, "uri"), reason)
        elif now.hash is not None and len(now.hash) == len(digest) == SHA256 and now.hash != digest:
            reason = Reason(GalleryReason.FILE_CHANGED, repo=repo, file=_short(path), now=now.hash)
            yield Located(("files", at, "sha256"), reason)

    def _files(self, repo: str, revision: str | None) -> dict[str, RepoFile] | HubError:
        key = (repo, revision or "main")
        if key not in self._listed:
            try:
                self._listed[key] = {one.path: one for one in files_at(*key)}
            except HubError as error:
                self._listed[key] = error
        return self._listed[key]


def _of_parsers(
    item: GalleryItem, bench: ImportSession | None, *, offline: bool, progress: Progress
) -> Iterator[Located]:
    """Yield where an entry's parsers are not those that are proved: by an import, else by the receipt."""
    if item.config is None or not registries.versions(item.backend):
        return
    if item.stored is None and "parsers" not in backends.of(item.backend).in_localai:
        return
    why: Reason | None = None
    own_template = item.stored is not None and "chat_template" in mapping(item.stored.data.get("importer"))
    if bench is not None and item.repo is not None and not own_template:
        found = _imported(item, bench, offline=offline, progress=progress)
        if not isinstance(found, Reason):
            yield from found
            return
        why = found
    if item.stored is None:
        yield from () if why is None else [Located((), why)]
        return
    beside = _of_receipt(item, item.stored)
    if not isinstance(beside, Reason):
        yield from beside
    else:
        yield Located((), why or beside)


def _imported(
    item: GalleryItem, bench: ImportSession, *, offline: bool, progress: Progress
) -> list[Located] | Reason:
    """Return the differences from an import's decisions, or why they are not known."""
    request = ImportRequest.of(
        str(item.repo), {"backend": item.backend, "revision": item.revision, "offline": offline}
    )
    try:
        decided = resolve_and_decide(request, bench, AllowedFolders(()), progress)  # ids alone
    except ImporterError as error:
        return Reason(GalleryReason.NOT_COMPARED, problem=error.message)
    chosen = {key: decided.decisions[key] for key in OPTIONS if key in decided.decisions}
    unproved = [why for one in chosen.values() for why in one.why if why.kind in UNPROVED]
    if decided.proof is None and unproved:
        return Reason(GalleryReason.NOT_COMPARED, problem=unproved[0])
    proof = {} if decided.proof is None else decided.proof.to_json()
    values = {key: (one.status, one.value) for key, one in chosen.items()}
    return [*_differences(item, values, proof, decided.target.version)]


def _of_receipt(item: GalleryItem, stored: StoredDocument) -> list[Located] | Reason:
    """Return the differences from the proof in the receipt, or why it proves nothing of this document."""
    receipt = stored.receipt
    if receipt is None or not receipt.proof:
        return Reason(GalleryReason.NO_PROOF)
    outdated = [one for one in effective(stored.data, receipt) if one.status == OUTDATED]
    if outdated:
        return Reason(GalleryReason.NOT_COMPARED, problem=outdated[0].source)
    records = {key: receipt.decisions.get(key, {}) for key in OPTIONS}
    values = {key: (str(one.get("status")), one.get("value")) for key, one in records.items()}
    version = mapping(receipt.proof).get("version")
    return [*_differences(item, values, receipt.proof, version if isinstance(version, str) else None)]


def _differences(
    item: GalleryItem,
    decided: Mapping[str, tuple[str, object]],
    proof: Mapping[str, object],
    version: str | None,
) -> Iterator[Located]:
    """Yield the differences from decisions (status and value by key), and what their proof refutes.

    A refutation does not count for a document whose run passed, since that outranks a proof.
    """
    stored = item.stored
    receipt = None if stored is None else stored.receipt
    passed = bool(stored and receipt and validation(receipt, stored.data, stored.digest).state == "passed")
    for key, (status, value) in decided.items():
        if (why := refuted(item.parser(key), proof, key)) is not None:
            if not passed:
                yield Located(item.parser_path(key), Reason(GalleryReason.REFUTED_PARSER, why=why))
            continue
        reads = [one["parser"] for one in verdicts_of(proof, key) if one["lost"] is None]
        other = status != "none" and reads and value not in reads
        found = ("proved", reads[0]) if other else (status, value)
        difference = _compared(item, key, *found, version, reads)
        yield from () if difference is None else [difference]


def _compared(
    item: GalleryItem, key: str, status: str, proved: Any, version: str | None, reads: Iterable[str]
) -> Located | None:
    """Return how the parser of an entry differs from a proved one; ``reads`` read the template as well."""
    name, path = item.parser(key), item.parser_path(key)
    if status not in {"proved", "none"}:
        return None
    if proved is None:
        needless = name is not None and status == "none"
        reason = Reason(GalleryReason.NEEDLESS_PARSER, key=key, name=name)
        return Located(path, reason) if needless else None
    if name is None:
        return Located(path, Reason(GalleryReason.NO_PARSER, key=key, proved=proved))
    if name == proved or name in reads:
        return None
    known = registries.load(item.backend, version)
    if known.class_of(registries.KINDS[key], name) == known.class_of(registries.KINDS[key], str(proved)):
        return None
    return Located(path, Reason(GalleryReason.OTHER_PARSER, key=key, name=name, proved=proved))


def _short(value: object) -> str:
    return str(value)[:80]


def _date(value: object) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        return None
