"""A released file that is another than when it was read before: a release never changes."""

from __future__ import annotations

from collections.abc import Iterator

from gen_defaults.checks.finding import Finding, Subject


def check(subject: Subject) -> Iterator[Finding]:
    """What a person gave in place of the index is noted; an index that does so is refused at once."""
    for file, (before, after) in subject.releases.items():
        if before.get("file") == after.get("file") and before.get("sha256") != after.get("sha256"):
            says = f"{after['file']} has another SHA-256 than the one it had: {after['sha256']}"
            yield Finding(file, "", says, "make sure that it is the one that is meant", "note")
