"""Replies, contexts and models' folders for the judges, and a verdict in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from importer import demo
from importer.hub import local
from importer.sentences import render
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Outcome, reason_text
from importer.validation.rendering import PromptRendering
from importer.validation.reply import Reply, Usage

MODEL = Path(demo.__file__).with_name("model")


def verdict(outcome: Outcome | None) -> str:
    """Outcome and part; a comparison without a fault passes."""
    return "pass" if outcome is None else f"{outcome.outcome} {outcome.attribution or ''}".strip()


def words(outcome: Outcome) -> str:
    """The reason of an outcome as a report has it."""
    return reason_text(outcome)


def remedy(outcome: Outcome) -> str:
    """The change that is asked for, as a report has it."""
    return "" if outcome.remedy is None else render(outcome.remedy)


def said(content: str, finish: str = "stop", *, reasoning: str = "", wrote: int = 9) -> Reply:
    return Reply(content, reasoning, (), finish, Usage(10, wrote))


CALL = '{"name": "get_weather", "arguments": {"location": "Paris"}}'


def asked(answer: Any, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Context:
    """A context in which a chat is answered by ``answer``, which is given the request."""
    monkeypatch.setattr(Client, "chat", lambda _self, body, _log: answer(body))
    return Context(Expectations(**more), "m", Client("http://127.0.0.1:1"))


def rendering(folder: Path) -> PromptRendering:
    return PromptRendering(local.resolve(str(folder), folder))


def copied(folder: Path, **changed: str) -> Path:
    folder.mkdir()
    for file in MODEL.glob("*.j*"):
        (folder / file.name).write_bytes(file.read_bytes())
    for name, text in changed.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder
