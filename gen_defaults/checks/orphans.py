"""A pattern without a family, a family without a pattern, and what is said of families that are none."""

from __future__ import annotations

from collections.abc import Iterator

from gen_defaults.checks.finding import PARSERS, SAMPLING, Finding, Subject

BESIDE = ("modes", "sources", "notes")  # maps of the sampling table beside its families


def check(subject: Subject) -> Iterator[Finding]:
    """Both directions, in both tables."""
    for file, data in ((PARSERS, subject.parsers), (SAMPLING, subject.sampling)):
        families, patterns = data["families"], data["patterns"]
        for pattern in patterns:
            if pattern not in families:
                yield Finding(
                    file, pattern, "a pattern without a family", "add its row, or take the pattern out"
                )
        for family in families:
            if family not in patterns:
                yield Finding(file, family, "a family without a pattern", "add it to patterns, longest first")
    for place in BESIDE:
        for family in subject.sampling.get(place, {}):
            if family not in subject.sampling["families"]:
                yield Finding(
                    SAMPLING, family, f"{place} has it, but no family is called so", "take it out there"
                )
