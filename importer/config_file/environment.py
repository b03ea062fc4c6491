"""``env``: environment variables of an engine's process, by families of names, without the dangerous ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from importer.config_file.argument_rules import ADDRESS, PATH
from importer.config_file.engine_arguments import Kind, load, names
from importer.launcher import COMPUTE, SECRET
from importer.reasons import Reason

KEY = "env"
MOST = 200  # variables
LONGEST = 1000  # characters of a value
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)


class VariableReason(StrEnum):
    """What is wrong with an environment variable of a document."""

    NO_NAME = "no-name"
    NO_VALUE = "no-value"
    NOT_A_FAMILY = "not-a-family"
    NEAR = "near"
    CODE = "code"
    FILE = "file"
    PLACE = "place"
    SECRET = "secret"  # noqa: S105 - a word
    INSECURE = "insecure"
    LAUNCHER = "launcher"
    TOO_MANY = "too-many"
    NOT_A_NUMBER = "not-a-number"
    NOT_ONE_OF = "not-one-of"


# Families of names: the engines, the libraries that they compute and send with.
_HARDWARE = tuple(
    name[:-1]
    for name in COMPUTE
    if name.endswith("*") and name not in ("LC_*", "DYLD_*", "NIX_LD*", "TORCH*")
)
PREFIXES = (
    *_HARDWARE, "SGLANG_", "SGL_", "TORCH_", "TORCHINDUCTOR_", "CUTE_", "FLASH_ATTENTION_", "B12X_",
    "AMDGCN_", "GPU_", "HCCL_", "ASCEND_", "INKLING_", "LMCACHE_", "MC_", "MOONCAKE_", "NIXL_", "NVSHMEM_",
    "XLA_",
)  # fmt: skip
WHOLE = ("PYTHONHASHSEED", "PYTHONNOUSERSITE", "PYTHONUNBUFFERED", "TASK_QUEUE_ENABLE")
INTERFACES = re.compile(r"(?:^|_)(?:IFNAME|IF_NAME|IF_INCLUDE|IF_EXCLUDE)$", re.IGNORECASE)
ALLOCATION = re.compile(r"^PYTORCH(?:_[A-Z]+)?_ALLOC_CONF$")  # a list of options
# Parts of names, between underscores.
CODE = names(
    "PLUGIN PLUGINS MODULE MODULES CLASS HOOK HOOKS PRELOAD LIB LIBS LIBRARY LIBRARIES TOOL TOOLS INJECTION "
    "AGENT EXEC COMMAND CC CXX NVCC PTXAS LD AUTOLOAD PYTHON DEBUGGER CALLBACK LAUNCHER"
)
FILES = names(
    "PATH PATHS FILE FILES FILENAME DIR DIRS DIRECTORY FOLDER ROOT HOME SOCKET CONFIG CONF LOGFILE DUMP"
)
PLACES = names("URL URLS URI URIS ENDPOINT ENDPOINTS WEBHOOK PROXY REGISTRY MIRROR MODELSCOPE")
INSECURE = names("INSECURE PICKLE UNSAFE TRUST UPDATING")
# A checkpoint read as code; routes for developers.
UNPROTECTED = re.compile(r"WEIGHTS_ONLY|DEV_MODE")
# The command of importer, or a key of the document, sets them.
OWN = frozenset(("VLLM_USE_RUST_FRONTEND", "VLLM_NO_USAGE_STATS", "VLLM_TARGET_DEVICE", "VLLM_API_KEY"))
LOADS_CODE = ("OMPI_", "FI_", "LMCACHE_CONFIG", "RAY_")  # of these only names of interfaces


def of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a document as texts; those of null are not set."""
    named = document.get(KEY)
    if not isinstance(named, Mapping):
        return {}
    return {str(name): text(value) for name, value in named.items() if value is not None}


def text(value: object) -> str:
    """Return the text of a value: true and false as 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def faults(
    engine: str, version: str | None, variables: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], Reason]]:
    """Yield what is wrong with ``env``, each with its path below that key."""
    if len(variables) > MOST:
        yield (), Reason(VariableReason.TOO_MANY, most=MOST)
        return
    registry = load(engine, version)
    own = frozenset() if registry is None else registry.variables
    for name, value in variables.items():
        if value is None:
            continue
        kinds = {} if registry is None else registry.variable_types
        reason = _name(str(name), own) or _value(value) or _typed(text(value), kinds.get(str(name)))
        if reason is not None:
            yield (str(name),), reason


def _name(name: str, own: frozenset[str]) -> Reason | None:
    """Return why a document does not set the variable; ``own`` are those that the engine reads."""
    if not NAME.fullmatch(name):
        return Reason(VariableReason.NO_NAME)
    parts = {*name.upper().split("_")}
    if name in OWN:
        return Reason(VariableReason.SECRET if SECRET.search(name) else VariableReason.LAUNCHER)
    if INTERFACES.search(name) or ALLOCATION.search(name) or name in WHOLE:
        return None
    if not name.startswith(PREFIXES) or name.startswith(LOADS_CODE):
        near = get_close_matches(name.upper(), own, 3, 0.85)
        return Reason(VariableReason.NEAR, near=near) if near else Reason(VariableReason.NOT_A_FAMILY)
    for kind, words in (
        (VariableReason.CODE, CODE), (VariableReason.FILE, FILES), (VariableReason.PLACE, PLACES),
        (VariableReason.INSECURE, INSECURE),
    ):  # fmt: skip
        if words & parts:
            return Reason(kind)
    if SECRET.search(name):
        return Reason(VariableReason.SECRET)
    if UNPROTECTED.search(name):
        return Reason(VariableReason.INSECURE)
    return _misspelt(name, own)


def _misspelt(name: str, own: frozenset[str]) -> Reason | None:
    """Return near names, where the engine reads one that differs by a slip.

    An engine's own prefix has a lower bound: of a plugin's or library's variables nothing is known here.
    """
    bound = 0.85 if name.startswith(("VLLM_", "SGLANG_")) else 0.93
    near = [] if name in own else get_close_matches(name, own, 3, bound)
    return Reason(VariableReason.NEAR, near=near) if near else None


def _typed(value: str, kind: Kind | None) -> Reason | None:
    """Return why the engine does not read a text: as a number, or as one of its choices."""
    if isinstance(kind, Mapping):
        known = [str(one) for one in kind.get("one_of", ())]
        small = [one.casefold() for one in known] if kind.get("any_case") else known
        taken = not known or (value.casefold() if kind.get("any_case") else value) in small
        return None if taken else Reason(VariableReason.NOT_ONE_OF, value=value, known=known)
    read = {"int": int, "float": float}.get(kind or "")
    try:
        if read is not None:
            read(value)
    except ValueError:
        return Reason(VariableReason.NOT_A_NUMBER, value=value, whole=kind == "int")
    return None


def _value(value: object) -> Reason | None:
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return Reason(VariableReason.NO_VALUE)
    if not isinstance(value, str):
        return None
    if len(value) > LONGEST or not value.isprintable():
        return Reason(VariableReason.NO_VALUE)
    if ADDRESS.match(value):
        return Reason(VariableReason.PLACE)
    return Reason(VariableReason.FILE) if PATH.search(value) else None
