"""A server that somebody else runs: probed as it is, never stopped, and never the document's validation."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from importer.errors import EngineError, UsageError
from importer.proof.result import Proof
from importer.validation.client import Client, Exchange
from importer.validation.context import Context, Render
from importer.validation.errors import ExchangeError, RequestRefused
from importer.validation.expectations import promise_of
from importer.validation.journal import without
from importer.validation.outcome import Report
from importer.validation.probes import PROBES, Probe
from importer.validation.run import Progress, probe, quiet

BRIEF = 10.0  # seconds for what is asked beside the probes
LOCKED = (401, 403)
ABSENT = (404, 405, 501)
BESIDE = {"tokenize": "/tokenize", "messages": "/v1/messages"}  # what may be there beside the OpenAI API


def against(
    document: Mapping[str, Any],
    client: Client,
    model: str,
    *,
    probes: Sequence[Probe] | None = None,
    progress: Progress | None = None,
    render: Render | None = None,
    proof: Proof | None = None,
) -> Report:
    """Run ``probes`` (all by default) against the server; ``model`` is the name that requests use.

    What it offers is unknown, so probes ask and take a refusal for an answer. However this is left, no
    request of it goes on.
    """
    started, begun = datetime.now(UTC), time.monotonic()
    chosen = PROBES if probes is None else tuple(probes)
    brief = replace(client, time_limit=BRIEF)
    promise = replace(promise_of(document), found=_found(brief))
    bench = Context(promise, model, client, render=render, proof=proof)
    version = _version(brief)
    try:
        rows = probe(bench, chosen, progress or quiet)
    finally:
        client.hang_up()
    asked = {"probes": [one.NAME for one in chosen], "against": client.base_url}
    engine = {"name": client.base_url, "version": version}
    seconds = {"probes": time.monotonic() - begun}
    return Report(engine, started.isoformat(timespec="seconds"), seconds, tuple(rows), asked)


def the_model(client: Client, named: str | None, own: str) -> str:
    """Return the name to ask for: the one that was given, else the document's ``own`` where the server has
    it.

    Raises EngineError where nothing answers or the key is not taken, UsageError("unknown-model").
    """
    log: list[Exchange] = []
    try:
        listed = json.loads(replace(client, time_limit=BRIEF).get("/v1/models", log))
        names = [str(entry["id"]) for entry in listed["data"]]
    except RequestRefused as error:
        if error.status in LOCKED:
            says = without(str(error), client.key or "")
            raise EngineError("locked", url=client.base_url, says=says) from None
        return named or own
    except ExchangeError as error:
        raise EngineError("unreachable", url=client.base_url, problem=str(error)) from None
    except (ValueError, RecursionError, KeyError, TypeError):
        return named or own
    if named is None and own not in names:
        raise UsageError("unknown-model", url=client.base_url, name=own, known=", ".join(names) or "none")
    return named or own


def _found(client: Client) -> frozenset[str]:
    """Return what the server answers an empty request to with anything but that there is no such thing."""
    return frozenset(name for name, path in BESIDE.items() if _is_there(client, path))


def _is_there(client: Client, path: str) -> bool:
    try:
        client.post(path, {}, [])
    except RequestRefused as error:
        return error.status not in (*LOCKED, *ABSENT) and not error.broke
    except ExchangeError:
        return False
    return True


def _version(client: Client) -> str | None:
    """As vLLM tells it; others do not."""
    try:
        told = json.loads(client.get("/version", []))
    except (ExchangeError, ValueError, RecursionError):
        return None
    version = told.get("version") if isinstance(told, dict) else None
    return version[:80] if isinstance(version, str) else None
