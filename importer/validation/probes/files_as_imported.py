"""The probe of files: those beside the weights are the ones of the import."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from importer.reasons import Reason
from importer.signals import evidence
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.remedy import Remedy


class FilesReason(StrEnum):
    """The reasons of ``files-as-imported``."""

    NOT_KNOWN = "not-known"
    SAME = "same"
    CHANGED = "changed"


NAME = "files-as-imported"
LESSON = "A config.json or a tokenizer was put beside the weights later; the review spoke of another model."
TASKS = evidence.TASKS  # of every model


def needs(_promise: Expectations) -> Reason | None:
    """Return ``None``: every model has files."""
    return None


def run(ctx: Context) -> Outcome:
    """Compare hashes of the receipt with those of the served files; no request is sent."""
    if ctx.render is None or not ctx.files:
        return NotApplicable(Reason(FilesReason.NOT_KNOWN))
    return judge(ctx.files, ctx.render.files)


def judge(imported: Mapping[str, str], served: Mapping[str, str]) -> Outcome:
    """Judge hashes by file; two of unlike length have unlike kinds, and are not compared."""
    known = [name for name, was in imported.items() if len(served.get(name, was)) == len(was)]
    changed = [name for name in known if served.get(name) != imported[name]]
    changed += [name for name in served if name not in imported]
    if not changed:
        return Pass(Reason(FilesReason.SAME, count=len(known)))
    reason = Reason(FilesReason.CHANGED, files=tuple(changed))
    return Fail(reason, "configuration", Reason(Remedy.PUT_BACK, files=tuple(changed)))
