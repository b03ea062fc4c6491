"""The validation of a server that importer did not start: never stopped, never the validation of the
document.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath

from importer.backends import serves
from importer.document.document import Block, Document
from importer.engines import get
from importer.errors import EngineError, UsageError
from importer.signals.evidence import TASKS
from importer.validation import call_forms, thorough
from importer.validation.client import Client, without
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused
from importer.validation.evidence_sources import Background, recognise, version
from importer.validation.expectations import promise_of
from importer.validation.outcome import Report
from importer.validation.probe import ALL_PROBES, ProbeOptions
from importer.validation.probes import every
from importer.validation.progress import speed
from importer.validation.prompts import GREETING
from importer.validation.reply import QUOTED
from importer.validation.run import probe

SHOWN = 20  # models of a server that an error names
BRIEF = 10.0  # seconds for a request beside the probes
LOCKED = (401, 403)
ABSENT = (404, 405, 501)
UNKNOWN = (400, 404)  # of a model's name; a gateway's 400 names it
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
    adapter = None if made is None else get(made.engine)
    if adapter is not None:
        block = document.get("importer", Block()).copy()
        block["client_sampling"] = adapter.client_sampling(document)
        document = {**document, "importer": block}
    offers = None if adapter is None else adapter.offers
    detected = _detected(brief, model) | ((offers or frozenset()) - BESIDE.keys())
    promise = replace(promise_of(document, offers), remote=True, engine="", detected=detected)
    if made is not None:
        promise = replace(promise, engine=" ".join(filter(None, (made.engine, made.version))))
        if known.proof is not None and not serves(made.engine, known.proof.engine):
            known = replace(known, proof=None)
    bench = Context.of(promise, model, client, known, thorough=options.thorough)
    try:
        rows = probe(bench, chosen, options.progress)
        forms = call_forms.observed(bench, rows, options.progress)
        asked = {**document, "against": client.base_url, "model": model, "version": shown}
        figures = thorough.figures(bench, rows, asked, options.progress)
        probed = time.monotonic() - begun
    finally:
        client.hang_up()
    partial = {"probes": [one.name for one in chosen], "against": client.base_url, "model": model}
    engine = {"name": client.base_url, "version": shown}
    engine |= {} if made is None else {"make": made.engine}
    seconds, began = {"probes": probed}, started.isoformat(timespec="seconds")
    rows = call_forms.with_remedy(rows, forms, promise.tool_parser)
    return Report(engine, began, seconds, tuple(rows), partial, speed(rows), forms, figures)


def the_model(client: Client, named: str | None, document: Document) -> str:
    """Return the name for requests: ``named``, else that of the document's model in the server's list.

    The list may name it by the document, its Hub id or its folder; the only model of a list is taken.
    A name that is not in the list is asked for one token. Without a list the server's default is asked, too.
    Raises EngineError without an answer or for a rejected key, UsageError("unknown-model").
    """
    listed = _listed(client)
    if named is None and listed:
        known = _names(document)
        folders = {PurePath(name).name for name in known}
        found = [n for n in known if n in listed][:1] or [n for n in listed if PurePath(n).name in folders]
        if len(found or listed) > 1:
            raise _unknown(client, document["name"], listed)
        return (found or listed)[0]
    if named in (listed or ()):
        return str(named)
    for name in (named,) if named is not None else (document["name"], None):
        served = _served(client, name, document)
        if served is not None:
            return served
    raise _unknown(client, named or document["name"], listed)


def _names(document: Document) -> list[str]:
    """Return the names by which a server may list the document's model, the document's own first."""
    section = document.get("importer") or {}
    names = (document["name"], section.get("model_id"), (document.get("parameters") or {}).get("model"))
    return [str(name) for name in names if name]


def _listed(client: Client) -> list[str]:
    """Return the names of /v1/models; none where it is refused or is no list."""
    try:
        listed = json.loads(replace(client, time_limit=BRIEF).get("/v1/models", []))
        return [str(entry["id"]) for entry in listed["data"]]
    except RequestRefused as error:
        _let_in(client, error)
    except ExchangeError as error:
        raise EngineError("unreachable", url=client.base_url, problem=str(error)) from None
    except (ValueError, RecursionError, KeyError, TypeError):
        pass
    return []


def _served(client: Client, name: str | None, document: Document) -> str | None:
    """Return the name of the model that answers to ``name``, or to none; ``None`` where no model does."""
    promise = promise_of(document)
    if promise.kind in TASKS:
        return name
    question = {"messages": list(GREETING.messages)} if promise.chats else {"prompt": "a"}
    body = {"max_tokens": 1, **question, **({} if name is None else {"model": name})}
    try:
        answer = client.post("/v1/chat/completions" if promise.chats else "/v1/completions", body, [])
    except RequestRefused as error:
        _let_in(client, error)
        unknown = error.status in UNKNOWN and (error.status in ABSENT or str(name) in error.words)
        return None if unknown else name
    except ExchangeError:
        return name  # the first probe shows why
    given = answer.get("model") if isinstance(answer, dict) else None
    return name or (str(given) if given else None)


def _let_in(client: Client, error: RequestRefused) -> None:
    """Raise EngineError: "locked" where the refusal is that of the key, "unreachable" for a redirect."""
    if 300 <= error.status < 400:
        raise EngineError("unreachable", url=client.base_url, problem=f"it redirects: {error}") from None
    if error.status in LOCKED:
        raise EngineError("locked", url=client.base_url, says=without(str(error), client.secrets)) from None


def _unknown(client: Client, name: str, listed: Sequence[str]) -> UsageError:
    """Return the error that names the server's models."""
    known = ", ".join(each[:QUOTED] for each in listed[:SHOWN]) or "none that it lists"
    return UsageError("unknown-model", url=client.base_url, name=name, known=known)


def _detected(client: Client, model: str) -> frozenset[str]:
    """Return the features whose paths answer a request of the model's name alone, other than as absent."""
    return frozenset(name for name, path in BESIDE.items() if _exists(client, path, model))


def _exists(client: Client, path: str, model: str) -> bool:
    try:
        client.post(path, {"model": model}, [])  # vllm-mlx answers 404 to one without a name
    except RequestRefused as error:
        return error.status not in (*LOCKED, *ABSENT) and not error.broke
    except ExchangeError:
        return False
    return True
