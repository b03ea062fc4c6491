"""``--frontend``: in the document, kept by later imports, carried by exports, refused where there is none."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.commandline import Desk, load

RUST = {"name": "vllm", "version": "0.33.0", "frontend": "rust"}
VARIABLE = "VLLM_USE_RUST_FRONTEND"


def imported(desk: Desk, *words: str) -> Any:
    """The engine's block of the document after an import."""
    ran = desk("acme/chat", "--name", "tiny", "--backend", "vllm", "--no-validate", "--yes", *words)
    assert ran.code == 0, ran.err
    return yaml.safe_load((desk.folder / "models" / "tiny.yaml").read_text())["importer"]["engine"]


@pytest.mark.slow
def test_the_frontend_is_kept_until_another_one_is_named(desk: Desk) -> None:
    assert imported(desk, "--frontend", "rust") == RUST
    assert load(desk.folder / "models" / "tiny.receipt.json")["engine"] == RUST
    assert imported(desk) == RUST
    assert desk("recheck", "tiny").code == 0
    assert imported(desk, "--unset", "frontend") == {"name": "vllm", "version": "0.32.0"}
    assert imported(desk, "--device", "h100-80g") == {**RUST, "frontend": "python"}
    assert imported(desk, "--frontend", "rust") == RUST
    assert imported(desk, "--frontend", "python") == {**RUST, "frontend": "python"}


@pytest.mark.slow
def test_exports_carry_the_variable(desk: Desk) -> None:
    imported(desk, "--frontend", "rust")
    command = desk("export", "tiny", "vllm-command").out.replace("\\\n", "").splitlines()[-1]
    assert command.startswith(f"env {VARIABLE}=1 vllm serve acme/chat")
    assert "--reasoning-parser=" in command
    compose = yaml.safe_load(desk("export", "tiny", "compose").out)["services"]["vllm"]
    assert f"{VARIABLE}=1" in compose["environment"]
    assert compose["image"].endswith(":v0.33.0")
    kserve = yaml.safe_load(desk("export", "tiny", "kserve").out)["spec"]["predictor"]["model"]
    assert {"name": VARIABLE, "value": "1"} in kserve["env"]
    assert f"# env {VARIABLE}=1 vllm serve --config" in desk("export", "tiny", "vllm-config").out
    imported(desk, "--frontend", "python", "--device", "h100-80g")
    for kind in ("vllm-command", "compose", "kserve", "vllm-config"):
        assert VARIABLE not in desk("export", "tiny", kind).out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--backend", "mlx", "--frontend", "rust"), "only vLLM has several frontends"),
        (("--backend", "vllm", "--frontend", "rust", "--engine-version", "0.32.0"), "no frontend in Rust"),
        (
            ("--backend", "vllm", "--frontend", "rust", "--engine-version", "0.28.1"),
            "vllm 0.28.1 are not known",
        ),
        (("--backend", "vllm", "--frontend", "rust", "--set", "tool_parser=granite"), "granite"),
    ],
)
def test_a_frontend_that_is_not_there(desk: Desk, words: tuple[str, ...], says: str) -> None:
    ran = desk("acme/chat", "--no-validate", *words)
    assert (ran.code, says in ran.err) == (2, True), ran.err
    assert not (desk.folder / "models").exists()
