"""Judging vectors, scores and classes, and the recording that is sent."""

from __future__ import annotations

import io
import math
import wave

import pytest

from importer.validation.expectations import Expectations
from importer.validation.probes import PROBES
from importer.validation.probes.tasks import RATE, judge_embedding, judge_rerank, scores, tone, vectors
from tests.judging import verdict

A, B = [0.6, 0.8], [0.8, 0.6]


@pytest.mark.parametrize(
    ("rows", "promised", "expected"),
    [
        ([A, B, A], (2, True), "pass"),
        ([A, B, A], (None, None), "pass"),
        ([A, B], (2, True), "fail engine"),
        ([A, B, "AAAA"], (2, True), "fail engine"),
        ([A, [*B, 0.0], A], (None, None), "fail configuration"),
        ([A, B, A], (3, True), "fail configuration"),
        ([A, B, B], (2, True), "fail engine"),
        ([A, A, A], (2, True), "fail model"),
        ([A, [math.nan, 1.0], A], (2, True), "fail model"),
        ([A, [None, 1.0], A], (2, True), "fail model"),
        ([[0.5], [0.1], [0.6]], (None, None), "fail engine"),
        ([[3.0, 4.0], B, [3.0, 4.0]], (2, True), "fail configuration"),
        ([[3.0, 4.0], B, [3.0, 4.0]], (2, False), "pass"),
    ],
)
def test_vectors(rows: list[object], promised: tuple[int | None, bool | None], expected: str) -> None:
    assert verdict(judge_embedding(rows, *promised)) == expected


RIGHT = [(1, 0.9), (2, 0.2), (0, 0.1)]


@pytest.mark.parametrize(
    ("first", "again", "expected"),
    [
        (RIGHT, RIGHT, "pass"),
        (RIGHT[:2], RIGHT, "fail engine"),
        ([(1, 0.1), (2, 0.2), (0, 0.3)], RIGHT, "fail engine"),
        (RIGHT, [(1, 0.5), (2, 0.2), (0, 0.1)], "fail engine"),
        ([(0, 0.9), (1, 0.2), (2, 0.1)],) * 2 + ("inconclusive model",),
        ([(1, math.inf), (2, 0.2), (0, 0.1)], RIGHT, "fail model"),
    ],
)
def test_scores(first: list[tuple[int, float]], again: list[tuple[int, float]], expected: str) -> None:
    assert verdict(judge_rerank(first, again)) == expected


def test_answers_of_another_shape_hold_nothing() -> None:
    for answer in (None, [], {"data": 7}, {"data": [7]}):
        assert vectors(answer, "embedding") == []
        assert scores(answer) == []
    assert vectors({"data": [{"index": 1, "x": 2}, {"index": 0, "x": 3}]}, "x") == [3, 2]


def test_the_recording_is_a_second_of_sound() -> None:
    with wave.open(io.BytesIO(tone())) as recording:
        assert recording.getnframes() == recording.getframerate() == RATE


@pytest.mark.parametrize("kind", ["embedding", "reranker", "classifier", "reward", "transcription"])
def test_each_kind_has_one_probe_of_its_own(kind: str) -> None:
    own = [p for p in PROBES if p.tasks and p.needs(Expectations()) is not None]
    assert len([p for p in own if p.needs(Expectations(kind=kind)) is None]) == 1
