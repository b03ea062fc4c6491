"""``importer list`` and ``show``: states, facts and trouble as the service has them; opened reports."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from importer.app.overview import overview
from importer.app.overview import rows as rows_of
from importer.app.states import STATES
from importer.cli import import_summary, messages
from importer.cli.listing import table
from importer.decisions.request_coverage import CoverageEffect
from importer.document.attention import Attention, AttentionReason
from importer.document.document_keys import REMARKS
from importer.document.review import together
from importer.document.store import Store
from importer.reasons import Reason
from tests.commandline import CHAT, Desk
from tests.hubserver import Repo

CARD = "---\nlicense: mit\n---\n# Tiny\n\nTiny is a small model that answers questions about trains.\n"
SAYS = "Tiny is a small model that answers questions about trains."


def listed(desk: Desk, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in desk("list", "--json", *words).out.splitlines()]


@pytest.fixture
def three(desk: Desk) -> Desk:
    """An approved document of a model with a card, an edited one, and a file that cannot be read."""
    desk.hub.repos["acme/tiny"] = Repo({**CHAT, "README.md": CARD}, info={"cardData": {"license": "mit"}})
    assert desk("acme/tiny", "--backend", "vllm", "--yes", "--no-validate").code == 0
    assert desk("acme/base", "--backend", "vllm", "--yes", "--no-validate").code == 0
    file = desk.folder / "models" / "base.yaml"
    file.write_text(file.read_text().replace("temperature: 0.6", "temperature: 0.9"))
    (desk.folder / "models" / "odd.yaml").write_text("a: [\n")
    return desk


def test_a_list_has_states_facts_and_what_needs_attention(three: Desk) -> None:
    rows = {row["name"]: row for row in listed(three)}
    assert {name: row["state"] for name, row in rows.items()} == {
        "base": "stale", "odd": "invalid", "tiny": "approved",
    }  # fmt: skip
    assert rows["tiny"]["facts"]["description"] == SAYS
    assert (rows["tiny"]["facts"]["license"], rows["tiny"]["needs_attention"]) == ("mit", [])
    (edited,) = (one for one in rows["base"]["needs_attention"] if one["key"] == "state")
    assert edited["message"] == rows["base"]["reason"]
    assert rows["odd"]["needs_attention"][0]["kind"] == "invalid"
    store = Store(three.folder / "models")
    assert rows["base"].items() >= overview(store.load("base")).to_json().items()
    shown = " ".join(three("list").out.split())
    for word in ("stale", "approved", "invalid", "512", "it was edited since"):
        assert word in shown


def test_a_document_with_one_fault_keeps_its_facts(three: Desk) -> None:
    before = next(row for row in listed(three) if row["name"] == "tiny")
    file = three.folder / "models" / "tiny.yaml"
    file.write_text(f"{file.read_text()}temprature: 1\n")
    row = next(row for row in listed(three) if row["name"] == "tiny")
    assert (row["state"], row["review"]) == ("invalid", "invalid")
    for key in ("model", "revision", "backend", "facts"):
        assert row[key] == before[key]
        assert row[key] is not None


def test_a_document_that_is_not_valid_is_invalid_everywhere(three: Desk) -> None:
    file = three.folder / "models" / "tiny.yaml"
    file.write_text(f"{file.read_text()}max_model_ln: 4\n")
    (row,) = (one for one in listed(three) if one["name"] == "tiny")
    shown = json.loads(three("show", "tiny", "--json").out)
    assert (row["state"], shown["state"], shown["review"]) == ("invalid", "invalid", "invalid")
    assert shown["reason"] == row["reason"]
    assert shown["needs_attention"][0]["message"] == row["needs_attention"][0]["message"]
    for words in (("show",), ("review",), ("report",), ("report", "--format", "html")):
        assert "invalid" in three(words[0], "tiny", *words[1:]).out, words
    assert "approve the document" not in three("show", "tiny").out


def test_a_list_fits_a_narrow_terminal(three: Desk) -> None:
    rows = together(rows_of(Store(three.folder / "models")))
    for width, more in ((80, False), (140, True)):
        console = Console(width=width, file=io.StringIO())
        console.print(table(rows, width))
        assert isinstance(console.file, io.StringIO)
        lines = console.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        assert ("needs attention" in " ".join(lines)) is more
        assert len(lines) == len(rows) + len(("", "the heads", "a rule", ""))
        assert any(line.split()[:2] == ["tiny", "approved"] for line in lines)


@pytest.mark.slow
def test_a_list_is_of_chosen_states(three: Desk) -> None:
    names = lambda *words: [row["name"] for row in listed(three, *words)]  # noqa: E731
    assert names("--state", "stale", "--state", "invalid") == ["base", "odd"]
    assert names("--state", "published") == []
    ran = three("list", "--state", "gone")
    assert (ran.code, "gone" in ran.err, STATES[0] in ran.err) == (2, True, True)


def test_a_document_is_shown_with_the_same(three: Desk) -> None:
    (row,) = (one for one in listed(three) if one["name"] == "tiny")
    shown = json.loads(three("show", "tiny", "--json").out)
    assert shown.items() >= {k: v for k, v in row.items() if k != "variants"}.items()
    lines = three("show", "tiny").out.splitlines()
    assert "state: approved; it was never validated" in lines
    assert f"description (card): {SAYS}" in lines
    assert any(line.startswith("needs attention: state: ") for line in three("show", "base").out.splitlines())


def test_a_warning_names_what_it_is_about() -> None:
    """Keys that are no settings have a name of their own in a line for a person."""
    assert {*messages.ABOUT} <= {*REMARKS}
    warned = Attention(
        AttentionReason.REQUEST_COVERAGE,
        "request_coverage",
        Reason(CoverageEffect.TOOLS_HIDDEN, tools="lost", parser="hermes"),
    )
    assert import_summary.attention(warned).startswith("Needs attention: chat template: ")
