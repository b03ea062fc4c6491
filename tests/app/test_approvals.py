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
    assert desk("approve", "base").code == 0
    assert validated() == "weights-not-local"
    assert "-wrapper" in desk("export", "base", "vllm-command").out
    path = desk.folder / "models" / "base.yaml"
    path.write_text(path.read_text().replace("-wrapper x", "-wrapper y"))
    assert validated() == "needs-approval"
    assert desk("approve", "base").code == 0
    assert validated() == "weights-not-local"
    assert desk("review", "base", "--reject", "no").code == 0
    assert validated() == "needs-approval"


def test_the_receipt_of_others_is_no_approval(desk: Desk) -> None:
    words = ("--set", f"{MARCH}=native -wrapper x", "--yes", "--no-validate")
    assert desk("acme/base", "--backend", "vllm", *words).code == 0
    assert validated() == "weights-not-local"
    shutil.rmtree(config.home() / "approved")  # the same document and receipt on another machine
    receipt = json.loads((desk.folder / "models" / "base.receipt.json").read_text())
    assert receipt["review"]["state"] == "approved"
    assert validated() == "needs-approval"


def test_free_settings_need_none(desk: Desk) -> None:
    words = ("--set", "env.VLLM_USE_DEEP_GEMM=0", "--set", "max_num_seqs=4", "--no-validate")
    assert desk("acme/base", "--backend", "vllm", *words).code == 0
    assert document(desk)["env"] == {"VLLM_USE_DEEP_GEMM": 0}
    assert validated() == "weights-not-local"
