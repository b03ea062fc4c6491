"""A checkout in which the tables are made from made-up releases, and the job run in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gen_defaults.__main__ import main
from gen_defaults.place import Place
from gen_defaults.released import Index
from gen_defaults.sources import SOURCES, SourceRequest, engines
from tests.gen_releases import FAMILIES, checkout, everything, fill, unsloth
from tests.package_index import PackageIndex

WHEEL = "unsloth-2026.1.0-py3-none-any.whl"
MADE: dict[str, bytes] = {}  # every file of a checkout after a run, which takes a second


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A checkout in which nothing was generated yet."""
    monkeypatch.setattr(
        engines,
        "PREFIXES",
        {
            "vllm": ("0.9",), "vllm-rust": (), "mlx": ("0.2",), "mlx-vlm": ("0.1",), "vllm-mlx": ("0.1",),
            "sglang": ("0.5",),
        },
    )  # fmt: skip
    return checkout(tmp_path / "checkout")


@pytest.fixture
def made(package_index: PackageIndex, place: Place) -> Place:
    """The same after a run against an index that is filled."""
    fill(package_index)
    if not MADE:
        assert main([], place) == 0
        MADE.update(everything(place))
    for name, data in MADE.items():
        (place.root / name).parent.mkdir(parents=True, exist_ok=True)
        (place.root / name).write_bytes(data)
    return place


def said(name: str, place: Place, **options: Any) -> dict[str, Any]:
    """What one source says: file name to data."""
    answer = SOURCES[name](SourceRequest(Index(), place, **options))
    return {path.name: json.loads(text) for path, text in answer.files.items()}


def run(place: Place, *arguments: str) -> int:
    return main([*arguments], place)


def altered(**row: Any) -> dict[str, str]:
    return unsloth(FAMILIES | {"acme-2": FAMILIES["acme-2"] | row})


def vendor_file(root: Path, text: str) -> Path:
    """A folder of repositories, with the file of the one that is listed."""
    folder = root / "zeta__Zeta-1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "generation_config.json").write_text(text)
    return root
