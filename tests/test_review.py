"""Review: what a person's words make of a document, how they are said, and what is never lost by them."""

from __future__ import annotations

from typing import Any

import pytest

from importer.document.receipt import Receipt, Word, parse
from tests.commandline import BASE, Desk, desk
from tests.test_cli import edit, receipt, state

__all__ = ["desk"]
WARM = {**BASE, "generation_config.json": {"temperature": 0.7}}


@pytest.mark.parametrize(
    ("word", "same", "state"),
    [
        (None, True, "draft"),
        ("approved", True, "approved"),
        ("approved", False, "stale"),
        ("rejected", True, "rejected"),
        ("rejected", False, "draft"),
    ],
)
def test_the_state_follows_from_the_last_word_and_the_digest(
    desk: Desk, word: Any, same: bool, state: str
) -> None:
    desk("acme/base")
    found = of(desk)
    if word is not None:
        found = found.with_review(Word(word, "ann", "2026-01-01T00:00:00+00:00", "why"), {"a": 1})
    digest = str(found.review["digest"]) if same else "sha256:other"
    assert found.state(digest) == state


def of(desk: Desk) -> Receipt:
    return parse(receipt(desk))


def test_what_was_said_outlasts_an_import_of_another_commit(desk: Desk) -> None:
    desk("acme/base", "--yes")
    before = receipt(desk)
    assert (before["approved"]["digest"], before["approved"]["data"]["parameters"]["temperature"]) == (
        before["digest"], 0.6,
    )  # fmt: skip
    desk.hub.repos["acme/base"].commit(WARM)
    desk("acme/base")
    after = receipt(desk)
    assert state(desk) == ("draft", "never")
    assert (after["approved"], after["history"]) == (before["approved"], before["history"])
    desk("acme/base", "--yes")
    assert [w["state"] for w in receipt(desk)["history"]] == ["approved", "approved"]
    assert receipt(desk)["approved"]["data"]["parameters"]["temperature"] == 0.7


def test_the_request_can_be_asked_again(desk: Desk) -> None:
    desk("acme/base", "--set", "temperature=0", "--backend", "mlx", "--revision", "main", "--offline")
    desk("acme/base", "--set", "temperature=0", "--backend", "mlx", "--revision", "main")
    said = receipt(desk)["request"]
    assert "offline" not in said
    asked = {"reference": "acme/base", "revision": "main", "name": None, "engine_version": None}
    asked |= {"preferences": {"backend": "mlx", "parameters.temperature": 0}, "ignore_name": False}
    assert said | asked == said
    edit(desk, "temperature: 0 ", "temperature: 1 ")
    assert state(desk)[0] == "draft"
