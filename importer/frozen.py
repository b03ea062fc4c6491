"""``@frozen``: a dataclass with slots whose instances never change, cheap to declare.

``@dataclass(frozen=True, slots=True)`` compiles six functions for each class, a quarter of the time of a
short command. Here they are closures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

C = TypeVar("C")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[C]) -> type[C]:
    """Return the class as a dataclass with slots; its own methods stay.

    ``InitVar`` and ``kw_only`` have no meaning here.
    """
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    own = vars(cls)
    key = _key([f.name for f in fields(made) if f.compare])

    def equal(self: Any, other: Any) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    made.__init__ = _init(made)
    if "__eq__" not in own:
        made.__eq__ = equal
    if own.get("__hash__") is None:
        made.__hash__ = lambda self: hash(key(self))
    if "__repr__" not in own:
        made.__repr__ = _repr
    made.__setattr__, made.__delattr__, made.__reduce__ = _refuse, _refuse, _reduce
    result: type[C] = made
    return result


def _key(names: Sequence[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _init(made: Any) -> Callable[..., None]:
    """Return the ``__init__`` of the fields; it writes by the slots' descriptors."""
    declared = fields(made)
    given = [(f.name, f.default, f.default_factory) for f in declared if f.init]
    write = [getattr(made, name).__set__ for name, *_ in given]
    computed = [(getattr(made, f.name).__set__, f) for f in declared if not f.init and _has_default(f)]
    count, finish = len(given), getattr(made, "__post_init__", None)

    def init(self: Any, /, *args: Any, **kwargs: Any) -> None:
        values = args if len(args) == count and not kwargs else _completed(made, given, [*args], kwargs)
        for put, value in zip(write, values, strict=True):
            put(self, value)
        for put, f in computed:
            put(self, _default(f))
        if finish is not None:
            finish(self)

    return init


def _completed(
    made: Any, given: Sequence[tuple[str, Any, Any]], values: list[Any], kwargs: dict[str, object]
) -> list[Any]:
    """Return a value for each field; raises TypeError for a missing or an unknown argument."""
    for name, default, factory in given[len(values) :]:
        value = kwargs.pop(name, default)
        if value is MISSING:
            if factory is MISSING:
                raise TypeError(f"{made.__qualname__}() lacks {name}")
            value = factory()
        values.append(value)
    if kwargs or len(values) > len(given):
        raise TypeError(f"{made.__qualname__}() has too many arguments: {', '.join(kwargs) or len(values)}")
    return values


def _has_default(f: Field[Any]) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


def _default(f: Field[Any]) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, _value: object = None) -> NoReturn:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _reduce(self: Any) -> Any:
    return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)
