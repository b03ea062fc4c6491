"""A small model that sees, on real engines: text, images, and a template that shows none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from importer.app.local_evidence import rendering
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import serve
from importer.validation.evidence_sources import Background
from importer.validation.outcome import Report
from importer.validation.probe import ProbeOptions
from importer.validation.probes.chat import plain_chat
from importer.validation.probes.message_forms import message_forms
from importer.validation.probes.server import health
from importer.validation.probes.tools import tool_call
from importer.validation.run import validate
from tests.toy_vision import make

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("mlx-vlm")]

ASKED = (health, plain_chat, tool_call, message_forms)
DOCUMENT = {
    "name": "eye",
    "backend": "mlx-vlm",
    "known_usecases": ["chat", "vision"],
    "options": ["tool_parser:json_tools", "reasoning_parser:<think>"],
    "importer": {"client_sampling": {"temperature": 0}},
}


def validated(installed: Installed, model: Path) -> Report:
    engine = get("mlx-vlm")
    with rendering(model, DOCUMENT) as render, serve(engine, installed.python, DOCUMENT, model) as served:
        known = Background(render=render)
        return validate(DOCUMENT, served, known, ProbeOptions(ASKED), offers=engine.offers)


def found(report: Report) -> dict[str, tuple[str, str | None]]:
    return {row.probe: (row.outcome.outcome, row.outcome.attribution) for row in report.rows}


def test_a_model_that_sees_takes_text_and_images(
    mlx_vlm_engine: Installed, importer_home: Path, tmp_path: Path
) -> None:
    report = validated(mlx_vlm_engine, make(tmp_path / "eye"))
    passed = dict.fromkeys([*(probe.name for probe in ASKED), "stops-cleanly"], ("pass", None))
    assert found(report) == passed, [row.outcome.reason for row in report.rows]


@pytest.mark.nightly
def test_a_template_that_drops_images_is_found_out(
    mlx_vlm_engine: Installed, importer_home: Path, tmp_path: Path
) -> None:
    report = validated(mlx_vlm_engine, make(tmp_path / "eye", shows=False))
    by_probe = found(report)
    assert by_probe["plain-chat"] == ("pass", None)
    assert by_probe["message-forms"] == ("fail", "configuration"), [row.outcome.reason for row in report.rows]
