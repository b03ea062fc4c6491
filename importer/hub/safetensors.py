"""The header of a safetensors file: eight bytes with its length, then JSON that names each tensor."""

from __future__ import annotations

import json
import math
from typing import Any

from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.sentences import render

PREFIX = 8  # bytes: the header's length, little endian
LONGEST = 16 * 1024 * 1024  # bytes of one header; shards with ten thousand tensors stay under 2 MiB
MOST_VALUES = 1_000_000  # of one header, counted before the parse: about eight a tensor
MOST_DIMENSIONS = 16
LARGEST = 2**56  # of a dimension or an offset
# Bits of one value, from the format's reference implementation.
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64,
    "I64": 64, "U64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class HeaderReason(ReasonKind):
    """Reasons why a header is malformed."""

    BEYOND = "its header claims {said} bytes, and the file has {size}"
    LARGE = "its header is larger than importer reads"
    MALFORMED = "its header is not one of safetensors"
    ROOM = "its tensors take {taken} bytes, and the file has {held} for them"


class MalformedHeader(Exception):
    """A header is malformed."""

    def __init__(self, kind: HeaderReason, **fields: object) -> None:
        self.reason = Reason(kind, **fields)
        super().__init__(render(self.reason))


@frozen
class Tensor:
    """One tensor: dtype in the file's words (``BF16``, ``F8_E4M3`` …), shape, bytes."""

    dtype: str
    shape: tuple[int, ...]
    size: int


def length(prefix: bytes, file_size: int | None) -> int:
    """Return the number of bytes of JSON after the first eight.

    Raises MalformedHeader.
    """
    if len(prefix) < PREFIX:
        raise MalformedHeader(HeaderReason.MALFORMED)
    declared = int.from_bytes(prefix[:PREFIX], "little")
    if declared < 2:
        raise MalformedHeader(HeaderReason.MALFORMED)
    if file_size is not None and PREFIX + declared > file_size:
        raise MalformedHeader(HeaderReason.BEYOND, said=declared, size=file_size)
    if declared > LONGEST:
        raise MalformedHeader(HeaderReason.LARGE)
    return declared


def parse(header: bytes, file_size: int | None) -> dict[str, Tensor]:
    """Return the tensors that the JSON names, in its order.

    Their bytes must lie one after the other, without gap or overlap, and fill a file of known size.
    Raises MalformedHeader.
    """
    if sum(header.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise MalformedHeader(HeaderReason.LARGE)
    try:
        data = json.loads(header.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise MalformedHeader(HeaderReason.MALFORMED) from None
    if not isinstance(data, dict):
        raise MalformedHeader(HeaderReason.MALFORMED)
    data.pop("__metadata__", None)
    placed = {name: _tensor(entry) for name, entry in data.items()}
    end = 0
    for begin, stop in sorted(span for _, span in placed.values()):
        if begin != end:
            raise MalformedHeader(HeaderReason.MALFORMED)
        end = stop
    held = None if file_size is None else file_size - PREFIX - len(header)
    if held is not None and end != held:
        raise MalformedHeader(HeaderReason.ROOM, taken=end, held=held)
    return {name: tensor for name, (tensor, _) in placed.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise MalformedHeader(HeaderReason.MALFORMED)
    return unique


def _tensor(entry: object) -> tuple[Tensor, tuple[int, int]]:
    """Return a tensor, and the first and last offset of its bytes."""
    found: dict[str, object] = entry if isinstance(entry, dict) else {}
    dtype, shape = found.get("dtype"), _numbers(found, "shape")
    offsets = _numbers(found, "data_offsets") or []
    size = offsets[1] - offsets[0] if len(offsets) == 2 else -1
    if (
        isinstance(dtype, str) and dtype in BITS and shape is not None and len(shape) <= MOST_DIMENSIONS
        and size >= 0 and math.prod(shape) * BITS[dtype] == size * 8
    ):  # fmt: skip
        return Tensor(dtype, tuple(shape), size), (offsets[0], offsets[1])
    raise MalformedHeader(HeaderReason.MALFORMED)


def _numbers(entry: dict[str, object], key: str) -> list[int] | None:
    value = entry.get(key)
    if not isinstance(value, list):
        return None
    usable = all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= LARGEST for n in value)
    return value if usable else None
