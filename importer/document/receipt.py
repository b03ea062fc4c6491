"""The receipt beside a document: what was decided on what evidence, who reviewed it, what a run showed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Literal, cast

from importer.document.document import Document, Engine, document_of
from importer.document.document_keys import digest
from importer.document.records import Approved, DecisionRecord, Fact, ProofVerdict, Report, ReviewRecord
from importer.document.yaml_edit.source_map import UnreadableYaml, parse_yaml
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.hub.snapshot import listed, mapping
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import Evidence

SCHEMA = 1
RUNS = ("validation", "earlier", "partial")
KEPT = 4  # whole runs on other engines that are kept beside the last one
State = Literal["draft", "approved", "stale", "rejected"]


@frozen
class ReviewEntry:
    """What a person said of a document: ``approved`` or ``rejected``, who, when (UTC), and a note."""

    state: Literal["approved", "rejected"]
    by: str
    at: str
    note: str | None = None


@frozen
class Receipt:
    """Bound to the digest of the YAML's data: edit the YAML, and review and validation no longer count.

    ``review``      a person's last word, or ``{"state": "pending"}``: state, by, at, digest, note.
    ``validation``  the last whole report of the validation room with the digest it ran on, or ``None``.
    ``earlier``     the last whole report of each other engine or version, the newest first.
    ``partial``     the last report of some probes only, or of a server that runs elsewhere: no validation.
    ``base``        the document's text as the importer wrote it last, before any person's edit.
    ``request``     what was asked for, so that it can be asked again.
    ``approved``    the version approved last: its word and its ``data``.
    ``history``     every word that was said, the oldest first.
    ``fit``         the device, what the model takes of its memory, and what was chosen for it.
    ``files``       the files that engines read beside the weights, by name their hashes.
    ``weights``     the digests of the weights, by path.
    ``content``     the digest of the files that engines read, or ``None`` where a hash is unknown.
    ``content_files``  path and hash of these files, for an engine that LocalAI can give no commit.
    ``warnings``    what needs attention: kind, key, reason, message.
    ``description`` a paragraph of the model's card; ``None`` where it has none.
    ``model``       the facts of the model that its document is checked with.
    ``absent``      the parts whose details are in no file here, by name the digests of short and whole form.
    """

    name: str
    reference: str
    model_id: str | None
    revision: str | None
    directory: str | None
    digest: str
    imported_at: str
    importer: str
    engine: Engine
    decisions: Mapping[str, DecisionRecord]
    evidence: Sequence[Fact]
    unknown: Mapping[str, str]
    review: ReviewRecord
    validation: Report | None = None
    proof: Mapping[str, Any] | None = None
    base: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    approved: Approved | None = None
    history: Sequence[ReviewRecord] = ()
    fit: Mapping[str, Any] | None = None
    earlier: Sequence[Report] = ()
    partial: Report | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[Mapping[str, object]] = ()
    content: str | None = None
    content_files: Mapping[str, str] | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def runs(self) -> list[Report]:
        """Return the whole reports, the newest first."""
        return [*([] if self.validation is None else [self.validation]), *self.earlier]

    @property
    def device(self) -> str | None:
        """Return the device that the import named."""
        return self.request.get("device")

    @property
    def own_device(self) -> str | None:
        """Return the device of a document for this device alone; ``None`` for any other document."""
        return self.device if self.request.get("per_device") else None

    @property
    def wrote(self) -> Document | None:
        """Return the data of ``base``, where it can be read."""
        try:
            return parse_yaml(self.base) if self.base else None
        except UnreadableYaml:
            return None

    def verdicts(self, key: str) -> list[ProofVerdict]:
        """Return the proof's verdicts on the parsers of a key, the best first."""
        return verdicts_of(mapping(self.proof), key)

    def to_json(self) -> dict[str, Any]:
        """Return its members, with the number of their schema."""
        found = {"schema": SCHEMA} | {f: getattr(self, f) for f in self.__dataclass_fields__}
        return {key: value for key, value in found.items() if value or key != "absent"}

    def to_text(self) -> str:
        """Return the whole receipt as text: indented JSON, keys in the order above."""
        data = self.to_json()
        parts = (
            f" {json.dumps(name)}: {_proof_lines(_compact(value)) if name == 'proof' else _lines(value)}"
            for name, value in data.items()
        )
        return "{\n" + ",\n".join(parts) + "\n}\n"

    def state(self, digest: str) -> State:
        """Return what the person's last word makes of data with this digest: an edit opens the question
        anew.
        """
        said, seen = self.review["state"], self.review.get("digest") == digest
        if said == "approved":
            return "approved" if seen else "stale"
        return "rejected" if said == "rejected" and seen else "draft"

    def last_review(self, digest: str) -> ReviewRecord | None:
        """Return the last review of data with this digest."""
        return next((one for one in reversed(self.history) if one.get("digest") == digest), None)

    def with_review(self, word: ReviewEntry, data: Mapping[str, object]) -> Receipt:
        """Return the same receipt after one more word on ``data``, which is kept where it was approved."""
        review: ReviewRecord = {
            "state": word.state, "by": word.by, "at": word.at, "note": word.note, "digest": digest(data),
        }  # fmt: skip
        approved: Approved | None = (
            {**review, "data": document_of(data)} if word.state == "approved" else self.approved
        )
        return replace(self, review=review, approved=approved, history=[*self.history, review])

    def with_past(self, old: Receipt) -> Receipt:
        """Return a new import's receipt, with the words that people said on the versions before, and their
        runs.
        """
        return replace(self, approved=old.approved, history=old.history, earlier=old.runs[:KEPT])

    def with_standing(self, old: Receipt) -> Receipt:
        """Return the receipt of a new import whose data are as they were: review and runs are those of
        ``old``.
        """
        return replace(
            self,
            review=old.review,
            validation=old.validation,
            earlier=old.earlier,
            partial=old.partial,
            absent={key: old.absent[key] for key in RUNS if key in old.absent},
        )

    def with_validation(self, report: Mapping[str, object], digest: str) -> Receipt:
        """Return the same receipt with a run's report; what is partial is kept apart and takes no other's
        place.
        """
        run = cast("Report", {"digest": digest, **report})
        if run.get("partial"):
            return replace(self, partial=run)
        others = [r for r in self.runs if r["engine"] != run["engine"]]
        return replace(self, validation=run, earlier=others[:KEPT])


def verdicts_of(proof: Mapping[str, object], key: str) -> list[ProofVerdict]:
    """Return a proof's verdicts on the parsers of a key, the best first; none of a damaged proof."""
    found, needed = list[ProofVerdict](), listed(mapping(proof.get("needed")).get(key))
    for one in map(mapping, listed(mapping(proof.get("verdicts")).get(key))):
        failed = {str(case): str(problem) for case, problem in mapping(one.get("failed")).items()}
        lost = next((f"{case}: {failed[case]}" for case in needed if case in failed), None)
        passed = [str(case) for case in listed(one.get("passed"))]
        found.append({"parser": str(one.get("parser")), "passed": passed, "failed": failed, "lost": lost})
    return found


def proved_by(proof: Mapping[str, object]) -> str:
    """Return what was asked for a proof, such as ``mlx 0.32.2``."""
    return f"{'parsers of ' if proof.get('alone') else ''}{proof.get('engine')} {proof.get('version')}"


def parse(data: Mapping[str, Any], path: object = "The receipt") -> Receipt:
    """Return the receipt in ``data``; raises what ``check_number`` raises."""
    check_number(data, path)
    kept = {f: data[f] for f in Receipt.__dataclass_fields__ if f in data}
    return Receipt(**{"evidence": [], **kept})  # a side file may be left out


def check_number(data: Any, path: object) -> None:
    """Raise DocumentError("newer-receipt") for data of a newer schema."""
    number = data.get("schema") if isinstance(data, Mapping) else None
    if type(number) is int and number > SCHEMA:
        raise DocumentError("newer-receipt", path=path, schema=number, known=SCHEMA)


def evidence_json(evidence: Sequence[Evidence]) -> list[Fact]:
    """Evidence as it stands in a receipt."""
    return [
        {
            "rule": e.rule,
            "key": e.key,
            "value": _plain(e.value),
            "source": e.source,
            "message": render(e.reason),
            "quote": e.quote,
        }
        for e in evidence
    ]


def _plain(value: Any) -> Any:
    """Return the value with its reasons as sentences: a proof says of each parser why it was refuted."""
    if isinstance(value, Reason):
        return render(value)
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.name != "reason"}
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=list)


def _lines(value: object) -> str:
    """Return JSON in lines, indented once more; only line ends between values are line ends of the text."""
    return json.dumps(value, indent=1, ensure_ascii=False, default=list).replace("\n", "\n ")


@lru_cache(maxsize=128)  # documents of one kind have a proof in common, which is most of their receipts
def _proof_lines(compact: str) -> str:
    return _lines(json.loads(compact))
