"""Environment variables of an engine in a document: their names and their values."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final

from importer.document import engine_data
from importer.document.argument_check import WORDS, ArgumentReason
from importer.document.document import Document
from importer.document.engine_arguments import ArgumentRegistry, Kind, load
from importer.launcher import COMPUTE, SECRET
from importer.reasons import Reason, ReasonKind

KEY: Final = "env"
MOST = 200  # variables
LONGEST = 1000  # characters of a value
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)


class VariableReason(ReasonKind):
    """What is wrong with an environment variable of a document."""

    NO_NAME = "it is not the name of an environment variable"
    NO_VALUE = "its value is not a short text, a number, true or false"
    NOT_A_FAMILY = "it is no variable of an engine or of a library that engines compute with"
    NEAR = "the engine reads no variable of this name{near:?}"
    SECRET = "it is a secret, so no document sets it"  # noqa: S105 - a sentence
    LAUNCHER = "importer sets it by itself"
    TOO_MANY = "there are more than {most} variables"


OF_THE_SYSTEM = ("LC_*", "DYLD_*", "NIX_LD*", "TORCH*")  # passed on, and no document sets them
INTERFACES = re.compile(r"(?:^|_)(?:IFNAME|IF_NAME|IF_INCLUDE|IF_EXCLUDE)$", re.IGNORECASE)
TYPES = {
    "int": re.compile(r"[+-]?[0-9]{1,18}"),
    "float": re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?"),
    "bool": re.compile(r"0|1|true|false", re.IGNORECASE),
    "numbers": re.compile(r"[0-9]{1,9}(?:[,|:-][0-9]{1,9}){0,999}"),  # 0-3|4-7
}


def variables_of(document: Document) -> dict[str, str]:
    """Return the variables of a document as texts; those of null are not set."""
    named = document.get(KEY)
    if not isinstance(named, Mapping):
        return {}
    return {str(name): text(value) for name, value in named.items() if value is not None}


def text(value: object) -> str:
    """Return the text of a value: true and false as 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def faults(
    engine: str, version: str | None, variables: Mapping[str, object]
) -> Iterator[tuple[tuple[str, ...], Reason]]:
    """Yield what is wrong with ``env``, each with its path below that key."""
    if len(variables) > MOST:
        yield (), Reason(VariableReason.TOO_MANY, most=MOST)
        return
    registry = load(engine, version)
    for name, value in variables.items():
        if value is None:
            continue
        kind = None if registry is None else registry.variables.get(str(name))
        reason = _name(str(name), registry) or _value(value)
        reason = reason or (None if kind is None else typed(text(value), kind))
        if reason is not None:
            yield (str(name),), reason


def _name(name: str, registry: ArgumentRegistry | None) -> Reason | None:
    """Return why no document sets the variable."""
    own: Mapping[str, Kind | None] = {} if registry is None else registry.variables
    if not NAME.fullmatch(name):
        return Reason(VariableReason.NO_NAME)
    if name in engine_data.every().variables or (SECRET.search(name) and own.get(name) is None):
        return Reason(VariableReason.SECRET if SECRET.search(name) else VariableReason.LAUNCHER)
    if own.get(name) is not None:
        return None
    if not name.startswith(families()) and not INTERFACES.search(name):
        near = get_close_matches(name.upper(), own, 3, 0.85)
        return Reason(VariableReason.NEAR, near=near) if near else Reason(VariableReason.NOT_A_FAMILY)
    return _misspelt(name, own)


@cache
def families() -> tuple[str, ...]:
    """Return how the names of variables begin: of the engines, and of what they compute and send with."""
    passed = (name[:-1] for name in COMPUTE if name.endswith("*") and name not in OF_THE_SYSTEM)
    return (*passed, *engine_data.every().families)


def _misspelt(name: str, own: Collection[str]) -> Reason | None:
    """Return near names, where the engine reads one that differs by a slip.

    An engine's own prefix has a lower bound: of a plugin's or library's variables nothing is known here.
    """
    bound = 0.85 if name.startswith(("VLLM_", "SGLANG_")) else 0.93
    near = [] if name in own else get_close_matches(name, own, 3, bound)
    return Reason(VariableReason.NEAR, near=near) if near else None


def typed(value: str, kind: Kind) -> Reason | None:
    """Return why a text is not of the type that the engine reads: a number, a switch, one of its choices."""
    if isinstance(kind, Mapping):
        if "any_of" in kind:
            found = [typed(value, one) for one in kind["any_of"]]
            return None if None in found else found[-1]
        small = [one.casefold() for one in kind["one_of"]] if kind.get("any_case") else kind["one_of"]
        if (value.casefold() if kind.get("any_case") else value) in small:
            return None
        return Reason(ArgumentReason.NOT_ONE_OF, value=value, known=kind["one_of"])
    if TYPES[kind].fullmatch(value):
        return None
    if kind == "bool":
        return Reason(ArgumentReason.NOT_ONE_OF, value=value, known=["0", "1", "true", "false"])
    return Reason(ArgumentReason.WRONG_TYPE, value=value, kind=WORDS["float" if kind == "float" else "int"])


def _value(value: object) -> Reason | None:
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return Reason(VariableReason.NO_VALUE)
    if isinstance(value, str) and (len(value) > LONGEST or not value.isprintable()):
        return Reason(VariableReason.NO_VALUE)
    return None
