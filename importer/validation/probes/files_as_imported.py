"""The files beside the weights are those that the document was made of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.remedy import Remedy


class FilesReason(StrEnum):
    """What ``files-as-imported`` finds."""

    NOT_KNOWN = "not-known"
    SAME = "same"
    CHANGED = "changed"


NAME = "files-as-imported"
LESSON = "A config.json or a tokenizer was put beside the weights later; the review spoke of another model."


def needs(_promise: Expectations) -> Reason | None:
    """Whatever is served has some."""
    return None


def run(ctx: Context) -> Outcome:
    """Return hashes from the receipt beside those of the files that are served; the engine is not asked."""
    if ctx.render is None or not ctx.files:
        return NotApplicable(Reason(FilesReason.NOT_KNOWN))
    return judge(ctx.files, ctx.render.files)


def judge(imported: Mapping[str, str], served: Mapping[str, str]) -> Outcome:
    """Return hashes by file; two of unlike length are of unlike kinds, and say nothing of each other."""
    known = [name for name, was in imported.items() if len(served.get(name, was)) == len(was)]
    changed = [name for name in known if served.get(name) != imported[name]]
    changed += [name for name in served if name not in imported]
    if not changed:
        return Pass(Reason(FilesReason.SAME, count=len(known)))
    reason = Reason(FilesReason.CHANGED, files=tuple(changed))
    return Fail(reason, "configuration", Reason(Remedy.PUT_BACK, files=tuple(changed)))
