"""The check of a version and of parsers that a person chooses: in a request, an edit, or a file by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from importer import backends
from importer.app.import_request import ImportRequest
from importer.app.preferences import check_parsers
from importer.app.target import bind, machine_for, with_template
from importer.decisions.decision import Preferences, Target
from importer.document import schema
from importer.document.document_keys import KEY, OPTIONS, engine_of, frontend_of, parse, parser
from importer.document.engine_arguments import version_of
from importer.document.store import StoredDocument
from importer.engines import registries
from importer.errors import DocumentError, UsageError
from importer.hub.snapshot import listed
from importer.reasons import Reason
from importer.sentences import worded

VERSION = ("importer", "engine", "version")


def check_version(version: str | None, engines: Sequence[str] = backends.NAMES) -> None:
    """Raise UsageError("bad-value") for a required version that none of the engines has."""
    refused: UsageError | None = None
    for engine in () if version is None else engines:
        if registries.is_unlisted(engine, version):
            return
        try:
            registries.load(engine, version)
        except UsageError as error:
            refused = refused or error
        else:
            return
    if refused is not None:
        raise refused


def check_chosen(request: ImportRequest, backend: str) -> None:
    """Raise UsageError("unknown-parser") for a parser that the engine's registry lacks in its version, and
    "bad-value" for a version without a registry.

    The version is the one that the import will have. Raises UsageError("bad-value") for a version or a
    template that the engine lacks.
    """
    if request.engine_version is None and all(request.preferences.values.get(key) is None for key in OPTIONS):
        return
    kind = None if request.for_device is None else machine_for(request.for_device).kind
    target = bind(backend, request.engine_version, ask=False, frontend=request.frontend, kind=kind).target
    if request.template is not None:
        target = with_template(target, request.template)
    check_parsers(request.preferences, target)


def lacking(document: Mapping[str, object]) -> Iterator[tuple[str, UsageError]]:
    """Yield each key whose parser the document's engine lacks in its version, with the refusal."""
    backend, version, frontend = str(document.get("backend")), version_of(document), frontend_of(document)
    for key in OPTIONS:
        name = parser(document, key)
        of = None if name is None else registries.lacking(backend, version, key, name, frontend)
        if of is not None:
            target = Target(of.engine, of.version, {key: of.classes(registries.KINDS[key])})
            try:
                check_parsers(Preferences({key: name}), target)
            except UsageError as error:
                yield key, error


def check_named(document: Mapping[str, object]) -> None:
    """Raise UsageError("unknown-parser") for a parser that the document's engine lacks in its version."""
    for _, error in lacking(document):
        raise error


def check_approval(stored: StoredDocument) -> None:
    """Raise DocumentError("invalid") for a version that a person wrote and the engine lacks, and what
    ``check_named`` raises.
    """
    receipt = stored.receipt
    why = None if receipt is None else unlisted(stored.data, receipt.engine.get("version"))
    if why is not None:
        raise DocumentError("invalid", path=stored.path, problem=schema.at(VERSION, why))
    check_named(stored.data)


def unlisted(document: Mapping[str, object], imported: object) -> Reason | None:
    """Return why the engine has no such version; ``None`` for a known one, and for that of the import."""
    version, engine = version_of(document), engine_of(document)
    if version == imported or not registries.versions(engine):
        return None
    try:
        check_version(version, (engine,))
    except UsageError as error:
        return cast("Reason", error.details["problem"])
    return None


def check_edited(before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Raise UsageError("unknown-parser") for a parser that an edit names and the engine's version lacks."""
    for key, error in lacking(after):
        if parser(before, key) != parser(after, key):
            options = enumerate(map(parse, map(str, listed(after.get(KEY)))))
            at = next((number for number, one in options if one.key == key), 0)
            detail = f"{error.message} {worded(error.kinds[error.kind].step, error.details)}"
            raise error.but(errors=[{"pointer": f"/{KEY}/{at}", "detail": detail}])
