"""The probe of embeddings: vectors of the stated size, the same for the same text, others for another."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import Expectations, other_task
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.remedy import Remedy

NAME = "embedding"
LESSON = "A server without the pooling runner answered with 404, or with vectors of another size or length."
TASKS = frozenset({"embedding"})
TEXTS = ("A boat is on the lake.", "The invoice is due on Friday.", "A boat is on the lake.")
ALIKE = 0.999  # cosine of two vectors of one text; batches round otherwise
UNIT = 0.01  # distance of a length from one
SETTING = Reason(Remedy.CORRECT_SETTING, key="importer.outputs")


class EmbeddingReason(ReasonKind):
    """The reasons of ``embedding``."""

    NO_VECTORS = "no-vectors", "{count} vectors arrived for {texts} texts"
    OTHER_SIZE = "other-size", "a vector has {size} values, the document promises {promised}"
    NOT_NUMBERS = "not-numbers", "a vector holds a value that is no number"
    DIFFERS = "differs", "the vectors of one text differ: cosine {cosine:.3f}"
    SAME_FOR_ALL = "same-for-all", "two different texts have the same vector"
    OTHER_LENGTH = "other-length", "a vector has length {length:.3f}, the document promises 1"
    VECTORS = "vectors", "{size} values, length {length:.3f}"
    TOKENS = "tokens", "a vector for each of {count} tokens"


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: the model is none for embeddings."""
    return other_task(promise, TASKS)


def run(ctx: Context) -> Outcome:
    """Embed two texts, the first of them twice, and judge the vectors."""
    if ctx.promise.outputs.get("each") == "token":
        return _each_token(ctx)
    answer = ctx.client.post("/v1/embeddings", {"model": ctx.model, "input": list(TEXTS)}, ctx.log)
    outputs = ctx.promise.outputs
    return judge(vectors(answer, "embedding"), outputs.get("dimensions"), outputs.get("normalized"))


def _each_token(ctx: Context) -> Outcome:
    body = {"model": ctx.model, "input": list(TEXTS), "task": "token_embed"}
    rows = vectors(ctx.client.post("/pooling", body, ctx.log), "data")
    if len(rows) != len(TEXTS) or not all(isinstance(row, list) and row for row in rows):
        return Fail(Reason(EmbeddingReason.NO_VECTORS, count=len(rows), texts=len(TEXTS)), "engine")
    return Pass(Reason(EmbeddingReason.TOKENS, count=len(rows[0])))


def vectors(answer: Any, key: str) -> list[Any]:
    """Return the value of ``key`` of each row under ``data``, in the order of their index."""
    data = answer.get("data") if isinstance(answer, dict) else None
    rows = [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []
    return [row.get(key) for row in sorted(rows, key=lambda row: row.get("index") or 0)]


def judge(rows: list[Any], dimensions: int | None, normalized: bool | None) -> Outcome:
    """Judge the vectors of ``TEXTS`` against the document's size and length, where it has them."""
    if len(rows) != len(TEXTS) or not all(isinstance(row, list) and row for row in rows):
        return Fail(Reason(EmbeddingReason.NO_VECTORS, count=len(rows), texts=len(TEXTS)), "engine")
    if not all(isinstance(x, int | float) and isfinite(x) for row in rows for x in row):
        return Fail(Reason(EmbeddingReason.NOT_NUMBERS), "model")
    sizes = {len(row) for row in rows}
    if len(sizes) > 1 or (dimensions is not None and sizes != {dimensions}):
        reason = Reason(EmbeddingReason.OTHER_SIZE, size=max(sizes), promised=dimensions or min(sizes))
        return Fail(reason, "configuration", SETTING)
    first, other, again = rows
    if cosine(first, again) < ALIKE:
        return Fail(Reason(EmbeddingReason.DIFFERS, cosine=cosine(first, again)), "engine")
    if first == other:
        return Fail(Reason(EmbeddingReason.SAME_FOR_ALL), "model")
    length = norm(first)
    if normalized is True and abs(length - 1) > UNIT:
        return Fail(Reason(EmbeddingReason.OTHER_LENGTH, length=length), "configuration", SETTING)
    return Pass(Reason(EmbeddingReason.VECTORS, size=len(first), length=length))


def norm(vector: list[float]) -> float:
    """Return the length of a vector."""
    return sqrt(sum(x * x for x in vector))


def cosine(one: list[float], other: list[float]) -> float:
    """Return the cosine of the angle between two vectors; 0 where one has no length."""
    lengths = norm(one) * norm(other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
