"""``recheck --engine`` with the real parsers of the new version, and without them."""

from __future__ import annotations

import json

import pytest

from importer.engines.install import Installed
from tests.commandline import REPO, Desk, document, receipt

pytestmark = pytest.mark.engine
MODEL = REPO / "importer" / "demo" / "model"


def test_the_parsers_of_the_new_version_read_the_template(desk: Desk, mlx_engine: Installed) -> None:
    ran = desk(MODEL, "--backend", "mlx", "--engine-version", "0.31.3", "--name", "demo", "--no-validate")
    assert ran.code == 0, ran.err
    assert receipt(desk, "demo")["proof"] is None  # that version is not installed
    desk.monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    found = json.loads(desk("recheck", "--engine", f"mlx@{mlx_engine.version}", "--json").out.splitlines()[0])
    assert found["judged"] == "proved"
    assert desk("recheck", "--engine", f"mlx@{mlx_engine.version}", "--apply").code == 0
    data, record = document(desk, "demo"), receipt(desk, "demo")
    assert data["importer"]["engine"]["version"] == mlx_engine.version
    assert (record["proof"]["version"], record["decisions"]["tool_parser"]["value"]) == (
        mlx_engine.version, "json_tools",
    )  # fmt: skip
    assert json.loads(desk("recheck", "--json").out)["changed"] is False

    # Without the environment the registry decides, and the report has what is not proved.
    desk.monkeypatch.delenv("IMPORTER_MLX_PYTHON")
    ran = desk("recheck", "--engine", "mlx@0.31.3")
    assert "1 compared by the parsers' names alone: mlx 0.31.3 is not installed" in ran.out
