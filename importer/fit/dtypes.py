"""Bytes of a value: of weights, of keys and values, of states."""

from __future__ import annotations

from fractions import Fraction

from importer.fit.result import Load
from importer.fit.shape import Shape

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float": 4, "half": 2}
# vLLM's names for quantised keys and values: bytes of a value, and of the scale for each head and token.
QUANTISED: dict[str, tuple[Fraction, int]] = {
    "int8_per_token_head": (Fraction(1), 4),
    "fp8_per_token_head": (Fraction(1), 4),
    "int4_per_token_head": (Fraction(1, 2), 4),
    "nvfp4": (Fraction(9, 16), 0),  # half a byte, and a scale of one byte for 16 values
    "nvfp4_4over6": (Fraction(9, 16), 0),
}


def computed(shape: Shape, load: Load) -> str:
    """The dtype of the calculation; an engine takes bfloat16 where the checkpoint is in 32 bits."""
    if load.dtype != "auto":
        return load.dtype
    return "bfloat16" if shape.dtype in {None, "float32"} else str(shape.dtype)


def value_bytes(shape: Shape, load: Load) -> int:
    """Bytes of one value of the calculation."""
    return BYTES.get(computed(shape, load), 2)


def kv_name(shape: Shape, load: Load) -> str:
    """What keys and values are kept in: as asked, as the checkpoint wants, else as is calculated."""
    if load.kv_dtype != "auto":
        return load.kv_dtype
    return shape.kv_dtype or computed(shape, load)


def kv_bytes(shape: Shape, load: Load) -> tuple[Fraction, int]:
    """Bytes of one value, and of one scale, which stands once for each head's key and once for its value."""
    name = kv_name(shape, load)
    if name in QUANTISED:
        return QUANTISED[name]
    if name in BYTES:
        return Fraction(BYTES[name]), 0
    return (Fraction(1), 0) if name.startswith("fp8") else (Fraction(value_bytes(shape, load)), 0)
