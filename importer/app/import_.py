"""The import: plan a document for a reference, merge the plan with the present file, and write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from importer import backends
from importer.app.decide import Decided, decide_snapshot
from importer.app.engine_request import decided_defaults, engine_request
from importer.app.import_request import ImportRequest
from importer.app.parser_choice import VERSION, lacking, unlisted
from importer.app.preferences import check_document
from importer.app.session import ImportSession
from importer.config import now
from importer.decisions.decide import PARSERS
from importer.decisions.decision import Decision
from importer.decisions.parsers import ParserReason
from importer.document import grants, merge, schema, template_file
from importer.document.attention import (
    Attention,
    AttentionReason,
    attention,
    device_label,
    marked,
    of_grant,
    other_device,
)
from importer.document.build import Built, DocumentSubject, build, heads, kept, to_json
from importer.document.document import Document, document_of
from importer.document.document_keys import Change, differences, digest, dotted
from importer.document.merge import Conflict, Merge, Take, of_conflicts
from importer.document.model_facts import RecordedFacts, facts_json, read_model_facts
from importer.document.name_allocator import Names, check
from importer.document.store import Store, StoredDocument
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.hub.local import AllowedFolders
from importer.memory.judgement import judge
from importer.progress import Progress, silent
from importer.proof import Proof
from importer.reasons import Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import warning
from importer.signals.reasons import StopReason
from importer.version import __version__

if TYPE_CHECKING:
    from importer.document.receipt import Receipt, ReviewEntry
    from importer.engines.base import Engine


class OfferReason(ReasonKind):
    """Why an engine's version cannot be started with a value."""

    CLIENTS_SEND = "{engine} cannot be started with it: clients have to send it"
    NO_STOP_WORDS = "{engine} heeds no stop words, neither at its start nor in requests"
    STANDS_IN = (
        "{words:and} stands in for an end token that the files lack, and {limit}; add {words:and} to "
        "eos_token_id in generation_config.json"
    )


@frozen
class Plan(Decided):
    """The document as it would be written."""

    name: str
    built: Built

    @property
    def digest(self) -> str:
        """Return the digest of the document's data."""
        return digest(self.built.data)

    @property
    def warnings(self) -> tuple[Attention, ...]:
        """Return what needs a person's attention, the gravest first."""
        return attention(self.decisions)

    def report(self, path: Path) -> dict[str, object]:
        """Return the frozen line of --json."""
        return {
            "schema": 1,
            "reference": self.request.reference,
            "model_id": self.snapshot.model_id,
            "revision": self.snapshot.revision,
            "name": self.name,
            "path": str(path),
            "document": self.built.data,
            "decisions": {k: to_json(d) for k, d in self.decisions.items()},
            "warnings": [warning.to_json() for warning in self.warnings],
        }

    def receipt(self, *, weights: bool = True) -> Receipt:
        """Return a new receipt: review pending, never validated; with ``weights`` it has their digests."""
        from importer.document.build_text import to_text
        from importer.document.receipt import Receipt, evidence_json
        from importer.hub import digests
        from importer.hub.content import content_digest, content_files

        directory = self.snapshot.directory if self.snapshot.model_id is None else None
        # A later import keeps the frontend: with it in the request, the same import writes nothing.
        frontend = self.target.frontend or self.request.frontend
        request = replace(
            self.request, reference=self.model, revision=self.pinned, frontend=frontend
        ).to_json()
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
            request=request,
            fit=self.fit.to_json(),
            files=self.snapshot.settings,
            weights=digests.imported(self.snapshot) if weights else {},
            content=content_digest(self.snapshot),
            content_files=content_files(self.snapshot, self.target.backend),
            model=facts_json(read_model_facts(self.snapshot, self.target.able, variables=self.variables)),
            warnings=[warning.to_json() for warning in self.warnings],
            description=self.description,
        )


def plan(
    request: ImportRequest,
    names: Names,
    bench: ImportSession,
    places: AllowedFolders,
    progress: Progress = silent,
) -> Plan:
    """Resolve, gather evidence, decide and build the document; writes nothing. Raises ImporterError."""
    return build_plan(resolve_and_decide(request, bench, places, progress, names), names)


def resolve_and_decide(
    request: ImportRequest,
    bench: ImportSession,
    places: AllowedFolders,
    progress: Progress = silent,
    names: Names | None = None,
) -> Decided:
    """Resolve the reference and decide; safe to run for several requests at once. Raises ImporterError.

    With ``names`` the request is added to those of the document's earlier imports.
    """
    from importer.hub import resolve
    from importer.hub.reference import parse, without_scheme

    progress("resolving")
    request = replace(request, reference=without_scheme(request.reference))
    snapshot = resolve(parse(request.reference, request.revision), places, offline=request.offline)
    if names is not None:
        request = request.after(names.known(snapshot, request.name, request.slot))
    return decide_snapshot(snapshot, request, bench, progress)


def build_plan(decided: Decided, names: Names, *, own: bool = False) -> Plan:
    """Return the document under its name, which is another one for each backend of a model, and for each
    device where the request asks for that.

    ``own`` plans a present document anew, for whichever backend. Raises UsageError for an invalid name or
    value, DocumentError: "other-backend", "other-device" for the name of another document of the model.
    """
    from importer.engines import get

    request, snapshot, target, decisions = (
        decided.request, decided.snapshot, decided.target, decided.decisions,
    )  # fmt: skip
    slot = replace(request.slot, backend=target.backend)
    if request.name is None:
        name = names.give(snapshot, slot)
    else:
        name = check(request.name)
        if not own:
            names.check(name, decided.model, slot)
    subject = DocumentSubject(
        name=name,
        reference=decided.reference,
        model=decided.model,
        model_id=snapshot.model_id,
        revision=snapshot.revision,
    )
    engine = {"name": target.backend, "version": target.version, "frontend": target.frontend}
    derived = None if decided.proof is None else decided.proof.derived
    findings = _findings(decisions, decided.proof) | _beside(name, decided)
    findings |= template_file.parser_entry(decisions, None if derived is None else derived.template)
    if snapshot.license is not None:
        findings["license"] = snapshot.license
    built = build(subject, decisions, engine, findings)
    adapter = get(target.backend) if target.runs else None
    client = {} if adapter is None else adapter.client_sampling(built.data)
    if client:
        built.data["importer"]["client_sampling"] = client
    if adapter is not None:
        decisions = _with_limits(decisions, client, adapter, engine)
    if request.preferences.values:
        facts = read_model_facts(snapshot, target.able, built.data, decided.variables)
        check_document(built.data, request.preferences, facts)
    made = {f.name: getattr(decided, f.name) for f in fields(decided)} | {"decisions": decisions}
    return Plan(**made, name=name, built=replace(built, heads=heads(attention(decisions))))


def _with_limits(
    decisions: Mapping[str, Decision],
    client: Mapping[str, object],
    adapter: Engine,
    engine: Mapping[str, object],
) -> dict[str, Decision]:
    """Return the decisions, with a reason on each value that this version of the engine is not started
    with.
    """
    name = " ".join(str(engine[k]) for k in ("name", "version") if engine[k])
    sent = {key for one in client for key in (one, f"parameters.{one}")}
    reasons = dict.fromkeys(sent, Reason(OfferReason.CLIENTS_SEND, engine=name))
    added = decisions.get("stopwords")
    if added is not None and added.value is not None and "stop" not in adapter.offers:
        reasons["stopwords"] = Reason(OfferReason.NO_STOP_WORDS, engine=name)
    if (
        added is not None
        and "stopwords" in reasons
        and any(w.kind is StopReason.END_OF_TURN for w in added.why)
    ):
        fields = {"words": tuple(added.value or ()), "limit": reasons["stopwords"]}
        reasons["stopwords"] = warning(Reason(OfferReason.STANDS_IN, **fields))
    return {
        key: replace(d, why=(*d.why, reasons[key])) if key in reasons and d.value is not None else d
        for key, d in decisions.items()
    }


def _beside(name: str, decided: Decided) -> dict[str, object]:
    """Return the entry of the template beside the document, for the importer's block."""
    override, text = decided.request.template, decided.chat_template
    if override is None or text is None:
        return {}
    return {template_file.KEY: template_file.entry(override.name, name, text)}


def _findings(decisions: Mapping[str, Decision], proof: Proof | None) -> dict[str, object]:
    """Return the differences of the chosen parsers between whole and split input, for the importer's
    block.
    """
    if proof is None:
        return {}
    streaming_of = {key: proof.streaming(key, decisions[key].value) for key in PARSERS}
    streaming = {key: render(finding) for key, finding in streaming_of.items() if finding}
    return {"streaming": streaming} if streaming else {}


@frozen
class Settled:
    """A plan merged with the present file.

    ``plan`` has the data after the merge. ``old`` is the file before, ``base`` the importer's last data in
    it, and ``merged`` the text of both. ``take``, or for a single path ``keys``, decides ``conflicts``; those
    ``unsettled`` hold the edited value.
    """

    planned: Plan
    take: Take | None
    plan: Plan
    old: StoredDocument | None = None
    base: Document | None = None
    merged: str | None = None
    conflicts: tuple[Conflict, ...] = ()
    unsettled: tuple[Conflict, ...] = ()
    keys: Mapping[str, Take] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the text of the file."""
        from importer.document.build_text import to_text

        return to_text(self.planned.built) if self.merged is None else self.merged

    @property
    def warnings(self) -> tuple[Attention, ...]:
        """Return what needs attention: the plan's warnings, another device than before, and the conflicts."""
        return (
            *self.planned.warnings, *of_values(self.planned, self.plan.built.data),
            *of_device(self.planned, self.old), *of_conflicts(self.conflicts),
        )  # fmt: skip

    def pending(self, typed: ImportRequest) -> tuple[Attention, ...]:
        """Return the grants that the file or an earlier import brought: neither typed nor approved here.

        A setting that the document refuses grants nothing.
        """
        data = self.plan.built.data
        values = dict(typed.preferences.values)
        if typed.adapter:
            from importer.app import adapters

            values |= adapters.settings_of(self.planned.decisions)
        known = {*grants.set_values(values, data)}
        if self.old is not None:
            from importer.app import approvals

            known |= {*approvals.held(self.old)}
        new = [grant for grant in grants.runs(data) if grant not in known]
        refused = [f"{warning.key}." for warning in refusals(self.planned, data)] if new else []
        return tuple(of_grant(one) for one in new if not f"{one.key}.".startswith(tuple(refused)))

    def approval(self, review: ReviewEntry | None, typed: ImportRequest) -> ReviewEntry | None:
        """Return an approval that nobody read the warnings for; ``None`` where the engine does not start,
        and for grants that nobody has typed.
        """
        return None if self.pending(typed) or any(warning.stops for warning in self.warnings) else review

    def report(self, path: Path) -> dict[str, object]:
        """Return the frozen line of --json."""
        return self.plan.report(path) | {"warnings": [warning.to_json() for warning in self.warnings]}

    @property
    def edits(self) -> tuple[Change, ...]:
        """Return the changes from the import's data to the merged data: a person's edits."""
        return () if self.old is None else differences(self.planned.built.data, self.plan.built.data)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return the changes from the present file to the merged one; none for a new file."""
        return () if self.old is None else differences(self.old.data, self.plan.built.data)


def of_values(planned: Plan, data: Document) -> tuple[Attention, ...]:
    """Return the values of a merged document, with a person's edits, that its engine does not start with, or
    may not.
    """
    case = planned.fit.case
    if data == planned.built.data:
        return ()
    known = {warning.key for warning in planned.warnings}
    asked = engine_request(data, decided_defaults(planned.decisions))
    problems = () if case is None else judge(case, asked).problems
    return (*refusals(planned, data), *(marked(p.key, p.reason) for p in problems if p.key not in known))


def refusals(planned: Plan, data: Document) -> Iterator[Attention]:
    """Yield why a merged document cannot be approved: faults of a person's edits, and unknown parsers."""
    engine = planned.built.data["importer"]["engine"]
    if data != planned.built.data:
        facts = read_model_facts(planned.snapshot, planned.target.able, data, planned.variables)
        recorded = RecordedFacts(facts, planned.snapshot.revision, engine)
        for fault in schema.faults("document", data, recorded):
            yield Attention(AttentionReason.WILL_NOT_START, dotted(fault.path), fault.reason)
        if (why := unlisted(data, engine["version"])) is not None:
            yield Attention(AttentionReason.WILL_NOT_START, dotted(VERSION), why)
    for key, _ in lacking(data):
        why = Reason(ParserReason.NOT_REGISTERED, engine=planned.target.engine, field=key)
        yield Attention(AttentionReason.WILL_NOT_START, key, why)


def of_device(planned: Plan, old: StoredDocument | None) -> tuple[Attention, ...]:
    """Return the warning that the present document was for another device."""
    if old is None or old.receipt is None:
        return ()
    before, after = (device_label(fit) for fit in (old.receipt.fit, planned.fit.to_json()))
    return () if before == after else (other_device(before, after),)


def merge_plan(
    planned: Plan, store: Store, take: Take | None = None, keys: Mapping[str, Take] = merge.NO_KEYS
) -> Settled:
    """Merge a plan with the present file of its name; writes nothing.

    Raises what ``compare`` raises, and DocumentError("conflict") where a person and the import changed one
    value without a ``take`` or a choice in ``keys``.
    """
    settled = compare(planned, store, take, keys)
    if unsettled := settled.unsettled:
        path, first = store.path(planned.name), unsettled[0].reason
        raise DocumentError("conflict", path=path, count=len(unsettled), first=first, conflicts=[*unsettled])
    return settled


def compare(
    planned: Plan, store: Store, take: Take | None = None, keys: Mapping[str, Take] = merge.NO_KEYS
) -> Settled:
    """Merge a plan with the present file of its name; edits stay where a conflict is ``unsettled``.

    Raises DocumentError: "exists" for a file of another model, or one whose receipt lacks the written data;
    "cannot-edit".
    """
    path, old = store.path(planned.name), store.find(planned.name)
    if old is None:
        return Settled(planned, take, planned, keys=keys)
    from importer.document.build_text import to_text

    base, imported = _base(old), to_text(planned.built)
    if old.model != planned.model or (base is None and old.digest != planned.digest):
        raise DocumentError("exists", path=path)
    wrote = old.receipt.base if old.receipt is not None else None
    if base is None or wrote == imported:
        plan = replace(planned, built=Built(old.data, {}))
        return Settled(planned, take, plan, old, base, old.text, keys=keys)
    merged = Merge(base, old.data, planned.built.data, take, keys)
    data = with_derived(merged.data)
    text = merge.write(old.text, data, wrote, imported, path)
    plan = replace(planned, built=Built(data, {}))
    return Settled(
        planned, take, plan, old, base, text, tuple(merged.conflicts),
        tuple(merged.unsettled), keys,
    )  # fmt: skip


def _base(old: StoredDocument) -> Document | None:
    """Return the importer's last data; ``None`` without a receipt that has them."""
    return None if old.receipt is None else old.receipt.wrote


def with_derived(data: Document) -> Document:
    """Return the data with values that follow from others: the sampling that clients have to send."""
    from importer.engines import get, runs

    block = data.get("importer")
    if not isinstance(block, dict) or not isinstance(data.get("parameters"), dict):
        return data
    backend = data.get("backend")
    sent = get(backend).client_sampling(data) if backend in backends.NAMES and runs(backend) else {}
    own = {k: v for k, v in block.items() if k != "client_sampling"}
    return document_of({**data, "importer": {**own, **({"client_sampling": sent} if sent else {})}})


def write(settled: Settled, store: Store, review: ReviewEntry | None = None) -> Receipt:
    """Write the changed text and receipt; unchanged data keep their review and their validation.

    ``review`` approves, but neither replaces a rejection of the same data nor a damaged receipt, which may
    have one, nor accepts what ``refusals`` names. The caller holds the store's lock.
    Raises what ``merge_plan`` raises, and DocumentError: "changed" where the file is no longer the merged
    one, "exists" for a chat template that a person has changed.
    """
    from importer.app import approvals

    path = store.path(settled.planned.name)
    schema.check("document", settled.planned.built.data, path)
    current = merge_plan(settled.planned, store, settled.take, settled.keys)
    plan, old = current.plan, current.old
    if plan.digest != settled.plan.digest:
        raise DocumentError("changed", path=path, name=plan.name, now=plan.digest, seen=settled.plan.digest)
    receipt = _receipt(current)
    reviewable = receipt.state(plan.digest) in ("draft", "stale") and not (old is not None and old.damaged)
    if review is not None and reviewable and not any(refusals(current.planned, plan.built.data)):
        receipt = receipt.with_review(review, plan.built.data)
    template = template_file.named_template(plan.built.data, plan.chat_template)
    if template is not None:
        template_file.check_free(None if old is None else old.data, path, template)
    whole = template is None or template_file.holds(path, template)
    approved = receipt.state(plan.digest) == "approved"
    with approvals.recorded(plan.built.data, plan.digest, approved=approved) if review else nullcontext():
        if old is None or old.receipt is None or old.text != current.text or not whole:
            store.write(current.text, receipt, template)
            if old is not None and not template_file.named(plan.built.data):
                template_file.forget(old.data, path)
        elif old.receipt.to_text() != receipt.to_text():
            store.write_receipt(plan.name, receipt)
    return receipt


def _receipt(settled: Settled) -> Receipt:
    """Return the plan's receipt with the parts of the last one that still hold."""
    from importer.document.validation_state import carry_over

    receipt, old = settled.planned.receipt(), settled.old
    last = None if old is None else old.receipt
    if old is None or last is None:
        return replace(receipt, digest=settled.plan.digest)
    receipt = replace(receipt.with_past(last), digest=settled.plan.digest)
    if settled.plan.digest == old.digest:
        receipt = replace(receipt, digest=last.digest, imported_at=last.imported_at)
        return receipt.with_standing(last)
    edited = settled.base is not None and old.digest != digest(settled.base)
    receipt = receipt.with_standing(last) if edited else receipt
    return carry_over(receipt, settled.plan.built.data, settled.plan.digest, old)
