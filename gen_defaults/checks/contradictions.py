"""Contradictions: sampling rows against vendors' files, parsers against proofs, releases against their
digests.

A sampling row whose note names the value (``"notes": {"granite-4.0": "temperature: …"}``) stands all the
same, and the finding is only a note.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gen_defaults import sampling
from gen_defaults.checks.finding import PARSERS, SAMPLING, CheckFinding, CheckSubject, Proved
from importer.sentences import render
from importer.signals import tables
from importer.signals.family import match
from importer.signals.tables import Match, SamplingRow

SHOWN = 3  # models that are named


def contradicted(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield each value of each row that a vendor's file of its family contradicts."""
    rows = {row.family: row for row in subject.sampling_table.rows}
    for (family, key), vendors in sorted(_vendor_values(subject).items()):
        against = {m: v for m, v in vendors.items() if not sampling.agrees(rows[family], key, v)}
        if against:
            yield _finding(rows[family], key, against, len(vendors), subject.sampling.get("notes", {}))


def _finding(
    row: SamplingRow, key: str, against: dict[str, float], files: int, notes: dict[str, str]
) -> CheckFinding:
    shown = ", ".join(f"{model} says {value:g}" for model, value in [*against.items()][:SHOWN])
    message = f"{key} is {row.values[key]:g}, against {len(against)} of {files} vendor files: {shown}"
    if key in notes.get(row.family, ""):
        return CheckFinding(SAMPLING, row.family, message, "its note says why", "note")
    return CheckFinding(SAMPLING, row.family, message, f"take the vendor's, or say in notes why {key} stands")


def _vendor_values(subject: CheckSubject) -> dict[tuple[str, str], dict[str, float]]:
    """Return each vendor file's value by family and key."""
    values: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for model_id, data in sorted(subject.vendors.items()):
        row = sampling.row_for(model_id, subject.table, subject.sampling_table)
        if row is not None:
            for key, value in sampling.generation_values(data).items():
                if key in row.values:
                    values[row.family, key][model_id] = value
    return values


def refuted(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield each parser of a row that the proof of a model of its family refutes."""
    for proved in subject.proofs:
        matched = match(subject.table, proved.model_id)
        for field in tables.PARSERS if matched is not None and matched.kind == "chat" else ():
            if matched is not None:
                yield from _refuted(matched, field, proved)


def _refuted(matched: Match, field: str, proved: Proved) -> Iterator[CheckFinding]:
    """Yield the finding on one parser. A known none is not refuted: a template does not show training."""
    name, proof = matched.parsers.get(field), proved.proof
    verdict = next((v for v in proof.verdicts.get(field, ()) if v.parser == name), None)
    if verdict is None or verdict.reason is None:
        return
    reads = ", ".join(proof.reads(field)[:3]) or "none"
    message = (
        f"{proof.engine} {proof.version} refutes the {field.replace('_', ' ')} {name} on the template of "
        f"{proved.model_id} ({render(verdict.reason)}); {reads} read it"
    )
    if field in matched.row.notes:
        yield CheckFinding(PARSERS, matched.row.family, message, "its note says why", "note")
    else:
        step = f"take one that reads it, or say in notes why {field} stands"
        yield CheckFinding(PARSERS, matched.row.family, message, step)


def altered(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield a note where a person's file replaces a release of the index under the same name."""
    for file, (before, after) in subject.releases.items():
        if before.get("file") == after.get("file") and before.get("sha256") != after.get("sha256"):
            message = f"{after['file']} has another SHA-256 than the one it had: {after['sha256']}"
            yield CheckFinding(file, "", message, "make sure that it is the one that is meant", "note")
