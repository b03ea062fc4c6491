"""What parsers read differently in pieces, gathered over many proofs: the table of docs/parsers.md."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from importer.proof import Proof
from importer.proof.reasons import ProofReason
from importer.reasons import Reason


def table(proofs: Iterable[Proof]) -> str:
    """One row per parser with a finding: templates it reads, those with findings, and in which cases."""
    read: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    cases: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for proof in proofs:
        for field, name, finding in _findings(proof):
            read[field, name] += 1
            if finding is not None:
                found[field, name] += 1
                cases[field, name].update(_cases(finding))
    lines = ["| parser | templates read | with findings | cases that differ |", "|---|---|---|---|"]
    for field, name in sorted(found, key=lambda key: (key[0] != "tool_parser", key[1])):
        told = ", ".join(f"{case} {n}" for case, n in cases[field, name].most_common())
        kind = field.partition("_")[0]
        lines.append(f"| {kind} `{name}` | {read[field, name]} | {found[field, name]} | {told} |")
    return "\n".join(lines) + "\n"


def _cases(finding: Reason) -> Iterator[str]:
    """The cases that differ in pieces."""
    found = finding.fields.get("cases")
    for one in found if isinstance(found, tuple) else ():
        if one.kind is ProofReason.SPLITS_DIFFER:
            yield one.fields["case"]


def _findings(proof: Proof) -> Iterator[tuple[str, str, Reason | None]]:
    """Aliases load one class, so the first of them speaks for all."""
    for field, verdicts in proof.verdicts.items():
        seen = set()
        for verdict in sorted(verdicts, key=lambda v: v.parser):
            if verdict.reads and verdict.class_name not in seen:
                seen.add(verdict.class_name)
                yield field, verdict.parser, verdict.streaming
