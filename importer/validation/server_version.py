"""The make and version of a running server, from what it shows in its ordinary answers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from importer.validation.client import Client, Exchange
from importer.validation.errors import ExchangeError
from importer.validation.prompts import GREETING

OWNERS = ("vllm", "vllm-mlx", "sglang")  # they own their models by their own name
HEADER = re.compile(r"mlx_vlm/(\S+)")  # of mlx-vlm, in the header Server
# Of mlx-lm, in system_fingerprint: its own version, that of mlx, the system.
FINGERPRINT = re.compile(r"(\d+\.\d+[^-]*)-\d+\.\d+[^-]*-(?:Linux|macOS|Darwin)\b")


@dataclass(frozen=True, slots=True)
class Make:
    """An engine by its name in documents; ``version`` is ``None`` where the server does not show it."""

    engine: str
    version: str | None


def recognise(client: Client, model: str) -> Make | None:
    """Return the make of the server; ``None`` for one that shows none of the known ones."""
    log: list[Exchange] = []
    try:
        listed = json.loads(client.get("/v1/models", log))
    except (ExchangeError, ValueError, RecursionError):
        listed = None
    if (header := HEADER.fullmatch(log[-1].server or "")) is not None:
        return Make("mlx-vlm", header[1])
    owners = {entry.get("owned_by") for entry in _entries(listed)}
    if (engine := next((name for name in OWNERS if name in owners), None)) is not None:
        return Make(engine, version(client))
    greeting = {"model": model, "messages": list(GREETING.messages), "max_tokens": 1}
    try:
        answer = client.post("/v1/chat/completions", greeting, log)
    except ExchangeError:
        return None
    shown = FINGERPRINT.match(str(answer.get("system_fingerprint"))) if isinstance(answer, dict) else None
    return None if shown is None else Make("mlx", shown[1])


def version(client: Client) -> str | None:
    """Return the version that vLLM reports; other engines have no such path."""
    try:
        answer = json.loads(client.get("/version", []))
    except (ExchangeError, ValueError, RecursionError):
        return None
    shown = answer.get("version") if isinstance(answer, dict) else None
    return shown[:80] if isinstance(shown, str) else None


def _entries(listed: Any) -> list[dict[str, Any]]:
    entries = listed.get("data") if isinstance(listed, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
