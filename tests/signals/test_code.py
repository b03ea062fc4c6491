"""Code that a repository brings: listed with hashes, never allowed by us, said to be needed or not."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from importer.engines import get, registries
from importer.errors import DocumentError
from importer.hub import local
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sentences import render
from importer.signals import code
from importer.signals.evidence import is_warning

VLLM, MLX = registries.load_capabilities("vllm", "0.32.0"), registries.load_capabilities("mlx")
AUTO = {"AutoConfig": "configuration_x.XConfig", "AutoModelForCausalLM": "modeling_x.XForCausalLM"}
SHA = "a" * 40


def snapshot(config: Any, tokenizer: Any = None, *files: str) -> Snapshot:
    texts = {"config.json": json.dumps(config), "tokenizer_config.json": json.dumps(tokenizer or {})}
    return Snapshot("r", "someone/thing", None, tuple(RepoFile(f, 1, SHA) for f in files), texts)


def test_named_files_come_first_then_those_beside_them() -> None:
    told = snapshot(
        {"auto_map": AUTO}, None, "a.py", "configuration_x.py", "modeling_x.py", "eval/b.py", "c.txt"
    )
    facts = code.evidence(told, VLLM)
    assert {json.dumps(f.value) for f in facts} == {
        json.dumps({"configuration_x.py": SHA, "modeling_x.py": SHA, "a.py": SHA})
    }


def test_code_of_another_repository_is_a_warning() -> None:
    told = snapshot({"auto_map": {"AutoConfig": "other/repo--configuration_x.XConfig"}})
    facts = code.evidence(told, VLLM)
    assert facts[0].value == {}
    assert any(is_warning(f.reason) and "other/repo" in render(f.reason) for f in facts)


@pytest.mark.parametrize(
    "value",
    ["../../etc/passwd.X", "/tmp/x.Y", "a b.C", "x", "", 3, None, {"a": 1}, ["../x.Y"], "a--b--c.D\n"],
)
def test_hostile_names_are_no_files(value: Any) -> None:
    assert code.evidence(snapshot({"auto_map": {"AutoModel": value}, "model_file": value}), VLLM) == []


@pytest.mark.parametrize(
    ("config", "tokenizer", "needed"),
    [
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "auto_map": AUTO}, None, False),
        ({"model_type": "minicpm", "architectures": ["MiniCPMForCausalLM"], "auto_map": AUTO}, None, True),
        ({"model_type": "llama", "architectures": ["NeverHeardOf"], "auto_map": AUTO}, None, True),
        ({"model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "auto_map": AUTO},
         {"auto_map": {"AutoTokenizer": ["tokenization_kimi.T", None]}}, True),
    ],
)  # fmt: skip
def test_whether_vllm_starts_without(config: Any, tokenizer: Any, needed: bool) -> None:
    last = render(code.evidence(snapshot(config, tokenizer), VLLM)[-1].reason)
    assert ("will not start" in last) is needed


def test_mlx_has_models_of_its_own_and_a_word_of_its_own() -> None:
    own = snapshot({"model_type": "llama", "auto_map": AUTO})
    assert "not needed" in render(code.evidence(own, MLX)[-1].reason)
    named = snapshot({"model_type": "llama", "model_file": "own.py"}, None, "own.py")
    assert code.evidence(named, MLX)[0].value == {"own.py": SHA}
    assert "will not start" in render(code.evidence(named, MLX)[-1].reason)


def test_a_directorys_code_and_settings_are_hashed_as_git_does(tmp_path: Path) -> None:
    (tmp_path / "modeling_x.py").write_bytes(b"print(1)\n")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "README.md").write_text("# Words")
    (tmp_path / "link.py").symlink_to("/etc/hostname")
    found = {f.path: f.hash for f in local.resolve("x", tmp_path).files}
    git = subprocess.run(
        ["git", "hash-object", "modeling_x.py", "config.json"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    code, settings = git.stdout.split()
    assert found == {"modeling_x.py": code, "config.json": settings, "link.py": None, "README.md": None}
    assert found["modeling_x.py"] == hashlib.sha1(b"blob 9\0print(1)\n").hexdigest()


@pytest.mark.parametrize("allowed", [None, False, True])
def test_mlx_vlm_is_not_started_on_code_that_nobody_allowed(tmp_path: Path, allowed: bool | None) -> None:
    """Its loader runs the module of ``model_file`` without being told to."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "model_file": "own.py"}))
    document = {"name": "x", "backend": "mlx-vlm", "parameters": {}, "trust_remote_code": allowed}
    if allowed:
        assert "--trust-remote-code" in get("mlx-vlm").launch(document, tmp_path, 1).arguments
    else:
        with pytest.raises(DocumentError, match="model_file"):
            get("mlx-vlm").launch(document, tmp_path, 1)
