"""The public API: import a model, validate, recheck and export a document from a program.

``from importer import import_model``: every name of ``__all__`` is there, too. Each function raises errors of
``importer.errors`` and prints nothing; ``progress`` is called with the text of each step.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from importer.app.import_ import Plan, merge_plan, plan, write
from importer.app.import_request import ImportRequest
from importer.app.request import OPTIONS, ImportOptions
from importer.app.session import ImportSession
from importer.config import now
from importer.document.attention import Attention
from importer.document.build_text import to_text
from importer.document.document import Document
from importer.document.name_allocator import Names
from importer.document.receipt import Receipt, ReviewEntry
from importer.document.records import OutcomeRecord, Report
from importer.document.store import Store, StoredDocument, named
from importer.frozen import frozen
from importer.hub import digests
from importer.hub.local import ANYWHERE
from importer.progress import Progress, silent

if TYPE_CHECKING:
    from importer.app.recheck import Rechecked
    from importer.app.why import Explanation
    from importer.exports.base import Device, Exported

__all__ = [
    "ImportSession", "Imported", "Validated", "export", "import_model", "recheck", "validate", "why",
]  # fmt: skip

FOLDER = "models"  # of the documents, as at the command line


@frozen
class Imported:
    """A document and its file; ``receipt`` is ``None`` where nothing was written.

    ``plan`` has the data with a person's edits, ``planned`` those of the import alone.
    ``warnings``  what needs a person's attention, also another device than the document's last one.
    """

    path: Path
    plan: Plan
    planned: Plan
    receipt: Receipt | None
    warnings: tuple[Attention, ...] = ()

    @property
    def name(self) -> str:
        """Return the document's name."""
        return self.plan.name

    @property
    def document(self) -> Document:
        """Return the document's data."""
        return self.plan.built.data

    @property
    def decisions(self) -> Mapping[str, Explanation]:
        """Return each value by its key, with facts and candidates; ``explain()`` gives them as lines."""
        from importer.app.why import explanations

        receipt = self.receipt or self.planned.receipt(weights=False)
        text, data = to_text(self.plan.built), self.plan.built.data
        stored = StoredDocument(self.path, text, data, self.plan.digest, receipt)
        return {one.key: one for one in explanations(stored)}

    def to_json(self) -> dict[str, object]:
        """Return what ``importer REFERENCE --json`` prints."""
        return self.plan.report(self.path) | {"warnings": [warning.to_json() for warning in self.warnings]}


@frozen
class Validated:
    """A validation of one document; ``report`` is as it stands in the receipt (report.schema.json)."""

    name: str
    engine: str
    report: Report

    @property
    def passed(self) -> bool:
        """Return whether every probe passed or does not apply."""
        return bool(self.report["passed"])

    @property
    def failed(self) -> tuple[OutcomeRecord, ...]:
        """Return the outcomes that did not pass: probe, reason, attribution, remedy."""
        return tuple(o for o in self.report["outcomes"] if o["outcome"] in ("fail", "inconclusive"))


def import_model(
    reference: str,
    *,
    folder: str | Path = FOLDER,
    on_conflict: Literal["mine", "theirs"] | None = None,
    approved_by: str | None = None,
    dry_run: bool = False,
    session: ImportSession | None = None,
    progress: Progress = silent,
    **options: Unpack[ImportOptions],
) -> Imported:
    """Decide on a model and write its document and receipt; nothing is downloaded but small texts.

    ``reference``  a Hub id, ``hf://…``, a URL of the Hub, or a directory such as ``./model``.
    ``approved_by``  a person's name: approves what is written, unless the file or an earlier import brought a
    grant. ``session``  kept warm for several imports.

    A number for ``memory`` is of bytes. The options, each with its type:
    {options}
    Raises HubError, RepositoryError, UsageError, SandboxError; DocumentError: "exists" for another model's
    file of that name, "other-backend", "other-device" for the name of another document of the model,
    "conflict" where a person's edit meets a new value and ``on_conflict`` is not given.
    """
    request = ImportRequest.of(reference, options)
    store = Store(Path(folder))
    with _session(session) as warm:
        planned = plan(request, Names(store), warm, ANYWHERE, progress)
    merged = merge_plan(planned, store, on_conflict)
    path = store.path(planned.name)
    warnings = (*merged.pending(request), *merged.warnings)
    if dry_run:
        return Imported(path, merged.plan, planned, None, warnings)
    review = None if approved_by is None else ReviewEntry("approved", approved_by, now())
    digests.imported(planned.snapshot, progress)  # read before the lock, and kept for the receipt
    with store.locked():
        progress("writing the document")  # the last step at which a caller can end the import
        receipt = write(merged, store, None if merged.pending(request) else review)
        return Imported(path, merged.plan, planned, receipt, warnings)


_LINES = [f"``{o.name}``  {inspect.formatannotation(o.type)}: {o.about}.\n    " for o in OPTIONS.values()]
import_model.__doc__ = (import_model.__doc__ or "").format(options="".join(_LINES))


def validate(
    document: str | Path,
    *,
    folder: str | Path = FOLDER,
    engine: str | None = None,
    fetch: bool = False,
    port: int | None = None,
    probes: Sequence[str] | None = None,
    server: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    model: str | None = None,
    thorough: bool = False,
    time_limit: float | None = None,
    progress: Progress = silent,
) -> Validated:
    """Serve a document on a real engine, probe it, stop the engine; the report is kept in the receipt.

    ``document``  a name in ``folder``, or a file. ``engine``  another one than the document names.
    ``fetch``     download weights that are not on this disk. ``probes``  names; the report is partial then.
    ``server``    the URL of a running server, which is probed in place of an engine of importer's;
    ``model``     its name for the model, ``api_key`` its key, ``headers`` what each request to it has, too;
    the report has neither key nor headers. ``thorough``  abilities until ± 5 points.
    ``time_limit``  seconds for all probes (600).
    A probe that fails is no error: see ``Validated.passed``. Raises EngineError where the engine is missing
    or does not serve, with what it died of; HubError, DocumentError, UsageError("unknown-probe") and
    UsageError("bad-header").
    """
    from importer.app.validate import validate_against, validate_document
    from importer.validation.probe import ProbeOptions
    from importer.validation.registry import named as probes_named

    store, stored = named(str(document), str(folder))
    stored.check()
    only = None if probes is None else probes_named(probes)
    options = ProbeOptions.of(progress, only, thorough=thorough, seconds=time_limit)
    name = server or engine or stored.backend
    if server is not None:
        report = validate_against(
            stored, store, server, model, ANYWHERE, options, key=api_key, headers=headers
        )
    else:
        report = validate_document(stored, store, name, ANYWHERE, options, fetch=fetch, port=port)
    return Validated(stored.name, name, report)


def recheck(
    names: Iterable[str] = (),
    *,
    folder: str | Path = FOLDER,
    engine_version: str | None = None,
    offline: bool = False,
    session: ImportSession | None = None,
) -> Iterator[Rechecked]:
    """Yield what importing each document again would change, as a dry import merged with the file.

    ``names``  default: every document of the folder. ``engine_version``  another one than the last import's.
    Raises DocumentError, HubError.
    """
    from importer.app.recheck import recheck as one

    store = Store(Path(folder))
    with _session(session) as warm:
        for name in list(names) or store.names():
            yield one(store, name, warm, ANYWHERE, engine_version=engine_version, offline=offline)


def export(
    document: str | Path,
    format_name: str,
    *,
    folder: str | Path = FOLDER,
    device: Device | None = None,
    approved_only: bool = False,
) -> Exported:
    """Return the files of a document for another consumer, by name, and what they cannot carry.

    ``format_name``  one of ``importer export --list``. Raises UsageError("unknown-format") and DocumentError:
    "cannot-export" with its reason and what to do instead, "not-approved", "needs-approval", "invalid".
    """
    from importer.app.export import export as made

    _, stored = named(str(document), str(folder))
    return made(stored, format_name, device=device, approved_only=approved_only)[0]


def why(document: str | Path, key: str | None = None, *, folder: str | Path = FOLDER) -> list[Explanation]:
    """Return the explanation of one value of a document, or of every value, as ``importer why`` prints it.

    ``key``  such as ``tool_parser`` or ``temperature``. Raises DocumentError: "no-receipt", and "no-value"
    for a key without a value.
    """
    from importer.app.why import explanations

    return explanations(named(str(document), str(folder))[1], key)


@contextmanager
def _session(session: ImportSession | None) -> Iterator[ImportSession]:
    """Yield the caller's session, which stays open, or a new one for this call."""
    if session is not None:
        yield session
    else:
        with ImportSession() as own:
            yield own
