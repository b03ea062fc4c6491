"""``/v1/upkeep/groups``: the open findings by cause, to be accepted or rejected together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from importer.app.recheck_upstream import CauseKind
from importer.app.upgrade_report import identity
from importer.service.desk import AtDesk
from importer.service.http.bulk import MOST
from importer.service.http.upkeep import Caused
from importer.service.problems import problems
from importer.service.security.auth import Reader
from importer.storage import findings
from importer.storage.findings import FindingFilter

router = APIRouter(prefix="/v1", tags=["upkeep"])
EXAMPLES = 5
ALONE: Mapping[str, Any] = {"what": CauseKind.RULES, "before": None, "after": None}
GROUP: JsonDict = {
    "cause": {"what": "parser-gone", "before": "hermes2", "after": None, "keys": ["tool_parser"]},
    "documents": 12, "conflicts": 1, "refused": 0, "examples": ["qwen3-8b"],
    "findings": ["01a203d0-f84b-70a0-9261-51243ba6a23e"],
}  # fmt: skip


class FindingGroup(BaseModel):
    """Open findings with one cause; a finding with several causes is in several groups."""

    model_config = ConfigDict(json_schema_extra={"examples": [GROUP]})

    cause: Caused
    documents: int
    conflicts: int = Field(description="findings that need `take`")
    refused: int = Field(description="findings that cannot be accepted as they are")
    examples: list[str] = Field(description="names of the first documents")
    findings: list[str] = Field(description="the first 500 ids, for the items of `/v1/bulk`")


class FindingGroups(BaseModel):
    """Groups of open findings, those with the most documents first."""

    groups: list[FindingGroup]
    total: int = Field(description="open findings of the filters")


@router.get("/upkeep/groups", response_model=FindingGroups, response_model_exclude_unset=True,
            responses=problems(), summary="Open findings by cause")  # fmt: skip
def groups(
    at: AtDesk, who: Reader,
    job: Annotated[str | None, Query(max_length=64, description="the job that found them last")] = None,
    cause: Annotated[CauseKind | None, Query()] = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the causes of open findings with counts, examples and ids.

    The version of an engine is a group of its own only for documents without another cause.
    """
    del who
    chosen = FindingFilter(("open",), cause, None, job)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    total = 0
    with at.database.reading() as connection:
        for ident, name, summary in findings.summaries(connection, chosen):
            total += 1
            for one in _causes(summary):
                group = found.setdefault(identity(one), _empty(one))
                _add(group, ident, name, summary)
    return {"groups": sorted(found.values(), key=lambda group: -int(group["documents"])), "total": total}


def _causes(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    causes = [one for one in summary["causes"] if one["what"] != CauseKind.ENGINE]
    return causes or [*summary["causes"]] or [ALONE]


def _empty(cause: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in cause.items() if name != "files"}
    return {"cause": shown, "documents": 0, "conflicts": 0, "refused": 0, "examples": [], "findings": []}


def _add(group: dict[str, Any], ident: str, name: str, summary: Mapping[str, Any]) -> None:
    group["documents"] += 1
    group["conflicts"] += bool(summary["conflicts"])
    group["refused"] += summary["refused"] is not None
    if len(group["examples"]) < EXAMPLES:
        group["examples"].append(name)
    if len(group["findings"]) < MOST:
        group["findings"].append(ident)
