"""The whole way: reference → snapshot → study → evidence → decisions → document."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from importer import __version__
from importer.decide.choose import PARSERS
from importer.decide.decision import Decision
from importer.deciding import Decided, Progress, Request, decide_snapshot
from importer.document import chat_template
from importer.document.build import Built, Subject, build
from importer.document.decisions import kept, to_json
from importer.document.digest import digest
from importer.document.names import check
from importer.document.naming import Names
from importer.document.receipt import Receipt, evidence_json
from importer.document.text import to_text
from importer.hub.places import Places
from importer.messages import render
from importer.preferences import check_document
from importer.proof import Proof
from importer.reasons import Reason
from importer.workbench import Workbench

__all__ = [
    "Decided", "Plan", "Progress", "Request", "decide_snapshot", "lay_out", "now", "plan",
    "resolve_and_decide",
]  # fmt: skip


class OfferReason(StrEnum):
    """What an engine's version does not take of a decision."""

    CLIENTS_SEND = "clients-send"
    NO_STOP_WORDS = "no-stop-words"


@dataclass(frozen=True, slots=True)
class Plan(Decided):
    """The document as it would be written."""

    name: str
    built: Built

    @property
    def digest(self) -> str:
        """Of the document's data."""
        return digest(self.built.data)

    def report(self, path: Path) -> dict[str, Any]:
        """The frozen line of --json."""
        return {
            "schema": 1,
            "reference": self.request.reference,
            "model_id": self.snapshot.model_id,
            "revision": self.snapshot.revision,
            "name": self.name,
            "path": str(path),
            "document": self.built.data,
            "decisions": {k: to_json(d) for k, d in self.decisions.items()},
        }

    def receipt(self) -> Receipt:
        """A new receipt: review pending, never validated."""
        directory = self.snapshot.directory if self.snapshot.model_id is None else None
        return Receipt(
            name=self.name,
            reference=self.reference,
            model_id=self.snapshot.model_id,
            revision=self.snapshot.revision,
            directory=None if directory is None else str(directory),
            digest=self.digest,
            imported_at=now(),
            importer=__version__,
            engine=self.built.data["importer"]["engine"],
            decisions={k: kept(d) for k, d in self.decisions.items()},
            evidence=evidence_json(self.evidence),
            unknown={path: render(reason) for path, reason in self.snapshot.unknown.items()},
            review={"state": "pending", "by": None, "at": None, "digest": None},
            proof=None if self.proof is None else self.proof.to_json(),
            base=to_text(self.built),
            request=replace(self.request, reference=self.model, revision=self.pinned).to_json(),
            fit=self.fit.to_json(),
            files=self.snapshot.settings,
        )


def plan(
    request: Request, names: Names, bench: Workbench, places: Places, progress: Progress = lambda _: None
) -> Plan:
    """Resolve, gather evidence, decide and lay out the document; writes nothing. Raises ImporterError."""
    return lay_out(resolve_and_decide(request, bench, places, progress, names), names)


def resolve_and_decide(
    request: Request,
    bench: Workbench,
    places: Places,
    progress: Progress = lambda _: None,
    names: Names | None = None,
) -> Decided:
    """Everything that takes time; safe to run for several requests at once. Raises ImporterError.

    With ``names`` the request goes on where the model's document has been told something before.
    """
    from importer.hub import resolve
    from importer.hub.reference import parse

    progress("resolving")
    snapshot = resolve(parse(request.reference, request.revision), places, offline=request.offline)
    if names is not None:
        request = request.after(names.known(snapshot, request.name))
    return decide_snapshot(snapshot, request, bench, progress)


def lay_out(decided: Decided, names: Names) -> Plan:
    """The document under its name. Raises UsageError for a name or a value that no document may have."""
    from importer.engines import get

    request, snapshot, target, decisions = (
        decided.request, decided.snapshot, decided.target, decided.decisions,
    )  # fmt: skip
    name = check(request.name) if request.name is not None else names.give(snapshot)
    subject = Subject(
        name=name,
        reference=decided.reference,
        model=decided.model,
        model_id=snapshot.model_id,
        revision=snapshot.revision,
    )
    engine = {"name": target.backend, "version": target.version}
    findings = _findings(decisions, decided.proof) | _beside(name, decided)
    if snapshot.license is not None:
        findings["license"] = snapshot.license
    built = build(subject, decisions, engine, findings)
    adapter = get(target.backend) if target.runs else None
    client = {} if adapter is None else adapter.client_sampling(built.data)
    if client:
        built.data["importer"]["client_sampling"] = client
    if adapter is not None:
        decisions = _told(decisions, client, adapter.offers, engine)
    check_document(built.data, request.preferences)
    made = {f.name: getattr(decided, f.name) for f in fields(decided)} | {"decisions": decisions}
    return Plan(**made, name=name, built=built)


def now() -> str:
    """The time as receipts write it: UTC, seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _told(
    decisions: Mapping[str, Decision],
    client: Mapping[str, Any],
    offers: Collection[str],
    engine: Mapping[str, Any],
) -> dict[str, Decision]:
    """The decisions, with a word on each value that this version of the engine cannot be started with."""
    name = " ".join(str(engine[k]) for k in ("name", "version") if engine[k])
    sent = {key for one in client for key in (one, f"parameters.{one}")}
    says = dict.fromkeys(sent, Reason(OfferReason.CLIENTS_SEND, engine=name))
    if "stop" not in offers:
        says["stopwords"] = Reason(OfferReason.NO_STOP_WORDS, engine=name)
    return {
        key: replace(d, why=(*d.why, says[key])) if key in says and d.value is not None else d
        for key, d in decisions.items()
    }


def _beside(name: str, decided: Decided) -> dict[str, Any]:
    """What our own block says of a template beside the document."""
    given, text = decided.request.template, decided.chat_template
    if given is None or text is None:
        return {}
    return {chat_template.KEY: chat_template.entry(given.name, name, text)}


def _findings(decisions: Mapping[str, Decision], proof: Proof | None) -> dict[str, Any]:
    """What our own block records of the chosen parsers: how they differ when their input comes in pieces."""
    if proof is None:
        return {}
    told = {key: proof.streaming(key, decisions[key].value) for key in PARSERS}
    streaming = {key: render(finding) for key, finding in told.items() if finding}
    return {"streaming": streaming} if streaming else {}
