"""Which folders of this disk may be read: one door, whoever names them and however they are spelt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer.app import validate
from importer.document.store import StoredDocument, load
from importer.errors import ImporterError, ServiceError
from importer.hub import cache, resolve
from importer.hub.local import ANYWHERE, AllowedFolders
from importer.hub.reference import parse
from importer.hub.weights import readable
from tests.commandline import BASE

NOWHERE = AllowedFolders.below([])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that may be read, one beside it, links between them; the second is home and current."""
    for name in ("models/good", "models-too/bad", "outside/model"):
        (tmp_path / name).mkdir(parents=True)
        for file, data in BASE.items():
            (tmp_path / name / file).write_text(json.dumps(data))
    (tmp_path / "models" / "link").symlink_to(tmp_path / "outside" / "model")
    (tmp_path / "inward").symlink_to(tmp_path / "models" / "good")
    monkeypatch.setenv("HOME", str(tmp_path / "outside"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.chdir(tmp_path / "outside")
    return tmp_path


OUTSIDE = [
    "{0}/outside/model", "~/model", "./model", "../outside/model", ".", "..", "/", "{0}",
    "{0}/models-too/bad",
    "{0}/models/../outside/model", "{0}/models/link", "{0}/models/good/../../outside/model", "/proc/self/cwd",
    " {0}/outside/model", "{0}/nothing", "/dev/fd", "{0}/outside/model/",
]  # fmt: skip


def refused(text: str, places: AllowedFolders) -> str:
    with pytest.raises(ImporterError) as caught:
        resolve(parse(text), places)
    return caught.value.kind


@pytest.mark.parametrize("spelt", OUTSIDE)
def test_what_lies_outside_is_refused_however_it_is_spelt(site: Path, spelt: str) -> None:
    text = spelt.format(site)
    assert refused(text, AllowedFolders.below([site / "models"])) == "no-directories"
    assert refused(text, NOWHERE) == "no-directories"


@pytest.mark.parametrize("spelt", ["{0}/models/good", "{0}/inward", "../models/good", "~/../models/good"])
def test_what_lies_inside_is_read_however_it_is_spelt(site: Path, spelt: str) -> None:
    text = spelt.format(site)
    for places in (
        AllowedFolders.below([site / "models"]),
        AllowedFolders.below([site / "models" / "good"]),
        ANYWHERE,
    ):
        assert resolve(parse(text), places).directory == site / "models" / "good"
    assert refused(text, NOWHERE) == "no-directories"


def test_a_link_that_is_allowed_is_the_folder_it_leads_to(site: Path) -> None:
    places = AllowedFolders.below([site / "models" / "link"])
    assert resolve(parse(str(site / "outside" / "model")), places).directory == site / "outside" / "model"
    assert refused(str(site / "models" / "good"), places) == "no-directories"


@pytest.mark.parametrize("key", ["model", "model_id"])
def test_a_document_leads_nowhere_that_a_reference_does_not(site: Path, key: str) -> None:
    """The model may be named in two places; a word without a slash is a folder beside the document."""
    for spelt in (*OUTSIDE, *(["word"] if key == "model" else [])):
        stored = _document(site, key, spelt.format(site))
        with pytest.raises(ImporterError) as caught:
            validate.weights_of(stored, None, NOWHERE, fetch=False, progress=lambda _: None)
        assert caught.value.kind == "no-directories", (key, spelt)
        assert validate._weights_on_disk(stored, NOWHERE) is None
    inside = _document(site, key, str(site / "models" / "good"))
    with pytest.raises(ImporterError) as caught:
        validate.weights_of(
            inside, None, AllowedFolders.below([site / "models"]), fetch=False, progress=lambda _: None
        )
    assert caught.value.kind == "no-weights"  # it was looked for there


def _document(site: Path, key: str, place: str) -> StoredDocument:
    """A document that names a folder in one of these places."""
    model = place if key != "model_id" else "a/b"
    block = f"importer: {{schema: 1, reference: {json.dumps(place)}, engine: {{name: vllm}}"
    block += f", model_id: {json.dumps(place)}}}\n" if key == "model_id" else "}\n"
    path = site / "outside" / "doc.yaml"
    path.write_text(f"name: doc\nbackend: vllm\nparameters:\n  model: {json.dumps(model)}\n{block}")
    return load(path)


def test_weights_that_were_found_before_are_asked_for_again(site: Path) -> None:
    kept = cache.root() / "models--a--b" / "snapshots" / ("a" * 40)
    kept.mkdir(parents=True)
    assert readable(kept, NOWHERE) == kept
    assert readable(kept / "gone", NOWHERE) is None
    good = site / "models" / "good"
    assert readable(good, AllowedFolders.below([site / "models"])) == good
    for folder in (good, kept / "../../../../../outside/model"):
        with pytest.raises(ServiceError, match="directory"):
            readable(folder, NOWHERE)


def test_a_commit_is_no_path() -> None:
    assert cache.snapshot("a/b", "../../../../../etc") is None
    assert cache.snapshot("a/b", "..") is None
