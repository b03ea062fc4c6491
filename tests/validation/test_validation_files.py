"""The files beside the weights are those that the document was made of, and noise follows from others."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from importer.app.local_evidence import digests_of, files_of
from importer.app.validate import fetched, record
from importer.demo import MODEL
from importer.document.store import Store
from importer.document.validation_state import HoldingReason, validation
from importer.engines import model_folder
from importer.hub import local, resolve
from importer.hub.local import ANYWHERE
from importer.hub.reference import parse
from importer.hub.snapshot import RepoFile, Snapshot
from importer.hub.weights import fetch_weights
from importer.progress import silent
from importer.reasons import Reason
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.expectations import promise_of
from importer.validation.explain import explained
from importer.validation.outcome import Fail, Pass, ProbeRow, Stage
from importer.validation.probes.server import files_as_imported, judge_files_as_imported
from importer.validation.probes.tools import tool_call
from importer.validation.remedy import Remedy
from tests.facts import as_reason
from tests.hubserver import HubServer, Repo, isolate
from tests.judging import remedy, words

NAMES = ("config.json", "tokenizer.json")


def test_a_file_that_is_no_json_is_the_environment_s_and_explains_the_others(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MODEL, tmp_path / "model"))
    path = folder / "generation_config.json"
    path.write_bytes(path.read_bytes()[:20])
    (folder / "results.json").write_text("{}\n{}\n")  # lines of JSON, that no engine reads
    broken = model_folder.broken(folder)
    found = files_as_imported.run(
        Context(promise_of({"name": "x"}), "x", Client("http://127.0.0.1:1"), broken=broken)
    )
    assert isinstance(found, Fail)
    assert (found.attribution, found.reason.fields["what"]) == ("environment", path.name)
    call = Fail(as_reason("no call"), Stage.START, Reason(Remedy.END_AT))
    rows = [ProbeRow(files_as_imported.name, "", found), ProbeRow(tool_call.name, "", call)]
    assert [row.outcome.attribution for row in explained(rows)] == ["environment"] * 2


def snapshot(folder: Path) -> dict[str, str]:
    return local.resolve(str(folder), folder).settings


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


def test_the_hashes_are_gits(model: Path) -> None:
    data = (model / "config.json").read_bytes()
    git = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    found = snapshot(model)
    assert found["config.json"] == git
    assert {*NAMES, "chat_template.jinja"} <= set(found)
    assert "model.safetensors" not in found


def test_files_that_were_put_beside_the_weights_later_are_named(model: Path) -> None:
    before = snapshot(model)
    assert isinstance(judge_files_as_imported(before, snapshot(model)), Pass)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"rope_theta": 1e6}))
    (model / "generation_config.json").unlink()
    (model / "added_tokens.json").write_text("{}")
    told = judge_files_as_imported(before, snapshot(model))
    assert isinstance(told, Fail)
    assert told.attribution == "environment"
    assert words(told).startswith("config.json, generation_config.json, added_tokens.json: changed")
    assert "import the model again" in remedy(told)


def test_hashes_of_another_kind_say_nothing() -> None:
    on_the_hub = {"config.json": "a" * 40, "tokenizer.json": "b" * 64}
    assert isinstance(judge_files_as_imported(on_the_hub, dict.fromkeys(NAMES, "a" * 40)), Pass)


def test_the_hub_s_own_hashes_are_kept() -> None:
    files = (RepoFile("config.json", 9, "a" * 40), RepoFile("model.safetensors", 9, "b" * 64))
    told = Snapshot("acme/base", "acme/base", "c" * 40, (*files, RepoFile("tokenizer.json")), {})
    assert told.settings == {"config.json": "a" * 40}


@pytest.mark.slow
def test_of_a_hub_s_model_only_what_was_fetched_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from importer.cli.main import run

    texts = {p.name: p.read_bytes() for p in MODEL.iterdir() if p.name != "training.json"}
    with HubServer({"acme/toy": Repo({**texts, "params.json": "{}"})}) as server:
        isolate(monkeypatch, tmp_path, server.url)
        words = ["--backend", "mlx", "--dir", str(tmp_path / "out"), "--yes", "--no-validate"]
        assert run(["acme/toy", "--name", "kept", *words]) == 0
        weights = fetch_weights(resolve(parse("acme/toy"), ANYWHERE), lambda *_: None)
    stored = Store(tmp_path / "out").load("kept")
    assert {*NAMES, "params.json"} <= set(files_of(stored, weights))
    (weights / "params.json").unlink()
    known = files_of(stored, weights)
    assert "params.json" not in known
    for outcome in (Pass, Fail):
        served = {**snapshot(weights), **digests_of(known, weights, silent)}
        assert isinstance(judge_files_as_imported(known, served), outcome)
        (weights / "config.json").unlink()
        (weights / "config.json").write_text("{}")


def test_weights_that_the_import_could_not_read_are_not_compared() -> None:
    before = {"config.json": "a" * 40}
    assert isinstance(judge_files_as_imported(before, {**before, "model.safetensors": "b" * 64}), Pass)


@pytest.mark.slow
def test_a_validation_of_other_weights_is_none_of_these(
    model: Path, tmp_path: Path, importer_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from importer.cli.main import run

    folder = str(tmp_path / "out")
    words = ["--backend", "mlx", "--dir", folder, "--yes", "--no-validate"]
    assert run([str(model), "--name", "kept", *words]) == 0
    store = Store(Path(folder))
    stored = store.load("kept")
    served = digests_of(files_of(stored, model), model, silent)
    report = {
        "engine": {"name": "mlx", "version": None}, "outcomes": [], "passed": True, "seconds": {},
        "weights": served,
    }  # fmt: skip
    record(report, store, "kept", stored.digest)

    def state() -> tuple[str, object]:
        now = store.load("kept")
        found = validation(now.need_receipt(), now.data, now.digest)
        return found.state, None if found.why is None else found.why.kind

    assert state() == ("passed", None)
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[:-2] + bytes(2))
    assert state() == ("stale", HoldingReason.NEW_FILES)
    capsys.readouterr()
    assert run(["recheck", "--dir", folder]) == 1
    assert "kept: an import would differ.\n  other weights: model.safetensors\n" in capsys.readouterr().out
    assert state() == ("stale", HoldingReason.OTHER_WEIGHTS)
    (model / "model.safetensors").write_bytes(whole)
    assert run(["recheck", "--dir", folder]) == 0
    assert state() == ("passed", None)
    (model / "model.safetensors").write_bytes(whole[:-2] + bytes(2))
    assert run([str(model), "--name", "kept", *words]) == 0
    assert state() == ("stale", HoldingReason.OTHER_WEIGHTS)  # of weights that were run, not of these
    assert run(["recheck", "--dir", folder]) == 0


def test_weights_of_a_small_model_are_not_nothing() -> None:
    assert fetched(190_000, 380_000) == "fetched 0.19 of 0.38 MB"
    assert fetched(1_500_000_000, 16_380_000_000) == "fetched 1.50 of 16.38 GB"
