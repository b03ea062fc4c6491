"""The probe of classes and rewards: a value for each class, the same for the same text."""

from __future__ import annotations

from math import isclose, isfinite
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import Expectations, other_task
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.probes.embedding import vectors
from importer.validation.remedy import Remedy

NAME = "classes"
LESSON = "Classifiers were served as generators, or with another number of classes than their config names."
TASKS = frozenset({"classifier", "reward"})
TEXTS = ("What a wonderful day!", "I want my money back.", "What a wonderful day!")
CLOSE = 1e-2  # relative difference of two values of one text; batches round otherwise


class ClassesReason(ReasonKind):
    """The reasons of ``classes``."""

    NO_VALUES = "no-values", "{count} results arrived for {texts} texts"
    OTHER_COUNT = "other-count", "a text has {count} values, the document promises {promised}"
    NOT_NUMBERS = "not-numbers", "a value is no number"
    DIFFERS = "differs", "the values of one text differ"
    VALUES = "values", "{count} values for a text"


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: the model has no classes."""
    return other_task(promise, TASKS)


def run(ctx: Context) -> Outcome:
    """Classify two texts, the first of them twice."""
    return judge(_values(ctx), ctx.promise.outputs.get("labels"))


def _values(ctx: Context) -> list[Any]:
    """Return the values of each text; of a model with a value for each token those of the first token."""
    body = {"model": ctx.model, "input": list(TEXTS)}
    if ctx.promise.kind == "classifier" and ctx.promise.outputs.get("each") != "token":
        return vectors(ctx.client.post("/classify", body, ctx.log), "probs")
    rows = vectors(ctx.client.post("/pooling", body, ctx.log), "data")
    return [row[0] if isinstance(row, list) and row and isinstance(row[0], list) else row for row in rows]


def judge(rows: list[Any], labels: int | None) -> Outcome:
    """Judge the values of ``TEXTS``; ``labels`` is the number of classes, where the document has it."""
    if len(rows) != len(TEXTS) or not all(isinstance(row, list) and row for row in rows):
        return Fail(Reason(ClassesReason.NO_VALUES, count=len(rows), texts=len(TEXTS)), "engine")
    if not all(isinstance(x, int | float) and isfinite(x) for row in rows for x in row):
        return Fail(Reason(ClassesReason.NOT_NUMBERS), "model")
    counts = {len(row) for row in rows}
    if len(counts) > 1 or (labels is not None and counts != {labels}):
        reason = Reason(ClassesReason.OTHER_COUNT, count=max(counts), promised=labels or min(counts))
        return Fail(reason, "configuration", Reason(Remedy.CORRECT_SETTING, key="importer.outputs"))
    if not all(isclose(a, b, rel_tol=CLOSE, abs_tol=1e-4) for a, b in zip(rows[0], rows[2], strict=True)):
        return Fail(Reason(ClassesReason.DIFFERS), "engine")
    return Pass(Reason(ClassesReason.VALUES, count=len(rows[0])))
