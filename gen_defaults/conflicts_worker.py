"""Runs in an environment of vLLM: prints what its validators refuse together, as JSON.

vLLM makes its configuration for small models without weights, on processors or on a pretended card. Nothing
is loaded and nothing calculated.

    python conflicts_worker.py cuda < REGISTRY      # a file of importer/document/arguments_of
"""

# mypy: ignore-errors
import json
import logging
import os
import re
import sys
import tempfile
import types
from pathlib import Path

DENSE = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "head_dim": 16,
    "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 4,
    "vocab_size": 128, "max_position_embeddings": 4096, "torch_dtype": "float16",
}  # fmt: skip
EXPERTS = DENSE | {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "moe_intermediate_size": 64,
    "num_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16",
}  # fmt: skip
MODELS = {"experts": EXPERTS, "dense": DENSE}  # the first is asked about everything
CARD, MEMORY = (9, 0), 141 << 30
KERNELS = ("_C_stable_libtorch", "_C", "_moe_C", "_moe_C_stable_libtorch")
NUMBERS = (1, 2)  # tried for a whole number that a refusal names
SKIPPED = ("model", "trust_remote_code", "skip_tokenizer_init", "model_impl", "runner", "convert")
METHOD, DEPRECATED = "quantization", ("allow_deprecated_quantization", True)


class Engine:
    """vLLM's own making of a configuration, on a machine without a card."""

    def __init__(self, platform, folder):
        os.environ.update(VLLM_LOGGING_LEVEL="CRITICAL", HF_HUB_OFFLINE="1", VLLM_TARGET_DEVICE=platform)
        logging.disable(logging.CRITICAL)
        from vllm import platforms

        if platform == "cuda":
            for name in KERNELS:  # compiled for cards: stood in for, since nothing is calculated
                sys.modules[f"vllm.{name}"] = types.ModuleType(f"vllm.{name}")
            platforms._current_platform = _card()  # noqa: SLF001 - vLLM has no other way
        chosen = type(platforms.current_platform)
        chosen.check_and_update_config = classmethod(lambda _cls, _config: None)
        chosen.verify_quantization = classmethod(lambda _cls, _name: None)
        from vllm.engine.arg_utils import AsyncEngineArgs

        self.make, self.folder = AsyncEngineArgs, folder
        for name, config in MODELS.items():
            (folder / name).mkdir()
            (folder / name / "config.json").write_text(json.dumps(config), encoding="utf-8")

    def refusal(self, values, model="experts"):
        """Return vLLM's words against the values, a list of pairs; ``None`` where it takes them."""
        place = str(self.folder / model)
        try:
            self.make(model=place, skip_tokenizer_init=True, **dict(values)).create_engine_config()
        except Exception as error:
            return _words(error)
        return None

    def always(self, values):
        """Return whether the values are refused for every model."""
        return all(self.refusal(values, model) is not None for model in MODELS)


def _words(error):
    """Return the words of an error; of pydantic's, those of its first entry, without the values."""
    entries = getattr(error, "errors", None)
    text = str(next(iter(entries()), {}).get("msg", error)) if callable(entries) else str(error)
    return " ".join(text.split()) or type(error).__name__


def _card():
    """Return vLLM's platform of NVIDIA cards with the figures of one."""
    from vllm.platforms import cuda
    from vllm.platforms.interface import DeviceCapability

    class Pretended(cuda.NonNvmlCudaPlatform):
        get_device_capability = classmethod(lambda _cls, *_given, **_named: DeviceCapability(*CARD))
        get_device_name = classmethod(lambda _cls, *_given, **_named: "card")
        get_device_total_memory = classmethod(lambda _cls, *_given, **_named: MEMORY)
        device_count = classmethod(lambda _cls: 64)
        is_fully_connected = classmethod(lambda _cls, _ids: True)
        num_compute_units = classmethod(lambda _cls, *_given, **_named: 132)
        is_integrated_gpu = classmethod(lambda _cls, *_given, **_named: False)
        import_kernels = classmethod(lambda _cls: None)
        get_cuda_runtime_major = classmethod(lambda _cls: 13)

    return Pretended()


def values(registry):
    """Return every value of each switch and each choice but the default, as pairs."""
    return [
        (name, one)
        for name, row in registry["arguments"].items()
        if not row.get("server") and name not in SKIPPED
        for one in _choices(row["type"])
        if one != row.get("default", False if row["type"] == "bool" else None)
    ]


def _choices(kind):
    if kind == "bool":
        return [True, False]
    if isinstance(kind, dict):
        return kind.get("one_of") or next(filter(None, map(_choices, kind.get("any_of", ()))), [])
    return []


def required(engine, registry, value, words):
    """Return the arguments that a refusal names, where one of them, set, changes it, and the values that do.

    ``None`` in place of the values: any number does. Any other argument of the refusal may be another way.
    """
    spelt = re.findall(r"[\w-]+", words)
    named = {word.replace("-", "_").strip("_") for word in spelt} & set(registry["arguments"]) - {value[0]}
    for name in sorted(named, key=lambda one: words.replace("-", "_").find(one)):
        kind = registry["arguments"][name]["type"]
        numbers = kind in ("int", "size")
        tried = [True] if kind == "bool" else _choices(kind) or (NUMBERS if numbers else ())
        taken = [one for one in tried if engine.refusal([value, (name, one)]) != words]
        if taken:
            return [name, None if numbers else taken, sorted(named - {name})]
    return None


def exclusive(engine, accepted):
    """Return the pairs that are refused though each of the two is accepted.

    First a set of values grows that are accepted together. Then each value is compared with that set.
    """
    together, found = [], []
    for value in accepted:
        beside = [one for one in together if one[0] != value[0]]
        if len(beside) == len(together) and engine.refusal([*together, value]) is None:
            together.append(value)
    for value in accepted:
        beside = [one for one in together if one[0] != value[0]]
        against = _against(engine, value, beside) if value not in together else ()
        found += [[*other, *value] for other in against if engine.always([other, value])]
    return found


def _against(engine, value, others):
    """Yield each of ``others`` that a value is refused with."""
    if not others or engine.refusal([*others, value]) is None:
        return
    if len(others) == 1:
        yield others[0]
        return
    half = len(others) // 2
    yield from _against(engine, value, others[:half])
    yield from _against(engine, value, others[half:])


def main(platform):
    """Print required arguments, refused pairs, and methods that plain weights do not have."""
    registry = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(platform, Path(folder))
        base = engine.refusal([])
        if base is not None:
            raise SystemExit(base)
        every = values(registry)
        alone = {value: words for value in every if (words := engine.refusal([value])) is not None}
        requires = []
        for value, words in alone.items():
            needed = required(engine, registry, value, words) if engine.always([value]) else None
            requires += [[*value, *needed]] if needed is not None else []
        pairs = exclusive(engine, [value for value in every if value not in alone])
        methods = [one for name, one in alone if name == METHOD]
        unmade = [one for one in methods if engine.always([(METHOD, one), DEPRECATED])]
    data = {"alone": [*alone], "requires": requires, "exclusive": pairs, "of_checkpoint": unmade}
    sys.stdout.write("\nRESULT " + json.dumps(data) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
