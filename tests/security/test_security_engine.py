"""No code of a repository runs: the same with real engines, which know how to run it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from importer.cli.main import run
from importer.demo import MODEL
from importer.engines.install import Installed

pytestmark = pytest.mark.engine


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The demo model with modules that leave a mark, named wherever mlx-lm, transformers and vLLM look."""
    made = tmp_path / "evil"
    shutil.copytree(MODEL, made)
    (made / "evil.py").write_text(f"with open({str(tmp_path / 'mark')!r}, 'w'): pass\n", encoding="utf-8")
    own = {name: f"evil.{name}" for name in ("AutoConfig", "AutoModelForCausalLM")}
    change(made / "config.json", model_file="evil.py", auto_map=own)
    change(
        made / "tokenizer_config.json", tokenizer_class="EvilTokenizer",
        auto_map={"AutoTokenizer": ["evil.EvilTokenizer", "evil.EvilTokenizer"]},
        tool_parser_type="../../../../evil", chat_template_type="os",
    )  # fmt: skip
    return made


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), encoding="utf-8")


def test_the_module_would_leave_a_mark(model: Path) -> None:
    subprocess.run([sys.executable, str(model / "evil.py")], check=True)
    assert (model.parent / "mark").exists()


@pytest.mark.xdist_group("mlx")
def test_mlx_is_asked_and_started_without_it(
    model: Path, mlx_engine: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asking its parsers works all the same; its server refuses to load the model, and says why."""
    assert mlx_engine.version
    out = str(model.parent / "out")
    code = run([str(model), "--backend", "mlx", "--dir", out, "--yes", "--validate", "--json"])
    said = capsys.readouterr()
    assert code == 6, said.err
    assert "Traceback" not in said.err
    assert not (model.parent / "mark").exists()
    receipt = json.loads((model.parent / "out" / "evil.receipt.json").read_text("utf-8"))
    assert receipt["decisions"]["tool_parser"]["status"] == "proved"


@pytest.mark.nightly
@pytest.mark.xdist_group("vllm")
def test_vllm_is_asked_without_it(
    model: Path, vllm_engine: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vllm_engine.version
    out = str(model.parent / "out")
    code = run([str(model), "--backend", "vllm", "--dir", out, "--dry-run", "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert json.loads(said.out)["decisions"]["tool_parser"]["status"] == "proved"
    assert not (model.parent / "mark").exists()
