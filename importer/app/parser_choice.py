"""The check of chosen parsers when they arrive, before a model is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from importer.app.import_request import ImportRequest
from importer.app.preferences import check_parsers
from importer.app.target import bind, machine_for, with_template
from importer.decisions.decision import Preferences, Target
from importer.document.document_keys import KEY, OPTIONS, frontend_of, parse, parser
from importer.document.engine_arguments import version_of
from importer.engines import registries
from importer.errors import UsageError
from importer.hub.snapshot import listed
from importer.sentences import worded


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


def check_edited(before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Raise UsageError("unknown-parser") for a parser that an edit names and the engine's version lacks."""
    for key, error in lacking(after):
        if parser(before, key) != parser(after, key):
            options = enumerate(map(parse, map(str, listed(after.get(KEY)))))
            at = next((number for number, one in options if one.key == key), 0)
            detail = f"{error.message} {worded(error.kinds[error.kind].step, error.details)}"
            raise error.but(errors=[{"pointer": f"/{KEY}/{at}", "detail": detail}])
