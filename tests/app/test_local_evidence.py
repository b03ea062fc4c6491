"""What this disk has of a model, for a server that runs: its template, its tokenizer, or what is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from importer.app import local_evidence
from importer.cli.main import run
from importer.demo import MODEL
from importer.document.store import Store, StoredDocument
from importer.engines.token_merges import MergedWords
from importer.hub import cache
from importer.hub.local import ANYWHERE
from importer.sentences import render
from importer.validation.expectations import CommonReason
from importer.validation.prompts import GREETING
from tests.hubserver import HubServer, Repo, isolate

pytestmark = pytest.mark.slow
IMPORT = ("--backend", "mlx", "--yes", "--no-validate")


@pytest.fixture
def of_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StoredDocument:
    """A document of a model on the Hub; the Hub is gone, and none of its large files was fetched."""
    texts = {path.name: path.read_bytes() for path in MODEL.iterdir() if path.name != "training.json"}
    with HubServer({"acme/toy": Repo(texts)}) as server:
        isolate(monkeypatch, tmp_path, server.url)
        assert run(["acme/toy", "--name", "toy", *IMPORT, "--dir", str(tmp_path / "out")]) == 0
    return Store(tmp_path / "out").load("toy")


def test_template_and_tokenizer_of_an_import_are_found_without_weights(of_the_hub: StoredDocument) -> None:
    with local_evidence.background(of_the_hub, ANYWHERE) as known:
        assert known.render is not None
        assert "Say hello." in (known.render(GREETING) or "")
        assert (known.tokens, known.merges) == (None, None)
        assert known.no_tokenizer.kind is CommonReason.TOKENIZER_AWAY
        commit = of_the_hub.data["importer"]["revision"]
        assert render(known.no_tokenizer) == (
            "tokenizer.json of acme/toy is not on this disk; "
            f"the Hub client's download of commit {commit} has it"
        )
    folder = cache.client_folder("acme/toy") / "snapshots" / commit
    folder.mkdir(parents=True)
    shutil.copy(MODEL / "tokenizer.json", folder)
    with local_evidence.background(of_the_hub, ANYWHERE) as known:
        assert known.merges == MergedWords(377, 0)
        assert known.tokens is not None or known.no_tokenizer.kind is CommonReason.TOKENIZER_UNREAD


def test_a_folder_without_its_tokenizer_is_no_error(tmp_path: Path) -> None:
    model = Path(shutil.copytree(MODEL, tmp_path / "model"))
    assert run([str(model), "--name", "toy", *IMPORT, "--dir", str(tmp_path / "out")]) == 0
    stored = Store(tmp_path / "out").load("toy")
    (model / "tokenizer.json").unlink()
    with local_evidence.background(stored, ANYWHERE) as known:
        assert known.render is not None
        assert known.no_tokenizer.kind is CommonReason.TOKENIZER_AWAY
        assert render(known.no_tokenizer) == f"tokenizer.json of {model} is not on this disk"
    shutil.rmtree(model)
    with local_evidence.background(stored, ANYWHERE) as known:
        assert (known.render, known.tokens) == (None, None)
