"""Imports with a chat template beside the document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.commandline import Desk, Ran, desk

__all__ = ["desk"]
ASK = ("--backend", "vllm", "--no-validate")
FILE = "chat.chat_template.jinja"


def imported(desk: Desk, *words: str) -> Ran:
    ran = desk("acme/chat", *ASK, *words)
    assert ran.code == 0, ran.err
    return ran


def beside(desk: Desk) -> Path:
    return desk.folder / "models" / FILE


def with_entry(desk: Desk, **changes: Any) -> Path:
    """The imported document, its entry changed by hand."""
    imported(desk, "--template", "json")
    path = desk.folder / "models" / "chat.yaml"
    text = path.read_text()
    for key, value in changes.items():
        old = next(line for line in text.splitlines() if line.startswith(f"    {key}: "))
        text = text.replace(old, f"    {key}: {value}")
    path.write_text(text)
    return path
