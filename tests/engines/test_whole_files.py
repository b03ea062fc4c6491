"""Files that an engine refuses: away or cut is the machine's doing, whole is their contents'."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer.engines import model_folder, start_trials
from importer.engines.deaths import CONFIGURATION, ENVIRONMENT, DeathCause, Died
from importer.reasons import Reason
from importer.signals.comparison import INDEX
from importer.signals.reasons import WeightDoubt, WeightFault
from tests.hub.test_headers import shard

CAUSE = DeathCause(Reason(Died.TOKENIZER_BROKEN, words="has an empty prompt"), ENVIRONMENT)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text('{"model": {}}')
    return tmp_path


def test_whole_files_are_their_contents_fault(model: Path) -> None:
    found = model_folder.judged(CAUSE, model)
    assert (found.reason.kind, found.attribution) == (Died.CONTENTS_REFUSED, "configuration")
    assert found.reason.fields["problem"] == CAUSE.reason


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_file_that_is_away_is_the_machines(model: Path, name: str) -> None:
    (model / name).unlink()
    assert model_folder.judged(CAUSE, model) == CAUSE


@pytest.mark.parametrize("data", [b'{"model": ', b"\xff\xfe{}", b""])
def test_a_cut_file_is_the_machines(model: Path, data: bytes) -> None:
    (model / "generation_config.json").write_bytes(data)
    assert model_folder.judged(CAUSE, model) == CAUSE


def test_a_parser_that_the_release_has_is_away_from_the_environment() -> None:
    away = DeathCause(Reason(Died.TOKENIZERS_PARSER, parser="json_tools"), "configuration")
    found = start_trials.half_installed(away, "mlx")
    assert (found.reason.kind, found.attribution) == (Died.NO_MODULE, "environment")
    unknown = DeathCause(Reason(Died.TOKENIZERS_PARSER, parser="nobody_has_it"), "configuration")
    assert start_trials.half_installed(unknown, "mlx") == unknown


UNTOLD = DeathCause(Reason(Died.QUANTISATION_UNTOLD), CONFIGURATION)
UNKNOWN = DeathCause(Reason(Died.LAST_WORDS, words="KeyError: 'a'"))


def test_a_death_over_tensors_is_held_against_the_folder(model: Path) -> None:
    """Neither the config nor the document is at fault for a file that lies there or is away."""
    packed = {"model.layers.0.a.weight": 8, "model.layers.0.a.scales": 8}
    (model / "model.safetensors").write_bytes(shard(packed))
    (model / "config.json").write_text('{"model_type": "qwen3"}')
    assert model_folder.compared(UNTOLD, model, "mlx") == UNTOLD, "the config lacks its quantization"
    (model / "config.json").write_text('{"quantization": {"bits": 4, "group_size": 64}}')
    (model / "model-old.safetensors").write_bytes(shard({"model.layers.0.b.scales": 8}))
    (model / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(packed, "model.safetensors")}))
    stray = model_folder.compared(UNTOLD, model, "mlx")
    assert (stray.reason.kind, stray.attribution) == (Died.FILES_DISAGREE, ENVIRONMENT)
    assert stray.reason.fields["finding"].kind is WeightDoubt.STRAY
    assert model_folder.compared(UNTOLD, model, "vllm-cpu") == UNTOLD, "vLLM loads what the index names"
    assert model_folder.compared(UNKNOWN, model, "mlx") == UNKNOWN, "an engine may pass over the file"
    (model / "model.safetensors").write_bytes(shard(packed)[:-3])
    cut = model_folder.compared(UNKNOWN, model, "vllm-cpu")
    assert cut.attribution == ENVIRONMENT
    assert cut.reason.fields["finding"].kind is WeightFault.BROKEN
