"""Requests of the probes: what two results in a row are sent as, and who is at fault for a refusal."""

from __future__ import annotations

import pytest

from importer.validation.errors import RequestRefused
from importer.validation.prompts import Part, short
from importer.validation.remedy import Remedy


@pytest.mark.parametrize(
    ("status", "part", "kind"),
    [
        (400, "configuration", None),
        (404, "configuration", None),
        (415, "engine", None),
        (422, "engine", None),
        (429, "engine", Remedy.LESS_LOAD),
        (500, "engine", None),
    ],
)
def test_who_refuses_a_request_is_told_by_its_status(status: int, part: str, kind: Remedy | None) -> None:
    outcome = RequestRefused(status, "messages.1.content: not a string").outcome()
    assert outcome.attribution == part
    assert (outcome.remedy.kind if outcome.remedy else None) == kind


def test_two_results_in_a_row_are_sent() -> None:
    (results,) = (one.prompt for one in short({}) if one.part is Part.RESULTS)
    assert [message["role"] for message in results.messages] == ["user", "assistant", "tool", "tool"]
    calls = results.messages[1]["tool_calls"]
    assert [call["id"] for call in calls] == [m["tool_call_id"] for m in results.messages[2:]]
    assert len({str(m["content"]) for m in results.messages[2:]}) == 2
