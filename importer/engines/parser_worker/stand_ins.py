"""An engine's parsers from its sources alone: every other module of the engine is a stand-in.

A stand-in can be imported, named in annotations, and be a base class or a decorator while modules are
imported. It has no behaviour: afterwards a call, a loop, a comparison of order, a test of its truth, its
length or ``with`` raise StandInUsed, so that a parser which needs more than is here is not judged. Packages
that are not installed stand in likewise.
"""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import functools
import importlib.util
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

# Packages for cards, servers and media; those of them that are installed are used.
ABSENT = (
    "torch", "torchvision", "torchaudio", "triton", "ray", "zmq", "cv2", "prometheus_client", "PIL",
    "cloudpickle", "aiohttp", "requests", "fastapi", "starlette", "uvicorn", "pybase64", "blake3", "cbor2",
    "numba", "einops", "compressed_tensors", "depyf", "gguf", "psutil", "llguidance", "outlines_core", "lark",
    "lmformatenforcer", "cachetools", "soundfile", "librosa", "scipy", "sentencepiece", "mcp", "anthropic",
    "diskcache", "watchfiles", "prometheus_fastapi_instrumentator", "opentelemetry", "modelscope", "orjson",
)  # fmt: skip


class StandInUsed(BaseException):  # not an Exception: parsers swallow those, and would read on
    """Something needs a part of the engine that is not here."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True)
class Parts:
    """What of an engine is its own.

    ``engine``    its package. ``own`` matches the names of its modules that are here; a release without the
                  file ``entry`` answers in another way than the worker asks.
    ``borrowed``  functions of other modules that are read from their sources, without the rest of these.
    ``given``     values in the place of what asks about the machine or the server, by the folder of sources.
    ``absent``    packages that may be missing. ``read`` are further files that ``given`` reads.
    ``idle``      what no answer of a chat needs, with its modules: stood in, for its import takes long.
    """

    engine: str
    own: re.Pattern[str]
    entry: str
    absent: Sequence[str]
    borrowed: Sequence[str] = ()
    given: Callable[[Path], Mapping[str, object]] = lambda _root: {}
    read: Sequence[str] = ()
    idle: Sequence[str] = ()

    def wants(self, path: str) -> bool:
        """Return whether a file of the engine's wheel is one of its parts."""
        if not path.endswith(".py") or path in self.read:
            return path in self.read
        module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        lent = {name.rpartition(".")[0] for name in self.borrowed}
        return module in lent or self.own.fullmatch(module) is not None


class StandIn:
    """A name of a module that is not here."""

    def __init__(self, name: str) -> None:
        self.__dict__.update(
            __qualname__=name, __name__=name.rpartition(".")[2], __module__=name.rpartition(".")[0]
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _named(f"{self.__qualname__}.{name}")

    def __mro_entries__(self, _bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return what it decorates, or another stand-in."""
        self._used()
        decorates = len(arguments) == 1 and not options and isinstance(arguments[0], type | FunctionType)
        return arguments[0] if decorates else _named(f"{self.__qualname__}()")

    def __getitem__(self, _item: object) -> StandIn:
        return self

    def __or__(self, other: Any) -> Any:
        return self if isinstance(other, str) else typing.Union[self, other]  # noqa: UP007 - of two objects

    __ror__ = __or__

    def __instancecheck__(self, _other: object) -> bool:
        return False

    def __subclasscheck__(self, _other: object) -> bool:
        return False

    def __iter__(self) -> Iterator[object]:
        self._used()
        return iter(())

    def __len__(self) -> int:
        self._used()
        return 0

    def __bool__(self) -> bool:
        self._used()
        return False

    def __lt__(self, _other: object) -> bool:
        self._used()
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __enter__(self) -> StandIn:
        self._used()
        return self

    def __exit__(self, *_error: object) -> None: ...

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def _used(self) -> None:
        if not _importing():
            raise StandInUsed(str(self.__qualname__))


@functools.cache
def _named(name: str) -> StandIn:
    return StandIn(name)


def _importing() -> bool:
    """Return whether a module is being imported: only then a stand-in may be used."""
    frame = sys._getframe(2)  # noqa: SLF001
    while frame is not None:
        module = frame.f_globals.get("__spec__") if frame.f_code.co_name == "<module>" else None
        if getattr(module, "_initializing", False):  # as importlib itself marks it
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class AbsentModule(ModuleType):
    """A module whose names are stand-ins, but for those that are borrowed or given."""

    parts: Parts
    root: Path
    given: Mapping[str, object]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if full in self.given:
            return self.given[full]
        if full in self.parts.borrowed:
            setattr(self, name, borrowed(self.root, self.__name__, name))
            return self.__dict__[name]
        return sys.modules.get(full) or _named(full)


def borrowed(root: Path, module: str, name: str) -> Any:
    """Return one function or class of a module that is not loaded, from its source, with the module's plain
    functions and its imports of the standard library.
    """
    lent = ModuleType(module)
    for library in (typing, collections.abc, dataclasses, functools):
        lent.__dict__.update({key: one for key, one in vars(library).items() if not key.startswith("__")})
    Lent(_file(root, module), name).exec_module(lent)
    return lent.__dict__[name]


class Lent(SourceLoader):
    """Loads the part of a module that one name of it needs."""

    def __init__(self, file: Path, name: str) -> None:
        self._file, self._name = file, name

    def get_filename(self, _fullname: str) -> str:
        """Return the file's path."""
        return str(self._file)

    def get_data(self, _path: str) -> bytes:
        """Return the source of the part."""
        tree = ast.parse(self._file.read_text(encoding="utf-8"))
        kept = [ast.unparse(node) for node in tree.body if _is_kept(node, self._name)]
        return "\n".join(["from __future__ import annotations", *kept]).encode()


def _is_kept(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.Import):
        return all(alias.name.partition(".")[0] in sys.stdlib_module_names for alias in node.names)
    plain = isinstance(node, ast.FunctionDef) and not node.decorator_list
    return plain or getattr(node, "name", "") == name


def _file(root: Path, module: str) -> Path:
    place = root.joinpath(*module.split("."))
    package = place / "__init__.py"
    return package if package.is_file() else place.with_name(f"{place.name}.py")


class Finder(MetaPathFinder, Loader):
    """Finds the engine's own modules in ``root``, and stand-ins for the others."""

    def __init__(self, parts: Parts, root: Path, absent: frozenset[str]) -> None:
        self._parts, self._root, self._absent = parts, root, absent
        self._given = parts.given(root)

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of the engine, or of a package that is missing; else ``None``."""
        top = fullname.partition(".")[0]
        idle = f"{fullname}.".startswith(tuple(f"{name}." for name in self._parts.idle))
        if self._parts.own.fullmatch(fullname) and not idle:
            return self._own(fullname)
        if top == self._parts.engine or top in self._absent or idle:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def _own(self, fullname: str) -> ModuleSpec | None:
        place, file = self._root.joinpath(*fullname.split(".")), _file(self._root, fullname)
        if file.is_file():
            inside = [str(place)] if file.name == "__init__.py" else None
            return importlib.util.spec_from_file_location(fullname, file, submodule_search_locations=inside)
        if not place.is_dir():
            return None
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [str(place)]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module of stand-ins."""
        module = AbsentModule(spec.name)
        module.parts, module.root, module.given, module.__path__ = self._parts, self._root, self._given, []
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""


def install(parts: Parts, root: Path) -> None:
    """Let the engine be imported from the sources in ``root``."""
    absent = frozenset(name for name in parts.absent if importlib.util.find_spec(name) is None)
    _told(absent)
    sys.meta_path.insert(0, Finder(parts, root, absent))


def _told(absent: frozenset[str]) -> None:
    """Let transformers note which packages are missing, before stand-ins are found in their place."""
    with suppress(ImportError):
        from transformers.utils import import_utils

        for name in absent:
            asks: Callable[[], object] = getattr(import_utils, f"is_{name}_available", lambda: False)
            with suppress(Exception):
                asks()
        _without_models()


def _without_models() -> None:
    """Let a module of transformers' models be imported without the search through the sources of all."""
    import transformers

    models = ModuleType("transformers.models")
    models.__path__ = [str(Path(place) / "models") for place in transformers.__path__]
    sys.modules[models.__name__] = models
