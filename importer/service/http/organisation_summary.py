"""The summary of an organisation's import, as it is answered."""

from __future__ import annotations

from pydantic import BaseModel, Field

Counts = dict[str, int]


class ImportSummary(BaseModel):
    """Counts of the models that have ended; each map has the most frequent values first."""

    job: str
    organisation: str
    state: str
    waiting: int = Field(description="models that wait or are imported at the moment")
    listed: int = Field(description="models that have ended: imported, skipped, failed and cancelled")
    imported: int
    kind: Counts
    family: Counts
    backend: Counts
    tool_parser: Counts
    reasoning_parser: Counts
    findings: Counts = Field(description="documents with a warning of this kind")
    unknown: Counts = Field(description="documents in which this decision is unknown")
    skipped: Counts = Field(description="models without a document, by the kind of the reason")
    failed: Counts = Field(description="failed and cancelled jobs, by the kind of the problem")
    examples: dict[str, list[str]] = Field(description="up to three models of each kind without a document")
