"""The fix of a failed probe, from its remedy as a validation records it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from importer.document.store import StoredDocument
from importer.reasons import Reason
from importer.service.domain.fixes import fix_of
from importer.validation.outcome import Fail, ProbeRow, Stage, Tried, note
from importer.validation.remedy import Remedy
from tests.publishing import stored

__all__ = ["stored"]
WORD = Reason(Remedy.TAKE_OUT_STOPWORD, word="e")


def fix(stored: StoredDocument, remedy: Reason, tried: Tried | None = None, **data: object) -> Any:
    row = ProbeRow("stop", "", Fail(note("x"), Stage.START, remedy, tried=tried)).to_json()
    return fix_of(cast("Any", row), replace(stored, data={**stored.data, **data}))


@pytest.mark.parametrize(("words", "left"), [(["e"], None), (["e", "end"], ["end"])])
def test_a_remedy_of_a_report_is_a_change(stored: StoredDocument, words: Any, left: Any) -> None:
    change = {"change": {"stopwords": left}}
    assert fix(stored, WORD, Tried(3, 3), stopwords=words) == fix(stored, WORD, stopwords=words) == change
    assert fix(stored, WORD, Tried(0, 3), stopwords=words) is None
    assert fix(stored, WORD, stopwords=["end"]) is None
    changed = {"change": {"parameters": {"top_k": None}}}
    parameters = {**stored.data["parameters"], "top_k": 3}
    out = Reason(Remedy.TAKE_OUT_SETTING, key="parameters.top_k")
    assert fix(stored, out, parameters=parameters) == changed
    named = Reason(Remedy.SET_PARSER, key="tool_parser", parser="hermes", named=None, why=None)
    assert fix(stored, named, options=[]) == {"change": {"options": ["tool_parser:hermes"]}}
    assert fix(stored, Reason(Remedy.MORE_TIME)) is None
