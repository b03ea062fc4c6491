"""Bytes of quantised parameters, their blocks of scales, and the roles that stay unquantised."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction

from importer.frozen import frozen
from importer.hub.snapshot import listed, mapping
from importer.hub.snapshot import whole as whole_snapshot
from importer.memory.config_keys import whole
from importer.memory.layers import Part, Role
from importer.signals.architecture import text_config
from importer.signals.quantisation import MLX

ALWAYS: frozenset[Role] = frozenset({"norm", "router", "tower"})  # unquantised in every scheme
LEFT_OUT = (
    "modules_to_not_convert",
    "ignore",
    "exclude_modules",
    "ignored_layers",
    "exclude",
    "skip_modules",
)
# Words in the names of modules, and the role of their parameters; the first match counts.
NAMES: tuple[tuple[str, Role], ...] = (
    (r"lm_head|(?<![a-z_])head(?![a-z_])", "head"),
    (r"embed_tokens|wte|word_embeddings", "embedding"),
    (r"mtp|nextn", "draft"),
    (r"visual|vision|audio|multi_modal|mm_projector", "tower"),
    (r"linear_attn|mamba|mixer|conv", "state"),
    (r"shared_expert", "shared"),
    (r"attn|attention", "attention"),
    (r"experts", "experts"),
    (r"gate$|router|norm|bias", "router"),
    (r"mlp|feed_forward|ffn", "mlp"),
)
LAYER = re.compile(r"layers?[._](\d+)")
MOST_NAMES = 20_000


@frozen
class Scheme:
    """A scheme of quantisation.

    ``bits``     of one quantised parameter, scales included.
    ``left``     the unquantised share of a role.
    ``special``  roles with bits of their own (MLX's recipes, four-bit experts beside eight-bit layers).
    """

    name: str
    bits: Fraction
    left: Mapping[Role, Fraction] = field(default_factory=dict)
    special: Mapping[Role, Fraction] = field(default_factory=dict)
    all_roles: bool = False

    def size(self, part: Part, plain: int) -> int:
        """Return the bytes of a part; an unquantised parameter has ``plain`` bytes."""
        if part.role in ALWAYS or (part.role in {"embedding", "head"} and not self.all_roles):
            return part.count * plain
        left = self.left.get(part.role, Fraction(0))
        bits = self.special.get(part.role, self.bits)
        return int(part.count * (left * plain + (1 - left) * bits / 8))


def sizes(parts: Iterable[Part], scheme: Scheme | None, plain: int) -> int:
    """Return the bytes of all parts as published; equal parts, or a counter's, are calculated once."""
    return sum(
        number * (part.count * plain if scheme is None else scheme.size(part, plain))
        for part, number in Counter(parts).items()
    )


def scheme(
    config: Mapping[str, object], text: Mapping[str, object], modelopt: Mapping[str, object], layers: int
) -> Scheme | None:
    """Return the scheme of a checkpoint, or ``None`` for unquantised parameters."""
    for owner in (config, text):
        for name in ("quantization_config", "compression_config", "quantization"):
            block = owner.get(name)
            if isinstance(block, Mapping) and (parsed := _read(block, layers)) is not None:
                return _expert_bits(parsed, text)
    block = modelopt.get("quantization")
    return _read(block, layers) if isinstance(block, Mapping) else None


def _read(block: Mapping[str, object], layers: int) -> Scheme | None:
    inner = block.get("quantization")
    block = {**block, **inner} if isinstance(inner, Mapping) else block
    method = " ".join(str(w) for w in (block.get("quant_method"), block.get("quant_algo")) if w).lower()
    left = _left(block, layers)
    if method == "mxfp4":
        return Scheme(method, _float(4, 32), {**left, "attention": Fraction(1), "mlp": Fraction(1)})
    if method == "bitsandbytes":
        return Scheme(method, _bitsandbytes(block), left)
    weights = _weights(block)
    if weights is not None:
        return Scheme(method or "compressed-tensors", weights, left)
    if "fp4" in method:
        return Scheme(method, _float(4, 16), left)
    if "mixed" in method:
        return Scheme(method, _mixed(block), left)
    if "fp8" in method or method in {"fbgemm_fp8", "eetq"}:
        return Scheme(method, Fraction(8) + Fraction(32, 128 * 128), left)
    bits, group = whole(block.get("bits") or block.get("w_bit")), whole(block.get("group_size"))
    if bits is None or not 1 <= bits <= 16:
        return None
    if not method:
        return _mlx(block, bits, group or 64, layers)
    zeros = bits if block.get("zero_point") is not False else 0
    return Scheme(method, bits + (Fraction(16 + zeros, group) if group else Fraction(0)), left)


def _float(bits: int, group: int) -> Fraction:
    """Return the bits of a value with one scale of eight bits for each group."""
    return bits + Fraction(8, group)


def _bitsandbytes(block: Mapping[str, object]) -> Fraction:
    """Return four bits and a scale for 64 values; with double quantisation the scale has eight bits."""
    if block.get("load_in_4bit") is False or block.get("load_in_8bit") is True:
        return Fraction(8)
    return Fraction(4) + Fraction(8 if block.get("bnb_4bit_use_double_quant") else 32, 64)


def _weights(block: Mapping[str, object]) -> Fraction | None:
    """Return the bits of compressed-tensors and Quark for a group of layers; of several, the narrowest."""
    groups = [mapping(one).get("weights") for one in mapping(block.get("config_groups")).values()]
    return min((b for one in (*groups, _quark(block)) if (b := _group(one)) is not None), default=None)


def _group(weights: object) -> Fraction | None:
    if not isinstance(weights, Mapping):
        return None
    bits, group = whole(weights.get("num_bits")), whole(weights.get("group_size"))
    if not bits or bits > 16:
        return None
    scale = 8 if weights.get("type") == "float" and bits == 4 else 16
    zeros = 0 if weights.get("symmetric") is not False else bits
    return bits + (Fraction(scale + zeros, group) if group else Fraction(0))


def _quark(block: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the weights of AMD's Quark in compressed-tensors' form; Quark has a dtype's name instead."""
    weights = mapping(mapping(block.get("global_quant_config")).get("weight"))
    dtype = str(weights.get("dtype") or "")
    digits, kind = re.search(r"(\d{1,4})", dtype), "float" if dtype.startswith("fp") else "int"
    return (
        {"num_bits": int(digits[1]), "type": kind, "group_size": weights.get("group_size")}
        if digits
        else None
    )


def _mixed(block: Mapping[str, object]) -> Fraction:
    """Return the bits of ModelOpt's mixed precision: four if any layer has them, else eight."""
    layers = mapping(block.get("quantized_layers")).values()
    algorithms = {str(mapping(one).get("quant_algo")) for one in layers}
    return _float(4, 16) if any("FP4" in name for name in algorithms) else Fraction(8)


def _mlx(block: Mapping[str, object], bits: int, group: int, layers: int) -> Scheme:
    """Return MLX's scheme: embeddings and head are quantised too, and modules have settings of their own."""

    def cost(own: Mapping[str, object]) -> Fraction:
        each, wide = whole(own.get("bits")) or bits, whole(own.get("group_size")) or group
        scales = 8 if str(own.get("mode", block.get("mode"))) in {"mxfp4", "nvfp4", "mxfp8"} else 32
        return each + Fraction(scales, wide or 64)

    shares: dict[Role, list[Fraction]] = {}
    left: dict[Role, set[str]] = {}
    for name, own in list(block.items())[:MOST_NAMES]:
        role = _role(name)
        if role is not None and isinstance(own, Mapping):
            shares.setdefault(role, []).append(cost(own))
        elif role is not None and own is False:
            left.setdefault(role, set()).add(_number(name))
    usual = cost({})
    special = {role: _mean(costs, usual, _expected(role, layers)) for role, costs in shares.items()}
    shares_left = {role: _share(numbers, layers) for role, numbers in left.items()}
    return Scheme(MLX, usual, shares_left, special, all_roles=True)


def _mean(costs: list[Fraction], usual: Fraction, expected: int) -> Fraction:
    """Return the mean bits of a role; ``costs`` are those of the modules with their own settings."""
    share = min(Fraction(1), Fraction(len(costs), expected))
    return usual + (sum(costs, Fraction(0)) / len(costs) - usual) * share


def _expected(role: Role, layers: int) -> int:
    """Return the approximate number of modules of a role in a model."""
    return 1 if role in {"embedding", "head"} else max(layers, 1) * (4 if role == "attention" else 3)


def _left(block: Mapping[str, object], layers: int) -> dict[Role, Fraction]:
    """Return the share of each role in the lists of unquantised modules."""
    named: dict[Role, set[str]] = {}
    for key in LEFT_OUT:
        for name in listed(block.get(key))[:MOST_NAMES]:
            if (role := _role(name)) is not None:
                named.setdefault(role, set()).add(_number(name))
    return {role: _share(numbers, layers) for role, numbers in named.items()}


def _share(numbers: set[str], layers: int) -> Fraction:
    return Fraction(1) if "" in numbers else min(Fraction(1), Fraction(len(numbers), max(layers, 1)))


def _number(name: object) -> str:
    """Return the number of the layer in a module's name, or an empty text."""
    match = LAYER.search(str(name))
    return match[1] if match else ""


def _role(name: object) -> Role | None:
    if not isinstance(name, str) or len(name) > 1000:
        return None
    return next((role for words, role in NAMES if re.search(words, name)), None)


def _expert_bits(parsed: Scheme, text: Mapping[str, object]) -> Scheme:
    """Return the scheme with DeepSeek V4's experts in four bits beside layers in eight."""
    if text.get("expert_dtype") != "fp4":
        return parsed
    return Scheme(
        parsed.name, parsed.bits, parsed.left, {**parsed.special, "experts": _float(4, 32)}, parsed.all_roles
    )


MOST_SIDES = 16  # of a block in which weights share a scale; real ones have two


def scale_block(config: Mapping[str, object]) -> int | None:
    """Return the number of weights that share a scale along the spread side, or ``None``."""
    block = mapping(config.get("quantization_config") or text_config(config).get("quantization_config"))
    weights = mapping(mapping(mapping(block.get("config_groups")).get("group_0")).get("weights"))
    sizes = [block.get("weight_block_size"), block.get("group_size")]
    sizes += [weights.get("block_structure"), weights.get("group_size")]
    flat = [n for value in sizes for n in (value[:MOST_SIDES] if isinstance(value, list) else [value])]
    return max((n for v in flat if (n := whole_snapshot(v, 2))), default=None)
