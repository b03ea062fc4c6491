"""Runs in a child: prints how a module with a table of variables reads each, as JSON, by trial with texts.

Standard input holds the module's source. A variable whose text comes through a reader has no type.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

Reader = Callable[[], Any]
# Texts that no number and no switch keeps: a word, a path, an address, a flag, a module, JSON, a pair.
TEXTS = ("no-such-word", "/no/such/file", "tcp://host:1", "--flag=x", "mod.name", '{"k": "v"}', "a:b,c:d")


class Error:
    """What a reader refuses to read."""


ERROR = Error()


def readers(module: types.ModuleType) -> Iterator[tuple[str, Reader]]:
    """Yield the variables of a table of functions, and those that are fields with a method ``get``."""
    for name, read in getattr(module, "environment_variables", {}).items():
        yield name, read
    for name, field in vars(getattr(module, "Envs", object)).items():
        if hasattr(field, "get") and hasattr(field, "parse"):
            yield name, field.get


def kind(name: str, read: Reader) -> Any:
    """Return ``bool``, ``int``, ``float`` or the choices of a variable; ``None`` for one read as a text."""
    before = os.environ.get(name)

    def taken(value: str) -> Any:
        os.environ[name] = value
        getattr(read, "cache_clear", lambda: None)()
        try:
            return read()
        except Exception:
            return ERROR

    try:
        if not all(isinstance(taken(text), bool | int | float | None | Error) for text in TEXTS):
            return None
        seven, half, word = taken("7"), taken("0.5"), taken("true")
        if all(isinstance(one, bool) for one in (seven, word)):
            return "bool"
        if isinstance(seven, bool) or (isinstance(seven, int) and seven == 7):
            return "int"
        return "float" if half == 0.5 else _choices(read, taken)
    finally:
        os.environ.pop(name, None)
        os.environ.update({} if before is None else {name: before})


def _choices(read: Reader, taken: Callable[[str], Any]) -> Any:
    """Return the texts that a reader accepts, where it holds a list of them and refuses all others."""
    held = [cell.cell_contents for cell in getattr(read, "__closure__", None) or ()]
    listed = [one for one in held if isinstance(one, list | tuple | set)]
    words = sorted({w for one in listed for w in one if isinstance(w, str) and taken(w) is not ERROR})
    if not words or (len(words) > 1 and taken(",".join(words[:2])) is not ERROR):  # several at a time
        return None
    small = {"any_case": True} if all(taken(word.swapcase()) is not ERROR for word in words) else {}
    return {"one_of": words} | small


def main() -> None:
    """Print the type of every variable that has one, and the names of all."""
    module = types.ModuleType("variables")
    sys.modules["variables"] = module
    exec(compile(sys.stdin.read(), "variables", "exec"), vars(module))  # noqa: S102 - the engine's own
    kinds = {name: kind(name, read) for name, read in readers(module)}
    sys.stdout.write("\nRESULT " + json.dumps(kinds) + "\n")


if __name__ == "__main__":
    main()
