"""A document from others is run and exported only after this user's own approval on this machine."""

from __future__ import annotations

import json
import shutil

import pytest

import importer
from importer import config
from importer.errors import DocumentError, EngineError
from tests.commandline import Desk, desk, document

__all__ = ["desk"]
MARCH = "env.TORCHINDUCTOR_CPP_MARCH"


def validated(folder: str = "models") -> str:
    """Return the kind of the error that a validation ends with; no engine is installed here."""
    with pytest.raises((DocumentError, EngineError)) as raised:
        importer.validate("base", folder=folder, engine="vllm-cpu")
    return str(raised.value.kind)


def test_a_grant_needs_an_approval_of_the_present_content(desk: Desk) -> None:
    assert (
        desk("acme/base", "--backend", "vllm", "--set", f"{MARCH}=native -wrapper x", "--no-validate").code
        == 0
    )
    assert validated() == "needs-approval"
    ran = desk("export", "base", "vllm-command")
    assert (ran.code, ran.out) == (5, "")
    assert desk("review", "base").out.splitlines()[1].startswith(f"warning: {MARCH}=")
    assert desk("review", "base", "--approve").code == 0
    assert validated() == "weights-not-local"
    assert "-wrapper" in desk("export", "base", "vllm-command").out
    path = desk.folder / "models" / "base.yaml"
    path.write_text(path.read_text().replace("-wrapper x", "-wrapper y"))
    assert validated() == "needs-approval"
    assert desk("review", "base", "--approve").code == 0
    assert validated() == "weights-not-local"
    assert desk("review", "base", "--reject", "no").code == 0
    assert validated() == "needs-approval"


def test_the_receipt_of_others_is_no_approval(desk: Desk) -> None:
    words = ("--set", f"{MARCH}=native -wrapper x", "--yes", "--no-validate")
    assert desk("acme/base", "--backend", "vllm", *words).code == 0
    assert validated() == "weights-not-local"
    everywhere(desk, "approved", set())
    shutil.rmtree(config.home() / "approved")  # the same document and receipt on another machine
    receipt = json.loads((desk.folder / "models" / "base.receipt.json").read_text())
    assert receipt["review"]["state"] == "approved"
    assert validated() == "needs-approval"
    everywhere(desk, "draft", {"not-here"})
    for words in (("check", "models", "--files-only"), ("build", "models", "-o", "site")):
        ran = desk("gallery", *words)
        assert "but not on this machine" in ran.out + ran.err, ran
    assert not (desk.folder / "site" / "base.html").exists()
    assert desk("gallery", "build", "models", "-o", "site", "--include-drafts", "base").code == 0
    assert "(review: draft)" in (desk.folder / "site" / "index.yaml").read_text()
    assert "draft" in (desk.folder / "site" / "index.html").read_text()
    ran = desk("acme/base", "--backend", "vllm", "--yes", "--no-validate")
    assert (ran.code, "As you said" in ran.err, "review: approved" in ran.err) == (0, False, False)
    assert (f"Needs attention: {MARCH}: {MARCH}=" in ran.err, "review: pending" in ran.err) == (True, True)
    assert desk("export", "base", "vllm-command").code == 5


def everywhere(desk: Desk, review: str, attention: set[str]) -> None:
    """Each front end shows the one answer."""
    listed = json.loads(desk("list", "--json").out)
    shown = json.loads(desk("show", "base", "--json").out)
    for row in (listed, shown):
        assert (row["review"], row["state"]) == (review, review)
        assert {one["kind"] for one in row["needs_attention"]} >= attention
    assert json.loads(desk("review", "base", "--json").out)["review"] == review
    sheet = json.loads(desk("report", "base", "--format", "json").out)
    assert sheet["review"] == review
    assert desk("export", "base", "vllm-command", "--approved-only").code == (
        0 if review == "approved" else 5
    )


def test_an_approval_that_cannot_be_recorded_here_is_none(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = ("acme/base", "--backend", "vllm", "--set", f"{MARCH}=native -wrapper x", "--no-validate")
    assert desk(*typed).code == 0
    with monkeypatch.context() as patch:
        patch.setenv("IMPORTER_HOME", "/proc/x")
        for words in (("review", "base", "--approve"), (*typed, "--yes")):
            ran = desk(*words)
            assert (ran.code, "could not be written" in ran.err, state(desk)) == (5, True, "pending"), ran
    assert desk("review", "base", "--approve").code == 0
    assert desk("review", "base", "--approve", "--digest", f"sha256:{0:064}").code == 5
    assert validated() == "weights-not-local", "a refused review takes no approval back"


def test_free_settings_need_none(desk: Desk) -> None:
    words = ("--set", "env.VLLM_USE_DEEP_GEMM=0", "--set", "max_num_seqs=4", "--no-validate")
    assert desk("acme/base", "--backend", "vllm", *words).code == 0
    assert document(desk)["env"] == {"VLLM_USE_DEEP_GEMM": 0}
    assert validated() == "weights-not-local"


def state(desk: Desk) -> str:
    return str(json.loads((desk.folder / "models" / "base.receipt.json").read_text())["review"]["state"])


@pytest.mark.parametrize("brought", ["file", "earlier import", "LocalAI's key"])
def test_yes_grants_what_was_typed_alone(desk: Desk, brought: str) -> None:
    words = ("acme/base", "--backend", "vllm", "--no-validate")
    typed = ("--set", f"{MARCH}=native -wrapper x")
    assert desk(*words, *(typed if brought == "earlier import" else ())).code == 0
    path, key = desk.folder / "models" / "base.yaml", MARCH
    if brought == "file":
        path.write_text(f"{path.read_text()}env: {{{MARCH.removeprefix('env.')}: native -wrapper x}}\n")
    elif brought == "LocalAI's key":
        path.write_text(f"{path.read_text()}mcp: {{stdio: x}}\n")
        key, typed = "mcp", ()
    imported = importer.import_model("acme/base", folder="models", backend="vllm", approved_by="a script")
    assert [one.key for one in imported.warnings].count(key) == 1
    assert state(desk) == "pending"
    ran = desk(*words, "--yes")
    assert (ran.code, state(desk), validated()) == (0, "pending", "needs-approval")
    assert f"Needs attention: {key}: {key}=" in ran.err
    if typed:
        assert desk(*words, *typed, "--yes").code == 0
    else:
        assert desk("review", "base", "--approve").code == 0
    assert (state(desk), validated()) == ("approved", "weights-not-local")
    assert desk(*words, "--set", "temperature=0.3", "--yes").code == 0  # the grant was approved here
    assert (state(desk), validated()) == ("approved", "weights-not-local")
