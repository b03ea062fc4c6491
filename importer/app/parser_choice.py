"""The check of chosen parsers when they arrive, before a model is read."""

from __future__ import annotations

from importer.app.decide import ImportRequest
from importer.app.preferences import check_parsers
from importer.app.target import bind, machine_for, with_template
from importer.config_file.field_paths import OPTIONS


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
