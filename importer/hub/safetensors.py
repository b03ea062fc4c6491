"""The header of a safetensors file: eight bytes that say how long it is, then JSON that names each tensor."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

PREFIX = 8  # bytes: the header's length, little endian
LONGEST = 16 * 1024 * 1024  # bytes of one header; shards with ten thousand tensors stay under 2 MiB
MOST_DIMENSIONS = 16
LARGEST = 2**56  # of a dimension or an offset
# Bits of one value, as the format's reference implementation lists them.
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64,
    "I64": 64, "U64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class Malformed(Exception):
    """Why a header cannot be believed, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: dtype as the file names it (``BF16``, ``F8_E4M3`` …), shape, bytes."""

    dtype: str
    shape: tuple[int, ...]
    size: int


def length(prefix: bytes, file_size: int | None) -> int:
    """How many bytes of JSON follow the first eight. Raises Malformed."""
    if len(prefix) < PREFIX:
        raise Malformed("it is shorter than the eight bytes that every file begins with")
    said = int.from_bytes(prefix[:PREFIX], "little")
    if said < 2:
        raise Malformed("its header is empty")
    if file_size is not None and PREFIX + said > file_size:
        raise Malformed(f"its header claims {said} bytes, and the file has {file_size}")
    if said > LONGEST:
        raise Malformed(f"its header claims {said} bytes, and {LONGEST} is the most that is read")
    return said


def parse(header: bytes, file_size: int | None) -> dict[str, Tensor]:
    """The tensors that the JSON names, in its order. Raises Malformed.

    Their bytes must lie one after the other, without gap or overlap, and fill a file of known size.
    """
    try:
        data = json.loads(header.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise Malformed("its header is not JSON") from None
    if not isinstance(data, dict):
        raise Malformed("its header is not an object")
    data.pop("__metadata__", None)
    placed = {name: _tensor(name, entry) for name, entry in data.items()}
    end = 0
    for begin, stop in sorted(span for _, span in placed.values()):
        if begin != end:
            raise Malformed(f"its tensors {'overlap' if begin < end else 'leave a gap'} at byte {begin}")
        end = stop
    held = None if file_size is None else file_size - PREFIX - len(header)
    if held is not None and end != held:
        raise Malformed(f"its tensors take {end} bytes, and the file has {held} for them")
    return {name: tensor for name, (tensor, _) in placed.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("its header names something twice")
    return found


def _tensor(name: str, entry: object) -> tuple[Tensor, tuple[int, int]]:
    """A tensor, and where its bytes begin and end."""
    shown = repr(name[:80])
    if not isinstance(entry, dict):
        raise Malformed(f"its header does not describe {shown}")
    dtype, shape, offsets = entry.get("dtype"), _numbers(entry, "shape"), _numbers(entry, "data_offsets")
    if not (isinstance(dtype, str) and dtype in BITS):
        raise Malformed(f"{shown} has the unknown dtype {str(dtype)[:20]!r}")
    if shape is None or len(shape) > MOST_DIMENSIONS:
        raise Malformed(f"{shown} has no usable shape")
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise Malformed(f"{shown} has no usable offsets")
    size = offsets[1] - offsets[0]
    if math.prod(shape) * BITS[dtype] != size * 8:
        raise Malformed(f"{shown} takes {size} bytes, which its shape and dtype do not")
    return Tensor(dtype, tuple(shape), size), (offsets[0], offsets[1])


def _numbers(entry: dict[str, Any], key: str) -> list[int] | None:
    value = entry.get(key)
    if not isinstance(value, list):
        return None
    usable = all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= LARGEST for n in value)
    return value if usable else None
