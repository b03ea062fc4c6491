"""Reports and parts of a validation on a real mlx-lm: some probes, a question, a server that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from importer.cli.main import run
from importer.demo import MODEL
from importer.document import schema
from importer.document.store import Store
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import serve
from tests.commandline import whole_receipt
from tests.reporting import looked_at

# By day the guides have the terminal's form of a real run, and test_reports every form of a built one.
pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.xdist_group("mlx")]
CITY = {"location": {"type": "string", "description": "The city."}}
WEATHER = {"name": "get_weather", "description": "Get the current weather for a city.",
           "parameters": {"type": "object", "properties": CITY, "required": ["location"]}}  # fmt: skip
MOST = 20 * 1024  # bytes of the receipt of the demo that go into git
TOOL = {"type": "function", "function": WEATHER}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, mlx_engine: Installed) -> Path:
    """A folder with the demo's document, validated, and the reports of that run."""
    folder = tmp_path_factory.mktemp("reports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IMPORTER_HOME", str(folder / "home"))
        patch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
        patch.chdir(folder)
        assert run([str(MODEL), "--name", "demo", "--backend", "mlx", "--yes", "--no-validate"]) == 0
        reports = [word for name in ("page.html", "junit.xml", "a.json") for word in ("--report", name)]
        assert run(["validate", "demo", *reports]) == 0
    return folder


@pytest.fixture
def here(place: Path, mlx_engine: Installed, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IMPORTER_HOME", str(place / "home"))
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    monkeypatch.chdir(place)
    return place


def receipt(folder: Path) -> Any:
    path = folder / "models" / "demo.receipt.json"
    assert path.stat().st_size <= MOST, "what git keeps is small"
    return whole_receipt(path)


def test_a_real_validation_is_told_in_every_format(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads((here / "a.json").read_text())
    schema.check("validation", report, "a.json")
    (made,) = report["runs"]
    suite = ElementTree.parse(here / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    assert suite.get("tests") == str(len(made["outcomes"]))
    assert suite.get("skipped") == str(made["counts"]["not-applicable"])
    text = "".join(looked_at((here / "page.html").read_text()).text)
    assert all(outcome["probe"] in text and outcome["reason"] in text for outcome in made["outcomes"])
    assert run(["report", "demo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == report["runs"]
    assert run(["report", "demo"]) == 0
    assert f"{made['counts']['pass']} pass" in capsys.readouterr().out


def test_some_probes_are_kept_apart(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = receipt(here)["validation"]
    assert run(["validate", "demo", "--probe", "plain-chat", "tool-call", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [o["probe"] for o in report["outcomes"]] == ["plain-chat", "tool-call", "stops-cleanly"]
    assert report["partial"] == {"probes": ["plain-chat", "tool-call"], "against": None}
    after = receipt(here)
    assert after["validation"] == whole
    assert after["partial"]["outcomes"] == report["outcomes"]


def test_a_server_that_runs_is_probed_and_goes_on_running(
    here: Path, mlx_engine: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    document = Store(here / "models").load("demo").data
    with serve(get("mlx"), mlx_engine.python, document, MODEL) as served:
        words = ["validate", "demo", "--against", served.base_url, "--model", served.model, "--json"]
        code = run([*words, "--probe", "tool-call", "reasoning-apart", "tool-choice", "other-paths"])
        assert served.alive
    report = json.loads(capsys.readouterr().out)
    outcomes = {o["probe"]: o["outcome"] for o in report["outcomes"]}
    assert (code, report["passed"], "stops-cleanly" in outcomes) == (0, True, False)
    assert outcomes["tool-call"] == outcomes["reasoning-apart"] == "pass"
    # The server shows its make, which is known to lack these.
    assert (outcomes["tool-choice"], outcomes["other-paths"]) == ("not-applicable", "not-applicable")
    assert receipt(here)["validation"]["passed"]
    assert receipt(here)["partial"]["partial"]["against"] == served.base_url
