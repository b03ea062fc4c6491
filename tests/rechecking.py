"""Asking recheck, and what it answers."""

from __future__ import annotations

import json
from typing import Any

from importer.document import schema
from tests.commandline import BASE, Desk, Ran, desk

__all__ = ["desk"]
WARM = {**BASE, "generation_config.json": {"temperature": 0.7, "top_p": 0.9}}


def lines(ran: Ran) -> dict[str, dict[str, Any]]:
    """Each document's line of --json, by name."""
    found = {line["name"]: line for line in map(json.loads, ran.out.splitlines())}
    for line in found.values():
        schema.check("recheck", line, "stdout")
    return found


def one(desk: Desk, code: int, *words: str) -> dict[str, Any]:
    ran = desk("recheck", "--json", *words)
    assert ran.code == code, ran.out + ran.err
    [line] = lines(ran).values()
    return line


def imported(desk: Desk, *words: str) -> None:
    assert desk(*words, "--no-validate").code == 0


def paths(line: dict[str, Any]) -> list[str]:
    """The paths that an import would change, but those of every new commit."""
    found = [str(change["path"]) for change in line["changes"]]
    return [path for path in found if not path.startswith("artifacts")]
