"""Quantisation of the weights: method, scheme, bits, and the dtype of the KV cache.

A scheme has the name that engines and re-uploads use: ``w4a16`` (weights in 4 bits, the rest in 16),
``w8a8-int8``, ``fp8-block``, ``nvfp4``, ``mxfp4``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, mapping, whole
from importer.reasons import Reason
from importer.signals.architecture import FILE, config_of, text_config
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import QuantReason

MODELOPT_FILE = "hf_quant_config.json"
OWN_FILE = re.compile(r"quant(?:ize|ization)?_config\.json")  # of AutoGPTQ, AutoAWQ and AutoRound
# Keys that one of the two tools alone writes, for files without ``quant_method``.
OF_TOOLS = {
    "awq": ("w_bit", "q_group_size", "zero_point"),
    "gptq": ("desc_act", "damp_percent", "true_sequential"),
}
NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,63}", re.ASCII)  # spelling of a method or an algorithm
MLX = "mlx"
# ModelOpt's algorithms, and the scheme that each is.
ALGORITHMS = {
    "FP8": "fp8-static",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8-dynamic",
    "FP8_PB_WO": "fp8-block",
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4a16",
    "MXFP8": "mxfp8",
    "MIXED_PRECISION": "mixed",
}
QUARK = {"fp8_e4m3": "fp8", "fp4": "mxfp4", "int4": "w4a16", "uint4": "w4a16", "int8": "w8a8-int8"}
BITS = re.compile(r"^(?:w|nvfp|mxfp|fp|int|nf|affine-)(\d+)")
CACHES = ("kv_cache_scheme", "kv_cache_quant_algo")
VARIANTS = "sisters"  # the key of the quantised repositories that a card names
Scheme = tuple[str | None, int | None]  # scheme, group size


@frozen
class Quantised:
    """The quantisation that the files declare.

    ``method``  value of ``quant_method`` in lower case; ``mlx`` for MLX's own.
    ``scheme``  see above; ``None`` where the method has only one, or the scheme is unknown.
    ``cache``   dtype of the KV cache in vLLM's words: ``fp8``, ``nvfp4``.
    ``form``    the format of compressed-tensors.
    ``named``   whether the files have ``quant_method``; vLLM recognises the quantisation by it.
    """

    method: str
    scheme: str | None
    source: str
    quote: str
    group: int | None = None
    cache: str | None = None
    form: str | None = None
    named: bool = True

    @property
    def beside(self) -> bool:
        """Return whether a file of its own describes it, so that engines read it only by name."""
        return OWN_FILE.fullmatch(self.source) is not None

    @property
    def bits(self) -> int | None:
        """Return the bits of a weight, by the scheme."""
        match = BITS.match(self.scheme or "")
        return int(match[1]) if match else None

    @property
    def key(self) -> str:
        """Return ``method/scheme``, the key of trials."""
        return f"{self.method}/{self.scheme}"

    @property
    def label(self) -> str:
        """Return the name for messages, such as ``awq (w4a16)``."""
        return self.method if self.scheme in (None, self.method) else f"{self.method} ({self.scheme})"


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return evidence for the method and for the scheme."""
    quantised = read(snapshot)
    if quantised is None:
        return []
    kind = QuantReason.OWN_FILE if quantised.beside else QuantReason.METHOD
    reason = Reason(kind, file=quantised.source, quote=quantised.quote)
    facts = [
        Evidence(Rule.CONFIG, "quantization", quantised.method, quantised.source, reason, quantised.quote)
    ]
    if quantised.scheme is not None:
        means = Reason(QuantReason.SCHEME, file=quantised.source, bits=quantised.bits, group=quantised.group)
        facts.append(
            Evidence(
                Rule.CONFIG, "quantization_scheme", quantised.scheme, quantised.source, means, quantised.quote
            )
        )
    return facts


def read(snapshot: Snapshot) -> Quantised | None:
    """Return the quantisation of the first block that names a method, MLX's first; ``None`` without any."""
    for block in _blocks(snapshot):
        quantised = _mlx(block)
        if quantised is not None:
            return quantised
    for block in _blocks(snapshot):
        quantised = _named(block)
        if quantised is not None:
            return quantised
    path, block = own_file(snapshot)
    return _modelopt_file(snapshot) or (_named(block, path) if path else None)


def own_file(snapshot: Snapshot) -> tuple[str, Mapping[str, object]]:
    """Return the file of a quantisation beside the config, and its block in the words of a config; else
    empty ones.
    """
    for path in filter(OWN_FILE.fullmatch, sorted(snapshot.texts)):
        block = own_object(snapshot, path)
        method = block.get("quant_method") or next(
            (tool for tool, keys in OF_TOOLS.items() if any(key in block for key in keys)), None
        )
        if method is not None:
            group = {"group_size": block["q_group_size"]} if "q_group_size" in block else {}
            return path, {**block, **group, "quant_method": method}
    return "", {}


def own_object(snapshot: Snapshot, path: str) -> Mapping[str, object]:
    """Return the object in a file beside the config; empty for a broken one."""
    try:
        return snapshot.json(path)
    except RepositoryError:
        return {}


def broken_files(snapshot: Snapshot) -> Iterator[tuple[str, object]]:
    """Yield the files beside the config that are not objects of JSON, and what is wrong with each."""
    for path in snapshot.texts:
        if path == MODELOPT_FILE or OWN_FILE.fullmatch(path):
            try:
                snapshot.json(path)
            except RepositoryError as error:
                yield path, error.details["problem"]


def has_block(snapshot: Snapshot) -> bool:
    """Return whether the config has a block of a quantisation, a known one or not."""
    return next(_blocks(snapshot), None) is not None


def _blocks(snapshot: Snapshot) -> Iterator[Mapping[str, object]]:
    config = config_of(snapshot)
    for key in ("quantization_config", "quantization", "compression_config"):
        block = config.get(key) or text_config(config).get(key)
        if isinstance(block, Mapping):
            yield block


def _mlx(block: Mapping[str, object]) -> Quantised | None:
    """Return MLX's quantisation: mlx-lm writes group size and bits, and no method."""
    size, bits = _count(block.get("group_size")), _count(block.get("bits"))
    if "quant_method" in block or size is None or bits is None:
        return None
    mode = block.get("mode")
    mode = mode.lower() if isinstance(mode, str) and NAME.fullmatch(mode) else "affine"
    scheme = f"affine-{bits}bit" if mode == "affine" else mode
    return Quantised(MLX, scheme, FILE, f"group_size: {size}, bits: {bits}, no quant_method", size)


def _named(block: Mapping[str, object], source: str = FILE) -> Quantised | None:
    name = block.get("quant_method")
    if not name:
        return _modelopt(block, source, named=False)
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        return None
    method, quote = name.lower().replace("compressed_tensors", "compressed-tensors"), f"quant_method: {name}"
    if method.startswith("modelopt"):
        return _modelopt(block, source, quote, method) or Quantised(method, None, source, quote)
    scheme, group = SCHEMES.get(method, _only)(block)
    form = block.get("format")
    cache = _cache(block.get("kv_cache_scheme")) if method == "compressed-tensors" else None
    return Quantised(method, scheme, source, quote, group, cache, form if isinstance(form, str) else None)


def _modelopt_file(snapshot: Snapshot) -> Quantised | None:
    """Return the quantisation in ModelOpt's own file; vLLM reads it where ``config.json`` has no block."""
    data = own_object(snapshot, MODELOPT_FILE)
    named = _producer(data) == "modelopt" or bool(
        mapping(data.get("quantization")).get("modelopt_quant_config")
    )
    return _modelopt(data, MODELOPT_FILE, named=named)


def _modelopt(
    block: Mapping[str, object], source: str, quote: str = "", method: str = "modelopt", *, named: bool = True
) -> Quantised | None:
    inner = mapping(block.get("quantization")) or block
    algorithm = inner.get("quant_algo")
    if not (isinstance(algorithm, str) and NAME.fullmatch(algorithm)):
        return None  # null: only the cache is quantised
    cache = next((c for b in (inner, block) for k in CACHES if (c := _cache(b.get(k)))), None)
    quote = f"{quote}, quant_algo: {algorithm}".removeprefix(", ")
    scheme = ALGORITHMS.get(algorithm.upper(), algorithm.lower())
    return Quantised(method, scheme, source, quote, _count(inner.get("group_size")), cache, named=named)


def _cache(value: object) -> str | None:
    """Return vLLM's name of the cache's dtype, for ``FP8`` or a scheme of 8 or 4 bits in floating point."""
    if isinstance(value, Mapping) and value.get("type") == "float":
        return {8: "fp8", 4: "nvfp4"}.get(_count(value.get("num_bits")) or 0)
    return {"FP8": "fp8", "NVFP4": "nvfp4"}.get(value.upper()) if isinstance(value, str) else None


def _only(_block: Mapping[str, object]) -> Scheme:
    return None, None


def _micro(block: Mapping[str, object]) -> Scheme:
    """Return the scheme of an OCP microscaling format: a scale for each 32 values."""
    return str(block["quant_method"]).lower(), 32


def _integer(block: Mapping[str, object]) -> Scheme:
    """Return the scheme of AWQ, GPTQ and AutoRound: bits, group size, and options that few kernels accept."""
    bits = _count(block.get("bits")) or _count(block.get("w_bit"))
    group = _count(block.get("group_size")) or _count(block.get("q_group_size"))
    if bits is None:
        return None, group
    awq = "-awq" if "awq" in str(block.get("packing_format", "")) else ""
    plain = block.get("quant_method") != "awq"
    odd = "-asym" if plain and block.get("sym") is False else awq
    return f"w{bits}a16{odd}{'-actorder' if block.get('desc_act') is True else ''}", group


def _fp8(block: Mapping[str, object]) -> Scheme:
    if isinstance(block.get("weight_block_size"), list):
        return ("fp8-block" if block.get("quant_algo") is None else "mixed"), None
    return ("fp8-static" if block.get("activation_scheme") == "static" else "fp8-dynamic"), None


def _bitsandbytes(block: Mapping[str, object]) -> Scheme:
    if block.get("load_in_4bit") is True:
        return ("fp4" if block.get("bnb_4bit_quant_type") == "fp4" else "nf4"), None
    return ("int8" if block.get("load_in_8bit") is True else None), None


def _quark(block: Mapping[str, object]) -> Scheme:
    weight = mapping(mapping(block.get("global_quant_config")).get("weight"))
    name = QUARK.get(str(weight.get("dtype")))
    inputs = mapping(mapping(block.get("global_quant_config")).get("input_tensors"))
    if name == "fp8":
        name = "fp8-dynamic" if inputs.get("is_dynamic") is True else "fp8-static"
    return name, _count(weight.get("group_size"))


def _torchao(block: Mapping[str, object]) -> Scheme:
    name = mapping(mapping(block.get("quant_type")).get("default")).get("_type", block.get("quant_type"))
    named = isinstance(name, str) and NAME.fullmatch(name)
    return (str(name).lower().removesuffix("config") if named else None), None


def _compressed(block: Mapping[str, object]) -> Scheme:
    groups = [g for g in mapping(block.get("config_groups")).values() if isinstance(g, Mapping)]
    group_schemes = [s for s in (_tensors(g, g.get("format") or block.get("format")) for g in groups) if s]
    sizes = [n for g in groups if (n := _count(mapping(g.get("weights")).get("group_size")))]
    schemes = tuple(dict.fromkeys(group_schemes))
    mixed = "mixed" if schemes else None
    return schemes[0] if len(schemes) == 1 else mixed, max(sizes, default=None)


def _tensors(group: Mapping[str, object], form: object) -> str | None:
    """Return the scheme of one group of compressed-tensors, by kinds and bits of weights and activations."""
    weights, inputs = mapping(group.get("weights")), group.get("input_activations")
    bits, size = _count(weights.get("num_bits")), _count(weights.get("group_size"))
    if bits is None:
        return None
    if weights.get("type") == "float":
        return _float(bits, size, weights, inputs, str(form))
    if not isinstance(inputs, Mapping):
        return f"w{bits}a16{'-asym' if weights.get('symmetric') is False else ''}"
    beside = _count(inputs.get("num_bits"))
    if inputs.get("type") == "float":
        return f"w{bits}a{beside}-fp8"
    return "w8a8-int8" if (bits, beside) == (8, 8) else f"w{bits}a{beside}"


def _float(
    bits: int, size: int | None, weights: Mapping[str, object], inputs: object, form: str
) -> str | None:
    if bits == 4:
        if form.startswith("mxfp4") or size == 32:
            return "mxfp4"
        return "nvfp4" if isinstance(inputs, Mapping) else "nvfp4a16"
    if bits != 8:
        return None
    if form.startswith("mxfp8") or size == 32:
        return "mxfp8"
    if not isinstance(inputs, Mapping):
        return "fp8-w8a16"
    if weights.get("strategy") == "block":
        return "fp8-block"
    return "fp8-static" if inputs.get("dynamic") is False else "fp8-dynamic"


SCHEMES = {
    "awq": _integer,
    "gptq": _integer,
    "auto-round": _integer,
    "fp8": _fp8,
    "bitsandbytes": _bitsandbytes,
    "quark": _quark,
    "torchao": _torchao,
    "compressed-tensors": _compressed,
    "mxfp4": _micro,
    "mxfp8": _micro,
}


def _producer(block: Mapping[str, object]) -> object:
    return mapping(block.get("producer")).get("name")


def _count(value: object) -> int | None:
    return whole(value, 1, 2**31 - 1)
