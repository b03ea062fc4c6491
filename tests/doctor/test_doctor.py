"""The doctor as a whole: every check runs, what stands in the way is told at once, real engines are sound."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.app import validate
from importer.cli import messages
from importer.cli.main import run as command
from importer.demo import MODEL
from importer.document.store import load
from importer.engines import doctor, get, install
from importer.engines.deaths import ENVIRONMENT
from importer.engines.doctor import CHECKS, DoctorCase, everything, refuse
from importer.engines.install import Installed
from importer.errors import EngineError
from importer.hub.local import ANYWHERE
from tests.commandline import BASE, Desk, desk
from tests.doctoring import DOCUMENT, copy, engine, fine
from tools import reference

__all__ = ["copy", "desk"]


# All of them


def test_every_check_runs_here(importer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = list(everything(DoctorCase()))
    assert {f.check for f in found} >= {c.name for c in CHECKS if c.about != "document"} | {"memory"}
    assert {f.subject for f in found} >= {"machine", "mlx", "vllm-cpu"}
    assert not any(f.stops for f in found), found
    assert not importer_home.exists()


def test_the_table_of_traps_is_the_registrys() -> None:
    page = reference.probes()
    names = [c.name for c in CHECKS]
    assert len(set(names)) == len(names) == 16
    for check in CHECKS:
        assert f"| `{check.name}` |" in page
        assert check.trap.endswith(".")


def test_what_stands_in_the_way_is_told_at_once(tmp_path: Path, importer_home: Path) -> None:
    case = engine(tmp_path, "mlx", {"mlx_lm-0.32.2": ""}, document=DOCUMENT)
    with pytest.raises(EngineError) as caught:
        refuse(replace(case, weights=tmp_path), "toy")
    error = caught.value
    assert (error.kind, error.exit_code) == ("would-not-run", 6)
    assert "its package mlx_lm is not; " in error.message
    assert "there is no config.json" in error.message
    told = error.details["troubles"]
    assert isinstance(told, tuple)
    assert [finding.result.part for finding in told] == [ENVIRONMENT] * 2
    assert messages.hint(error).count("engine install mlx") == 1
    with pytest.raises(EngineError) as alone:
        refuse(DoctorCase(engine=get("mlx"), document=DOCUMENT), "toy")
    assert alone.value.kind == "engine-missing"


@pytest.mark.slow
def test_a_validation_is_refused_before_anything_starts(desk: Desk) -> None:
    desk.directory("toy", BASE)
    shutil.copytree(MODEL, desk.folder / "toy", dirs_exist_ok=True)
    assert desk("./toy", "--backend", "mlx", "--no-validate").code == 0
    desk.engine(does="raise SystemExit(3)")
    weights = desk.folder / "toy" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    ran = desk("validate", "toy", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (6, "would-not-run")
    assert "is cut" in ran.line["error"]["message"]
    assert [t["check"] for t in ran.line["error"]["troubles"]] == ["snapshot"]
    assert not (desk.folder / "home" / "logs").exists()
    assert desk("doctor", "toy").code == 1


@pytest.mark.slow
def test_files_that_changed_since_the_import_come_before_what_they_stop(desk: Desk) -> None:
    desk.directory("toy", BASE)
    shutil.copytree(MODEL, desk.folder / "toy", dirs_exist_ok=True)
    place = desk.folder / "toy" / "tokenizer.json"
    tokenizer = json.loads(place.read_text())
    decoder = {str(token["id"]): {"content": token["content"]} for token in tokenizer["added_tokens"]}
    settings = place.with_name("tokenizer_config.json")
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"added_tokens_decoder": decoder}))
    assert desk("./toy", "--backend", "mlx", "--no-validate").code == 0
    desk.engine(does="raise SystemExit(3)")
    for number, token in enumerate(tokenizer["added_tokens"]):
        token["content"] = f"[other{number}]"
    place.write_text(json.dumps(tokenizer))
    ran = desk("validate", "toy", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (6, "would-not-run")
    assert "not as imported: tokenizer.json; " in ran.line["error"]["message"]
    assert [t["part"] for t in ran.line["error"]["troubles"]][:1] == [ENVIRONMENT]
    assert "Put tokenizer.json back" in ran.err + str(ran.line)


def test_looking_starts_nothing_and_imports_no_engine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.directory("toy", BASE)
    shutil.copytree(MODEL, desk.folder / "toy", dirs_exist_ok=True)
    assert desk("./toy", "--backend", "mlx", "--no-validate").code == 0
    desk.engine()
    started: list[object] = []
    real = subprocess.Popen

    class Popen(real):  # type: ignore[type-arg, misc, valid-type]
        def __init__(self, *args: Any, **options: Any) -> None:
            started.append(args[0][1:3])
            super().__init__(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    stored = load(desk.folder / "models" / "toy.yaml")
    assert validate.ready(stored, "mlx", ANYWHERE, weights=desk.folder / "toy") == []
    assert started == [["-c", install.ASK_VERSION], ["-c", install.ASK_PATH]]
    assert not {"torch", "vllm", "mlx", "mlx_lm"} & set(sys.modules)


# Real engines


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "module"), [("mlx_vlm", "mlx_vlm.models.qwen3"), ("vllm_mlx", "mlx_lm.models.qwen3")]
)
def test_an_engine_really_ends_where_the_config_has_the_base_elsewhere(
    name: str, module: str, copy: Path, tmp_path: Path, request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from importer.engines.process import serve

    installed: Installed = request.getfixturevalue(f"{name}_engine")
    monkeypatch.chdir(tmp_path)
    config = json.loads((copy / "config.json").read_text())
    config["rope_parameters"] = {"rope_theta": config.pop("rope_theta"), "rope_type": "default"}
    (copy / "config.json").write_text(json.dumps(config))
    words = [str(copy), "--name", "moved", "--backend", installed.engine, "--yes", "--no-validate"]
    assert command(words) == 0
    capsys.readouterr()
    assert command(["validate", "moved"]) == 6
    assert f"{module} does not read" in capsys.readouterr().err
    document = load(tmp_path / "models" / "moved.yaml").data
    with (
        pytest.raises(EngineError) as caught,
        serve(get(installed.engine), installed.python, document, copy, log_path=tmp_path / "log"),
    ):
        pass
    assert caught.value.kind == "engine-died"
    assert "rope_theta" in (tmp_path / "log").read_text()


@pytest.mark.engine
@pytest.mark.parametrize("name", ["mlx_engine", "mlx_vlm_engine", "vllm_mlx_engine", "vllm_engine"])
def test_nothing_stands_in_the_way_of_the_engines_here(name: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(name)
    case = DoctorCase(engine=get(installed.engine), installed=installed, document=DOCUMENT, weights=MODEL)
    found = list(doctor.of_document(case))
    assert [f for f in found if f.stops] == []
    results = {f.check: f.result for f in found}
    for check in ("engine", "package", "instructions", "snapshot", "memory"):
        fine(results[check])
    if installed.engine == "vllm-cpu":
        fine(results["libraries"])
        fine(results["torch"], "+cpu")
