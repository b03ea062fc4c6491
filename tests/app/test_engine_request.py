"""A document as it stands has the settings of its import, so its measurement counts for the next one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from importer.app.api import import_model
from importer.app.engine_request import engine_request
from importer.app.measure import as_written
from importer.app.session import ImportSession
from importer.document.store import Store
from importer.hub import local
from importer.memory.devices import named
from importer.memory.estimate_types import Load
from importer.memory.measured import FREE, ran
from tests.toy_shapes import TOYS

FP8 = {
    "quantization_config": {
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
        "activation_scheme": "dynamic",
    }
}
AWQ = {
    "quantization_config": {
        "quant_method": "awq",
        "bits": 4,
        "group_size": 128,
        "zero_point": True,
        "version": "gemm",
    }
}


@pytest.mark.slow
@pytest.mark.parametrize("device", ["h100-80g", "2xrtx4090", "xeon6"])
def test_a_document_has_the_settings_of_its_import(tmp_path: Path, device: str) -> None:
    configs: dict[str, dict[str, Any]] = {
        **dict(list(TOYS.items())[::4]),
        "mamba": TOYS["mamba: nothing else"],
    }
    plain = TOYS["full: grouped heads"]
    configs |= {"fp8": plain | FP8, "awq": plain | AWQ, "float32": plain | {"torch_dtype": "float32"}}
    differ = {}
    with ImportSession() as session:
        for number, (name, config) in enumerate(configs.items()):
            folder = tmp_path / f"toy-{number}"
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(config))
            options: Any = {"device": device, "backend": "vllm"}
            made = import_model(str(folder), folder=tmp_path / "models", session=session, **options)
            stored = Store(tmp_path / "models").load(made.name)
            fit = stored.need_receipt().fit
            if fit is None or "estimate" not in fit:
                continue
            then = ran(Load(**{**fit["estimate"]["load"], "uncounted": ()}))
            choice = as_written(stored, local.resolve(str(folder), folder), named(device))
            assert choice.fit is not None
            now = ran(choice.fit.load)
            differ |= {f"{name}: {k}": (then[k], now[k]) for k in then.keys() - FREE if then[k] != now[k]}
    assert differ == {}


def test_a_default_of_the_engine_is_a_value_where_the_document_has_none() -> None:
    data = {"max_model_len": 4096, "engine_args": {"enable_prefix_caching": False, "max_num_seqs": 8}}
    defaults = {"engine_args.enable_prefix_caching": True, "engine_args.enable_chunked_prefill": True}
    made = engine_request(data, defaults, without={"engine_args.max_num_seqs"})
    assert made.get("engine_args.enable_prefix_caching") is False
    assert made.get("engine_args.enable_chunked_prefill") is True
    assert made.get("engine_args.max_num_seqs") is None
    assert made.is_fixed("max_model_len")
    assert not made.is_fixed("engine_args.enable_chunked_prefill")
