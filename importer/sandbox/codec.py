"""A codec of values for a pipe: JSON in the shape of declared types, so only data crosses.

Dataclasses, enumerations, reasons, tuples, sets and mappings keep their types. A field of type ``Any`` or
``object`` holds JSON, reasons, enumerations, paths, tuples and mappings; their names are looked up in modules
of importer alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

from importer.errors import BRANCHES, ImporterError
from importer.reasons import Reason, ReasonKind

Change = Callable[[Any], Any]
PLAIN = (str, int, float, bool, NoneType)
MARK = "$"  # the key of an object for a value that JSON lacks


class CodecError(Exception):
    """A received value is not of the declared type, or a value to send has no JSON form."""


class Codec(NamedTuple):
    """Encoder and decoder of one type."""

    encode: Change
    decode: Change


def codec_of(kind: Any) -> Codec:
    """Return the codec of an annotated type."""
    return _codec(kind)


@cache
def _codec(kind: Any) -> Codec:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return _codec(Mapping[str, object])
    if kind is Any or kind is object:
        return Codec(_encode_free, _decode_free)
    if kind in PLAIN:
        return Codec(_same, _checked(kind))
    if origin is Literal:
        return Codec(_same, _one_of(arguments))
    if origin in (Union, UnionType):
        return _union(arguments)
    if kind is Reason:
        return Codec(_encode_reason, _decode_reason)
    if isinstance(kind, type) and issubclass(kind, Path):
        return Codec(str, Path)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Codec(_key, _kind) if kind is StrEnum else Codec(lambda v: v.value, kind)
    if is_dataclass(kind):
        return _dataclass(kind)
    return _collection(kind, origin or kind, arguments)


def _same(value: Any) -> Any:
    return value


def _checked(kind: type) -> Change:
    def decode(raw: Any) -> Any:
        if isinstance(raw, kind) or (kind is float and isinstance(raw, int)):
            return raw
        raise CodecError(f"{type(raw).__name__} in place of {kind.__name__}")

    return decode


def _one_of(values: Sequence[Any]) -> Change:
    def decode(raw: Any) -> Any:
        if raw in values:
            return raw
        raise CodecError(f"none of {values}")

    return decode


def _union(members: Sequence[Any]) -> Codec:
    """Return the codec of a union: ``X | None`` as X or null, JSON types unchanged, others numbered."""
    if all(m in PLAIN for m in members):
        return Codec(_same, _checked_any(tuple(members)))
    bare = [m for m in members if m is not NoneType]
    if len(bare) == 1:
        one = _codec(bare[0])
        return Codec(
            lambda v: None if v is None else one.encode(v), lambda r: None if r is None else one.decode(r)
        )
    each = [_codec(m) for m in members]

    def encode(value: Any) -> Any:
        number = next(i for i, m in enumerate(members) if isinstance(value, get_origin(m) or m))
        return [number, each[number].encode(value)]

    return Codec(encode, lambda raw: each[raw[0]].decode(raw[1]))


def _checked_any(kinds: tuple[type, ...]) -> Change:
    def decode(raw: Any) -> Any:
        if isinstance(raw, kinds):
            return raw
        raise CodecError(f"{type(raw).__name__} in place of {kinds}")

    return decode


def _dataclass(kind: Any) -> Codec:
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind) if f.init]  # the others are computed
    each = [_codec(hints[name]) for name in names]
    encoders = [(name, one.encode) for name, one in zip(names, each, strict=True)]
    decoders = [one.decode for one in each]

    def encode(value: Any) -> Any:
        return [change(getattr(value, name)) for name, change in encoders]

    def decode(raw: Any) -> Any:
        return kind(*[change(r) for change, r in zip(decoders, raw, strict=True)])

    return Codec(encode, decode)


def _collection(kind: Any, origin: Any, arguments: Sequence[Any]) -> Codec:
    if not isinstance(origin, type):
        raise CodecError(f"{kind} has no form")
    if issubclass(origin, Mapping):
        key, value = (_codec(a) for a in (arguments or (Any, Any)))
        if arguments and arguments[0] is str:
            return Codec(
                lambda v: {k: value.encode(i) for k, i in v.items()},
                lambda r: {k: value.decode(i) for k, i in r.items()},
            )
        return Codec(
            lambda v: [[key.encode(k), value.encode(i)] for k, i in v.items()],
            lambda r: {key.decode(k): value.decode(i) for k, i in r},
        )
    if origin is tuple and arguments[-1:] != (Ellipsis,):
        each = [_codec(a) for a in arguments]
        return Codec(
            lambda v: [c.encode(i) for c, i in zip(each, v, strict=True)],
            lambda r: tuple(c.decode(i) for c, i in zip(each, r, strict=True)),
        )
    if issubclass(origin, Sequence | AbstractSet):
        inner = _codec(arguments[0] if arguments else Any)
        made = origin if origin in (tuple, frozenset, set) else list
        ordered = _in_order if issubclass(origin, AbstractSet) else list
        return Codec(
            lambda v: ordered(inner.encode(i) for i in v), lambda r: made([inner.decode(i) for i in _list(r)])
        )
    raise CodecError(f"{kind} has no form")


def _in_order(encoded: Iterable[Any]) -> list[Any]:
    """Return the members of a set in one order, so that equal values have equal forms in every process."""
    return sorted(encoded, key=repr)


def _list(raw: Any) -> list[Any]:
    if isinstance(raw, list):
        return raw
    raise CodecError(f"{type(raw).__name__} in place of a list")


def _encode_free(value: Any) -> Any:
    if isinstance(value, Enum):
        return {MARK: "enum", "of": _key(value)}
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, list):
        return [_encode_free(v) for v in value]
    if isinstance(value, Mapping):
        if MARK not in value and all(type(k) is str for k in value):
            return {k: _encode_free(v) for k, v in value.items()}
        return {MARK: "map", "of": [[_encode_free(k), _encode_free(v)] for k, v in value.items()]}
    if isinstance(value, Reason):
        return {MARK: "reason", "of": _encode_reason(value)}
    if isinstance(value, Path):
        return {MARK: "path", "of": str(value)}
    if isinstance(value, tuple):
        return {MARK: "tuple", "of": [_encode_free(v) for v in value]}
    if isinstance(value, AbstractSet):
        return {MARK: "set", "of": _in_order(map(_encode_free, value))}
    raise CodecError(f"{type(value).__name__} has no form")


def _decode_free(raw: Any) -> Any:
    if isinstance(raw, list):
        return [_decode_free(r) for r in raw]
    if not isinstance(raw, dict):
        return raw
    if MARK not in raw:
        return {k: _decode_free(r) for k, r in raw.items()}
    return _MARKED[raw[MARK]](raw["of"])


def _encode_reason(reason: Reason) -> Any:
    return [_key(reason.kind), {name: _encode_free(value) for name, value in reason.fields.items()}]


def _decode_reason(raw: Any) -> Reason:
    kind = _kind(raw[0])
    if not isinstance(kind, ReasonKind):
        raise CodecError(f"{raw[0]} is no kind of a reason")
    return Reason(kind, **{name: _decode_free(value) for name, value in raw[1].items()})


def _key(kind: Enum) -> str:
    return f"{type(kind).__module__}:{type(kind).__qualname__}.{kind.name}"


@cache
def _kind(key: str) -> Enum:
    """Return the member of one of importer's enumerations.

    Raises CodecError for every other name.
    """
    module, _, place = key.partition(":")
    name, _, member = place.rpartition(".")
    if not module.startswith("importer."):
        raise CodecError(f"{key} is not ours")
    # Another thread may be importing the module: import_module waits for that, sys.modules would not.
    kind = getattr(import_module(module), name, None)
    if not (isinstance(kind, type) and issubclass(kind, Enum) and member in kind.__members__):
        raise CodecError(f"{key} is no member of an enumeration")
    return kind[member]


_MARKED: Mapping[str, Change] = {
    "enum": _kind,
    "map": lambda of: {_decode_free(k): _decode_free(v) for k, v in of},
    "reason": _decode_reason,
    "path": Path,
    "tuple": lambda of: tuple(_decode_free(v) for v in of),
    "set": lambda of: frozenset(_decode_free(v) for v in of),
}


def encode_error(error: ImporterError) -> Any:
    """Return an ImporterError as class, kind and details."""
    return [type(error).__name__, error.kind, _encode_free(error.details)]


def decode_error(raw: Any) -> ImporterError:
    """Return the error from the result of ``encode_error``."""
    name, kind, details = raw
    branch = next((b for b in BRANCHES if b.__name__ == name), None)
    if branch is None:
        raise CodecError(f"{name} is no error of ours")
    return branch(str(kind), **_decode_free(details))
