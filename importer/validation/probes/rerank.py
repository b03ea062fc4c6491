"""The probe of reranking: a score for every document, the best first, the same in a second request."""

from __future__ import annotations

from math import isclose, isfinite
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import Expectations, other_task
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass

NAME = "rerank"
LESSON = "Rerankers were served as generators, or with two classes and so without any score."
TASKS = frozenset({"reranker"})
QUERY = "Which city is the capital of France?"
DOCUMENTS = (
    "Bananas are rich in potassium.",
    "Paris is the capital of France.",
    "The invoice is due on Friday.",
)
BEST = 1
CLOSE = 1e-2  # relative difference of two scores of one pair; batches round otherwise


class RerankReason(ReasonKind):
    """The reasons of ``rerank``."""

    NO_SCORES = "no-scores", "{count} scores arrived for {texts} documents"
    NOT_SORTED = "not-sorted", "the best document is not the first"
    DIFFERS = "differs", "two requests gave different scores"
    OTHER_FIRST = "other-first", "the model puts {text!r} first"
    BEST_FIRST = "best-first", "the right document is first, with {score:.3f}"


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: the model is no reranker."""
    return other_task(promise, TASKS)


def run(ctx: Context) -> Outcome:
    """Rank three documents twice."""
    body = {"model": ctx.model, "query": QUERY, "documents": list(DOCUMENTS)}
    first, again = (scores(ctx.client.post("/rerank", body, ctx.log)) for _ in range(2))
    return judge(first, again)


def scores(answer: Any) -> list[tuple[int, float]]:
    """Return index and score of each document, in the order of the answer; empty for another shape."""
    results = answer.get("results") if isinstance(answer, dict) else None
    rows = [row for row in results if isinstance(row, dict)] if isinstance(results, list) else []
    found = [(row.get("index"), row.get("relevance_score")) for row in rows]
    return [(i, float(s)) for i, s in found if isinstance(i, int) and isinstance(s, int | float)]


def judge(first: list[tuple[int, float]], again: list[tuple[int, float]]) -> Outcome:
    """Judge two rankings of ``DOCUMENTS``."""
    for ranking in (first, again):
        if sorted(i for i, _ in ranking) != [*range(len(DOCUMENTS))]:
            return Fail(Reason(RerankReason.NO_SCORES, count=len(ranking), texts=len(DOCUMENTS)), "engine")
        if not all(isfinite(s) for _, s in ranking):
            return Fail(Reason(RerankReason.NO_SCORES, count=0, texts=len(DOCUMENTS)), "model")
        if [s for _, s in ranking] != sorted((s for _, s in ranking), reverse=True):
            return Fail(Reason(RerankReason.NOT_SORTED), "engine")
    one, other = dict(first), dict(again)
    if not all(isclose(one[i], other[i], rel_tol=CLOSE, abs_tol=1e-4) for i in one):
        return Fail(Reason(RerankReason.DIFFERS), "engine")
    if first[0][0] != BEST:
        return Inconclusive(Reason(RerankReason.OTHER_FIRST, text=DOCUMENTS[first[0][0]]), "model", trials=2)
    return Pass(Reason(RerankReason.BEST_FIRST, score=first[0][1]), trials=2)
