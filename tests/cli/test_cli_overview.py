"""``importer list`` and ``show``: states, facts and trouble as the service has them; opened reports."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from importer.app.overview import overview
from importer.app.overview import rows as rows_of
from importer.app.states import SORTS, STATES
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
from tests.waiting import wait_until

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
def test_a_list_is_selected_and_ordered(three: Desk) -> None:
    names = lambda *words: [row["name"] for row in listed(three, *words)]  # noqa: E731
    assert names("--state", "stale", "--state", "invalid") == ["base", "odd"]
    assert names("--state", "published") == []
    assert names("--sort", "state") == ["odd", "base", "tiny"]
    assert names("--sort=-name") == ["tiny", "odd", "base"]
    assert names("--sort", "attention")[-1] == "tiny"
    assert names("--sort=-context")[-1] == "odd"  # what has no value is last either way
    for sort in SORTS:
        assert sorted(names("--sort", sort)) == sorted(names(f"--sort=-{sort}")) == ["base", "odd", "tiny"]
    for wrong in (("--state", "gone"), ("--sort", "colour")):
        ran = three("list", *wrong)
        assert (ran.code, wrong[1] in ran.err, STATES[0] in ran.err or SORTS[0] in ran.err) == (2, True, True)


def test_a_document_is_shown_with_the_same(three: Desk) -> None:
    (row,) = (one for one in listed(three) if one["name"] == "tiny")
    shown = json.loads(three("show", "tiny", "--json").out)
    assert shown.items() >= {k: v for k, v in row.items() if k != "variants"}.items()
    lines = three("show", "tiny").out.splitlines()
    assert "state: approved; it was never validated" in lines
    assert f"description (card): {SAYS}" in lines
    assert any(line.startswith("needs attention: state: ") for line in three("show", "base").out.splitlines())


@pytest.mark.slow
def test_a_report_is_opened_in_the_browser(three: Desk, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen({str(seen)!r}, 'a').write(sys.argv[1])\n")
    browser.chmod(0o755)
    home = str(tmp_path / "home")
    ran = three.alone("show", "tiny", "--open", env={"BROWSER": f"{browser} %s", "IMPORTER_HOME": home})
    assert ran.code == 0
    assert wait_until(lambda: seen.exists() and seen.read_text().endswith(".html"))
    (page,) = (Path(home) / "cache" / "reports").iterdir()
    assert seen.read_text() == page.as_uri()
    assert "tiny" in page.read_text()
    assert f"Opened {page}." in ran.err


@pytest.mark.slow
def test_without_a_browser_one_line_names_the_file(three: Desk, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    (empty / "uname").symlink_to(shutil.which("uname") or "/bin/uname")
    home = tmp_path / "home"
    env = {"PATH": str(empty), "BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    env["IMPORTER_HOME"] = str(home)
    ran = three.alone("show", "tiny", "--open", "--json", env=env)
    (page,) = (home / "cache" / "reports").iterdir()
    assert (ran.code, ran.err) == (0, f"No browser was found here. The report is {page}.\n")
    assert json.loads(ran.out)["name"] == "tiny"


def test_a_warning_names_what_it_is_about() -> None:
    """Keys that are no settings have a name of their own in a line for a person."""
    assert {*messages.ABOUT} <= {*REMARKS}
    warned = Attention(
        AttentionReason.REQUEST_COVERAGE,
        "request_coverage",
        Reason(CoverageEffect.HIDDEN, tools="lost", parser="hermes"),
    )
    assert import_summary.attention(warned).startswith("Needs attention: chat template: ")
