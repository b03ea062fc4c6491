"""Folders in which every module that somebody might import leaves a mark when it is imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from tempfile import TemporaryDirectory

from importer.demo import MODEL

ENGINES = (
    "mlx", "mlx_lm", "mlx_vlm", "vllm", "vllm_mlx", "torch", "transformers", "tokenizers", "safetensors",
    "numpy", "regex", "ray", "triton", "sentencepiece", "google", "sitecustomize", "usercustomize",
)  # fmt: skip
# Nothing is imported by it but what is part of the interpreter itself.
POISON = (
    "import posix, sys\n"
    "with open({mark!r}, 'a') as file:\n"
    "    file.write(__name__ + ' ' + repr(sys.orig_argv) + ' ' + repr(posix.environ) + '\\n')\n"
)


@dataclass(frozen=True)
class Hostile:
    """A model's folder with the demo model and a poisoned module for each name."""

    path: Path
    mark: Path

    @property
    def ran(self) -> list[str]:
        """The modules that were imported, by whom and with which environment."""
        return self.mark.read_text().splitlines() if self.mark.exists() else []


def names() -> frozenset[str]:
    """Python's own modules, what is installed beside us, and what engines import."""
    return frozenset({*sys.stdlib_module_names, *packages_distributions(), *ENGINES})


def poison(folder: Path, mark: Path, modules: Iterable[str]) -> None:
    for name in sorted(modules):
        (folder / f"{name}.py").write_text(POISON.format(mark=str(mark)), encoding="utf-8")


def hostile(place: Path, modules: Iterable[str], *, own: bool = False) -> Hostile:
    """A folder in ``place``; ``own`` adds packages under our names, too."""
    made = Hostile(place / "hostile", place / "mark")
    made.path.mkdir()
    for file in MODEL.iterdir():
        (made.path / file.name).write_bytes(file.read_bytes())
    poison(made.path, made.mark, modules)
    for package in ("importer", "gen_defaults") if own else ():
        (made.path / package).mkdir()
        poison(made.path / package, made.mark, ["__init__", "__main__"])
    return made


@cache
def before_ours() -> frozenset[str]:
    """What Python itself imports for ``python -m PACKAGE`` before the first line of PACKAGE."""
    with TemporaryDirectory() as folder:
        Path(folder, "blank.py").write_text("import sys; print(*sys.modules)", encoding="utf-8")
        argv = [sys.executable, "-m", "blank"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True)
    return frozenset(name.partition(".")[0] for name in done.stdout.split())
