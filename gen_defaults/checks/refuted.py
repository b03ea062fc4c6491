"""A parser row that the proof refutes on a template at hand.

A row whose notes name the field (``reasoning_parser: …``) stands all the same, and the finding is only noted.
"""

from __future__ import annotations

from collections.abc import Iterator

from gen_defaults.checks.finding import PARSERS, Finding, Proved, Subject
from importer.evidence import tables
from importer.evidence.names import match
from importer.evidence.tables import Match
from importer.messages import render


def check(subject: Subject) -> Iterator[Finding]:
    """Each parser that a row names, where the engine's parsers were asked about a model of its family."""
    for proved in subject.proofs:
        found = match(subject.table, proved.model_id)
        for field in tables.PARSERS if found is not None and found.kind == "chat" else ():
            if found is not None:
                yield from _refuted(found, field, proved)


def _refuted(found: Match, field: str, proved: Proved) -> Iterator[Finding]:
    """A known none is not refuted by a parser that reads: who was trained to call, no template tells."""
    name, proof = found.parsers.get(field), proved.proof
    verdict = next((v for v in proof.verdicts.get(field, ()) if v.parser == name), None)
    if verdict is None or verdict.reason is None:
        return
    reads = ", ".join(proof.reads(field)[:3]) or "none"
    says = (
        f"{proof.engine} {proof.version} refutes the {field.replace('_', ' ')} {name} on the template of "
        f"{proved.model_id} ({render(verdict.reason)}); {reads} read it"
    )
    if field in found.row.notes:
        yield Finding(PARSERS, found.row.family, says, "its note says why", "note")
    else:
        step = f"take one that reads it, or say in notes why {field} stands"
        yield Finding(PARSERS, found.row.family, says, step)
