"""Evidence: a named fact about one decision, with its source, its reason and a quote."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from importer.evidence.rule import Rule
from importer.reasons import Reason


class Source(StrEnum):
    """What facts are read from that is no file, table or engine; files go by their names."""

    TEMPLATE = "the chat template"
    LISTING = "the listed files"
    REPOSITORY = "the repository"
    HUB = "the Hub's answer"
    NAME = "name"
    FIT = "fit"
    PROOF = "proof"


class Severity(StrEnum):
    """What a reviewer must not miss: a reason around the reason."""

    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact.

    ``rule``    which reader found it; ``Rule`` has them in the order in which they are heard.
    ``key``     the decision it speaks on: ``kind``, ``tool_parser``, ``parameters.temperature`` …
    ``value``   a JSON value; ``None`` says *known to have none*.
    ``source``  the file, table or tag it was read from, else a ``Source``.
    ``reason``  what it says, as a kind with fields.
    ``quote``   the words it rests on, short and verbatim.
    """

    rule: Rule
    key: str
    value: Any
    source: str
    reason: Reason
    quote: str = ""


def warning(reason: Reason) -> Reason:
    """The same reason, marked as one that a reviewer must not miss."""
    return Reason(Severity.WARNING, reason=reason)


def is_warning(reason: Reason) -> bool:
    """Whether a reason tells of something that will go wrong."""
    return reason.kind is Severity.WARNING
