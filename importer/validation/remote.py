"""The validation of a server that importer did not start: never stopped, never the validation of the
document.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime

from importer.config_file.document import Document
from importer.config_file.validation_status import builds
from importer.engines import get
from importer.errors import EngineError, UsageError
from importer.validation import call_forms
from importer.validation.client import Client, Exchange, without
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused
from importer.validation.evidence_sources import Background, recognise, version
from importer.validation.expectations import promise_of
from importer.validation.outcome import Report
from importer.validation.probe import ALL_PROBES, ProbeOptions
from importer.validation.probes import every
from importer.validation.progress import speed
from importer.validation.reply import QUOTED
from importer.validation.run import probe
from importer.validation.score.figures import measure

SHOWN = 20  # models of a server that an error names
BRIEF = 10.0  # seconds for a request beside the probes
LOCKED = (401, 403)
ABSENT = (404, 405, 501)
BESIDE = {
    "tokenize": "/tokenize",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}  # features beyond the OpenAI API, with their paths


def against(
    document: Document,
    client: Client,
    model: str,
    known: Background | None = None,
    options: ProbeOptions = ALL_PROBES,
) -> Report:
    """Probe the server and report; ``model`` is the name that requests use.

    ``known`` is what there is beside the API. The limit of one exchange is the client's own.
    The features of a server of a known make are those of the engine. Of another one they are unknown, so a
    probe sends its request, and a refusal is an answer. No request goes on after the return.
    """
    known = known or Background()
    started, begun = datetime.now(UTC), time.monotonic()
    chosen = every() if options.probes is None else tuple(options.probes)
    client = replace(client, deadline=min(client.deadline, begun + options.total_limit))
    brief = replace(client, time_limit=BRIEF)
    made = recognise(brief, model)
    shown = made.version if made is not None else version(brief)
    promise = replace(promise_of(document, None if made is None else get(made.engine).offers), remote=True)
    promise = replace(promise, engine="", detected=_detected(brief))
    if made is not None:
        promise = replace(promise, engine=" ".join(filter(None, (made.engine, made.version))))
        if known.proof is not None and known.proof.engine not in builds(made.engine):
            known = replace(known, proof=None)
    bench = Context.of(promise, model, client, known)
    try:
        rows = probe(bench, chosen, options.progress)
        forms = call_forms.observed(bench, rows, options.progress)
        probed = time.monotonic() - begun
        scored = measure(bench, options.score, options.progress) if options.score else None
    finally:
        client.hang_up()
    partial = {"probes": [one.name for one in chosen], "against": client.base_url}
    engine = {"name": client.base_url, "version": shown}
    engine |= {} if made is None else {"make": made.engine}
    seconds, began = {"probes": probed}, started.isoformat(timespec="seconds")
    rows = call_forms.with_remedy(rows, forms)
    return Report(engine, began, seconds, tuple(rows), partial, scored, speed(rows), forms)


def the_model(client: Client, named: str | None, own: str) -> str:
    """Return the name for requests: ``named``, else ``own`` of the document where the server lists it.

    Raises EngineError without an answer or for a rejected key, UsageError("unknown-model").
    """
    log: list[Exchange] = []
    try:
        listed = json.loads(replace(client, time_limit=BRIEF).get("/v1/models", log))
        names = [str(entry["id"]) for entry in listed["data"]]
    except RequestRefused as error:
        if error.status in LOCKED:
            message = without(str(error), client.secrets)
            raise EngineError("locked", url=client.base_url, says=message) from None
        return named or own
    except ExchangeError as error:
        raise EngineError("unreachable", url=client.base_url, problem=str(error)) from None
    except (ValueError, RecursionError, KeyError, TypeError):
        return named or own
    if named is None and own not in names:
        known = ", ".join(name[:QUOTED] for name in names[:SHOWN]) or "none"
        raise UsageError("unknown-model", url=client.base_url, name=own, known=known)
    return named or own


def _detected(client: Client) -> frozenset[str]:
    """Return the features whose paths answer an empty request with another status than absent."""
    return frozenset(name for name, path in BESIDE.items() if _exists(client, path))


def _exists(client: Client, path: str) -> bool:
    try:
        client.post(path, {}, [])
    except RequestRefused as error:
        return error.status not in (*LOCKED, *ABSENT) and not error.broke
    except ExchangeError:
        return False
    return True
