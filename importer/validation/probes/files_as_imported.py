"""The probe of files: the weights and those beside them are the ones of the import."""

from __future__ import annotations

from collections.abc import Mapping

from importer.hub.snapshot import TEMPLATES
from importer.reasons import Reason, ReasonKind
from importer.signals import evidence
from importer.validation import proof_check
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.remedy import Remedy


class FilesReason(ReasonKind):
    """The reasons of ``files-as-imported``."""

    NOT_KNOWN = "not-known", "nobody wrote down what the files were"
    SAME = "same", "{count} files are as they were"
    CHANGED = "changed", "of {files:and} the document was made with another version"
    BROKEN = "broken", "{files:and} is not JSON; the engine may go on without it"


NAME = "files-as-imported"
LESSON = (
    "Other weights, a config.json or a tokenizer were put in place later; the review spoke of another model."
)
WEIGHTS = ".safetensors"
TASKS = evidence.TASKS  # of every model


def needs(_promise: Expectations) -> Reason | None:
    """Return ``None``: every model has files."""
    return None


def run(ctx: Context) -> Outcome:
    """Compare hashes of the receipt with those of the served files; no request is sent."""
    if ctx.broken:
        return judge_broken(ctx.broken)
    if ctx.render is None or not ctx.files:
        return NotApplicable(Reason(FilesReason.NOT_KNOWN))
    served = {**ctx.render.files, **ctx.served}
    proof = ctx.proof if ctx.render.digest else None  # a template that is gone is no other way to write it
    if proof is not None and proof_check.same_template(ctx, proof):
        served = {name: now for name, now in served.items() if name not in TEMPLATES}
        served |= {name: was for name, was in ctx.files.items() if name in TEMPLATES}
    return judge(ctx.files, served)


def judge_broken(files: tuple[str, ...]) -> Fail:
    """Judge files that are no JSON: what a copy or a download left of them, for an import reads them all."""
    reason = Reason(FilesReason.BROKEN, files=files)
    return Fail(reason, "environment", Reason(Remedy.PUT_BACK, files=files))


def judge(imported: Mapping[str, str], served: Mapping[str, str]) -> Outcome:
    """Judge hashes by file.

    What lies on the machine is not what was imported and reviewed: the environment is at fault, whatever the
    file.
    """
    known = comparable(imported, served)
    changed = altered(imported, served)
    unrecorded = () if any(name.endswith(WEIGHTS) for name in imported) else (WEIGHTS,)  # none could be read
    changed += [name for name in served if name not in imported and not name.endswith(unrecorded)]
    if not changed:
        return Pass(Reason(FilesReason.SAME, count=len(known)))
    reason = Reason(FilesReason.CHANGED, files=tuple(changed))
    return Fail(reason, "environment", Reason(Remedy.PUT_BACK, files=tuple(changed)))


def altered(imported: Mapping[str, str], served: Mapping[str, str]) -> list[str]:
    """Return the names of imported files that are gone, or have another hash."""
    return [name for name in comparable(imported, served) if served.get(name) != imported[name]]


def comparable(imported: Mapping[str, str], served: Mapping[str, str]) -> list[str]:
    """Return the names of files whose hashes are of one kind: two of unlike length are not compared."""
    return [name for name, was in imported.items() if len(served.get(name, was)) == len(was)]
