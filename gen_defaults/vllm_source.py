"""The abilities of a version of vLLM, read from its released sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from gen_defaults.syntax import (
    Classes,
    Sources,
    assigned,
    compared,
    functions,
    keys,
    literal,
    returned,
    strings,
)

REGISTRY = "vllm/model_executor/models/registry.py"
SERVED = ("_TEXT_GENERATION_MODELS", "_MULTIMODAL_MODELS", "_TRANSFORMERS_SUPPORTED_MODELS")
# Tables of architectures that pool, over the versions, and what the models in each return.
POOLING = {
    "_EMBEDDING_MODELS": "embed",
    "_LATE_INTERACTION_MODELS": "late-interaction",
    "_CROSS_ENCODER_MODELS": "classify",
    "_SEQUENCE_CLASSIFICATION_MODELS": "classify",
    "_TOKEN_CLASSIFICATION_MODELS": "token-classify",
    "_REWARD_MODELS": "reward",
}
QUANTISATION = "vllm/model_executor/layers/quantization/"
CONFIGS = "vllm/transformers_utils/config.py"
LENGTHS = "vllm/transformers_utils/model_arch_config_convertor.py"
MODEL = "vllm/config/model.py"
POOLER = "vllm/config/pooler.py"
SPECULATION = "vllm/config/speculative.py"
RUNNER = "vllm/v1/worker/cpu_model_runner.py"
ATTENTION = ("vllm/model_executor/layers/attention/attention.py", "vllm/attention/layer.py")
LOCK = re.compile(r"^transformers==(\S+)", re.MULTILINE)
# importer's names of schemes, and the classes that load them; of several, the least demanding counts.
SCHEMES = {
    "w4a16": ("CompressedTensorsWNA16",),
    "w8a16": ("CompressedTensorsWNA16",),
    "w8a8-int8": ("CompressedTensorsW8A8Int8",),
    "w4a8": ("CompressedTensorsWNA8Int", "CompressedTensorsW4A8Int"),
    "fp8": ("CompressedTensorsW8A8Fp8", "CompressedTensorsW8A16Fp8"),
    "fp8-w8a16": ("CompressedTensorsW8A16Fp8",),
    "nvfp4": ("CompressedTensorsW4A4Fp4",),
    "nvfp4a16": ("CompressedTensorsW4A16Fp4", "CompressedTensorsW4A4Fp4"),
    "mxfp4": ("CompressedTensorsW4A16Mxfp4", "CompressedTensorsW4A4Mxfp4"),
    "mxfp8": ("CompressedTensorsW8A8Mxfp8",),
}


def is_needed(path: str) -> bool:
    """Return whether the file is needed."""
    return path.startswith(
        (
            "vllm/model_executor/models/",
            "vllm/models/",
            QUANTISATION,
            "vllm/transformers_utils/",
            "requirements/",
        )
    ) or path in {MODEL, POOLER, SPECULATION, RUNNER, *ATTENTION}


def transformers(sources: Sources) -> str:
    """Return the version of transformers that its own tests are locked to."""
    locked = (LOCK.search(t) for p, t in sorted(sources.items()) if p.startswith("requirements/"))
    return next(match[1] for match in locked if match)


def abilities(sources: Sources) -> dict[str, Any]:
    """Return all abilities, in the order of the file."""
    python = {path: text for path, text in sources.items() if path.endswith(".py")}
    lengths = f"{python.get(LENGTHS, '')}\n{python[MODEL]}"
    override = next(functions(python[SPECULATION], "hf_config_override"))
    return {
        "architectures": architectures(python),
        "pooling": pooling(python[REGISTRY]),
        "pooler": pooler(python),
        "transcribes": transcribes(python),
        "removed": literal(python[REGISTRY], "_PREVIOUSLY_SUPPORTED_MODELS", {}),
        "config_types": sorted({*keys(assigned(python[CONFIGS], "_CONFIG_REGISTRY"))}),
        "methods": methods(python),
        "deprecated": literal(_quantisation(python), "DEPRECATED_QUANTIZATION_METHODS", []),
        "schemes": schemes(python),
        "context_keys": literal(lengths, "possible_keys", []),
        "unscaled_ropes": sorted(_unscaled(python[MODEL])),
        "yarn_from_original": "derived_max_model_len = rp['original_max_position_embeddings']"
        in ast.unparse(next(functions(python[MODEL], "_get_and_verify_max_len"))),
        "mtp_types": sorted(compared(override, "model_type")),
        "mtp_architectures": sorted(compared(override, "architectures") | compared(override, "arch")),
        "drafts_on_processors": "spec decode is not supported" not in python[RUNNER],
        "prefix_caching": prefix_caching(python[MODEL]),
        "takes_kv_scheme": any(
            "'kv_cache_scheme'" in ast.unparse(ast.parse(python.get(p, ""))) for p in ATTENTION
        ),
    }


def architectures(sources: Sources) -> dict[str, list[str]]:
    """Return every architecture that generates, with what is special: ``hybrid``, ``image``, ``image:1`` …"""
    classes = Classes.of({p: t for p, t in sources.items() if "/models/" in p})
    classes_by_name: dict[str, tuple[str, str]] = {}
    for table in SERVED:
        classes_by_name |= literal(sources[REGISTRY], table, {})
    return {
        name: [*_traits(classes, cls), *_modalities(classes, cls)]
        for name, (_, cls) in sorted(classes_by_name.items())
    }


def pooling(registry: str) -> dict[str, str]:
    """Return every architecture that pools and does not generate, and what it returns."""
    generates = {name for table in SERVED for name in keys(assigned(registry, table))}
    found: dict[str, str] = {}
    for table, returned_value in POOLING.items():
        node = assigned(registry, table)
        for name in keys(node) if node else ():
            if name not in generates and not name.islower():  # a module's name beside the class's
                found.setdefault(name, returned_value)
    return dict(sorted(found.items()))


def pooler(sources: Sources) -> dict[str, list[str]]:
    """Return the settings of a pooler and its ways for a whole text, and what it reads of the files of
    sentence-transformers: the modules by their types, and ``pooling_mode`` where the newer form is known.
    """
    settings = next(Classes.of({POOLER: sources[POOLER]}).line("PoolerConfig"))
    fields = [ast.unparse(one.target) for one in settings.body if isinstance(one, ast.AnnAssign)]
    words = {*strings([ast.parse(sources[CONFIGS])])}
    return {
        "settings": sorted(fields),
        "ways": sorted(strings([assigned(sources[POOLER], "SequencePoolingType") or ast.Pass()])),
        "reads": sorted(word for word in words if word == "pooling_mode" or word.endswith(".Pooling")),
    }


def transcribes(sources: Sources) -> dict[str, str]:
    """Return every architecture that turns sound into text: ``only`` that, or ``also`` chat."""
    classes = Classes.of({p: t for p, t in sources.items() if "/models/" in p})
    served = {
        name: cls for table in SERVED for name, (_, cls) in literal(sources[REGISTRY], table, {}).items()
    }
    return {
        name: "only" if _is_only(classes, cls) else "also"
        for name, cls in sorted(served.items())
        if classes.is_a(cls, "SupportsTranscription")
    }


def _is_only(classes: Classes, cls: str) -> bool:
    """Return whether the class declares ``supports_transcription_only = True``."""
    return any(
        isinstance(statement, ast.Assign) and ast.unparse(statement) == "supports_transcription_only = True"
        for node in classes.line(cls)
        for statement in node.body
    )


def _traits(classes: Classes, cls: str) -> Iterator[str]:
    for base, trait in (("IsHybrid", "hybrid"), ("IsAttentionFree", "attention-free")):
        if classes.is_a(cls, base):
            yield trait


def _modalities(classes: Classes, cls: str) -> list[str]:
    info = next((i for node in classes.line(cls) if (i := _info(node))), None)
    limits: dict[str, int | None] = {}
    for method in classes.method(info, "get_supported_mm_limits") if info else ():
        for name, limit in _limits(method):
            limits.setdefault(name, limit)
        if "super()" not in ast.unparse(method):
            break
    always = {n: limit for n, limit in limits.items() if not (n.endswith("?") and n[:-1] in limits)}
    return [name if limit is None else f"{name}:{limit}" for name, limit in always.items()]


def _info(node: ast.ClassDef) -> str | None:
    """Return the class of ``@MULTIMODAL_REGISTRY.register_processor(…, info=Class)``."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("register_processor"):
            return next((ast.unparse(k.value) for k in decorator.keywords if k.arg == "info"), None)
    return None


def _limits(method: ast.FunctionDef) -> Iterator[tuple[str, int | None]]:
    """Yield each modality and its most items; a figure that depends on the model counts as none.

    ``name?`` is a modality that not every model of the architecture accepts.
    """
    sometimes = {id(n) for one in ast.walk(method) if isinstance(one, ast.If) for n in ast.walk(one)}
    for node in ast.walk(method):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = [*zip(node.keys, node.values, strict=True)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            pairs = [(node.targets[0].slice, node.value)]
        for key, value in pairs:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                most = value.value if isinstance(value, ast.Constant) else None
                yield key.value + "?" * (id(node) in sometimes), most if type(most) is int else None


def methods(sources: Sources) -> dict[str, int]:
    """Return the least compute capability of each quantisation, 75 for 7.5; 0 where the class has none."""
    classes = Classes.of({p: t for p, t in sources.items() if p.startswith(QUANTISATION) or "/models/" in p})
    text = _quantisation(sources)
    names = {*strings([table] if (table := assigned(text, "QuantizationMethods")) else [])}
    loaded: dict[str, str] = {}
    for function in functions(text, "get_quantization_config"):
        for node in ast.walk(function):
            if isinstance(node, ast.Dict):
                loaded |= {
                    k.value: ast.unparse(v)
                    for k, v in zip(node.keys, node.values, strict=True)
                    if isinstance(k, ast.Constant) and isinstance(k.value, str)
                }
    return {name: _capability(classes, loaded.get(name, "")) for name in sorted(names)}


def schemes(sources: Sources) -> dict[str, int]:
    """Return the least compute capability of each compressed-tensors scheme that a class loads."""
    classes = Classes.of({p: t for p, t in sources.items() if p.startswith(QUANTISATION)})
    classes_by_scheme = {
        name: [c for c in choices if c in classes.nodes] for name, choices in SCHEMES.items()
    }
    return {
        name: min(_capability(classes, c) for c in choices)
        for name, choices in classes_by_scheme.items()
        if choices
    }


def _capability(classes: Classes, cls: str) -> int:
    by_method = (returned(method) for method in classes.method(cls, "get_min_capability"))
    return min(next((numbers for numbers in by_method if numbers), [0]))


def prefix_caching(source: str) -> dict[str, bool]:
    """Return whether prefix caching is on by default, for each kind of attention that generates."""
    function = next(functions(source, "is_prefix_caching_supported"))
    chain = next((n for n in function.body if isinstance(n, ast.If)), None)
    answers: dict[str, bool] = {}
    rest = chain.orelse if chain else []
    while rest:
        node = next((n for n in rest if isinstance(n, ast.If)), None)
        if node is None:
            return answers | {"decoder": _answer(rest)}
        answers[next(strings([node.test]))] = _answer(node.body)
        rest = node.orelse
    return answers


def _answer(body: list[ast.stmt]) -> bool:
    return next(bool(ast.literal_eval(n.value)) for n in body if isinstance(n, ast.Return) and n.value)


def _unscaled(source: str) -> set[str]:
    """Return the kinds of rope whose factor does not lengthen the context again."""
    function = next(functions(source, "_get_and_verify_max_len"))
    lists = (n for n in ast.walk(function) if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.NotIn))
    return {text for node in lists for text in strings([node]) if "rope_type" in ast.unparse(node)}


def _quantisation(sources: Sources) -> str:
    return sources[f"{QUANTISATION}__init__.py"]
