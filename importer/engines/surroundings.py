"""What every engine may stumble over that is not its doing: the machine, its limits, broken installations.

The words are the system's and Python's, so they are the same in every engine's log.
"""

from __future__ import annotations

import sys
from enum import StrEnum

from importer.engines.deaths import ENVIRONMENT, Cause, Death, causes
from importer.reasons import Reason


class Lacking(StrEnum):
    """What an engine lacks of its surroundings."""

    BIG_FILES = "big-files"
    DISK = "disk"
    FIT = "fit"
    HIDDEN_MODULE = "hidden-module"
    INSTRUCTION = "instruction"
    KILLED = "killed"
    LIBRARY = "library"
    LIBRARY_VERSION = "library-version"
    LOCALE = "locale"
    MEMORY = "memory"
    MODULE_IN_THE_WAY = "module-in-the-way"
    OPEN_FILES = "open-files"
    PERMISSION = "permission"
    PROCESSOR = "processor"
    WRITABLE_FOLDER = "writable-folder"


LACKING_MEMORY = (
    r"\bMemoryError\b|bad_alloc|(?:not|n't|to) allocate|start new thread|failed to map segment"
    r"|[Oo]ut ?[Oo]f ?[Mm]emory"
)
# A file under the name of one of Python's own modules, in a folder that is searched before Python's.
OWN = "|".join(sorted(sys.stdlib_module_names))
ELSEWHERE = r"(?!\S*/(?:site-packages|dist-packages|lib/python3)[^/]*/)"
IN_THE_WAY = (
    rf"cannot import name '[^'\n]+' from (?:partially initialized module )?'(?P<module>{OWN})' "
    rf"(?:\(most likely[^()\n]*\) )?\({ELSEWHERE}(?P<file>\S+/(?P=module)\.py)\)"
)
HIDDEN = (
    rf"AttributeError: (?:partially initialized )?module '(?P<module>{OWN})' "
    r"has no attribute '(?P<attribute>\w+)'"
)
# vLLM says at every start what a low limit might lead to, error and all.
ADVICE = r".*`OSError: \[Errno 24\][^`\n]*`"
# Looked for behind an engine's own deaths, which know more.
SURROUNDINGS = tuple(
    Death(pattern, kind, ENVIRONMENT)
    for pattern, kind in (
        (r"\[Errno (?:28|122)\]|No space left on device|Disk quota exceeded", Lacking.DISK),
        (rf"^(?!{ADVICE}).*(?:\[Errno 2[34]\]|Too many open files)", Lacking.OPEN_FILES),
        (r"\[Errno 30\]|Read-only file system", Lacking.WRITABLE_FOLDER),
        (r"PermissionError: .*?(?P<words>Permission denied: .*)", Lacking.PERMISSION),
        (r"(?P<library>[\w.+-]+\.(?:so[.\d]*|dylib)): cannot open shared object file", Lacking.LIBRARY),
        (r"Library not loaded: (?P<library>\S+)", Lacking.LIBRARY),
        (r"version `(?P<version>\w+_[\d.]+)' not found", Lacking.LIBRARY_VERSION),
        (HIDDEN, Lacking.HIDDEN_MODULE),
        (IN_THE_WAY, Lacking.MODULE_IN_THE_WAY),
        (
            r"(?P<words>cannot import name '[^'\n]+' from '[\w.]+'|undefined symbol: \S+)",
            Lacking.FIT,
        ),
        (LACKING_MEMORY, Lacking.MEMORY),
        (r"Illegal instruction", Lacking.INSTRUCTION),
        (r"'(?:ascii|latin-1)' codec can't (?:en|de)code", Lacking.LOCALE),
    )
)
# By exit status, where the log says nothing: 128 and the signal, as a shell and the guardian tell it.
SIGNALS = {128 + 4: Lacking.PROCESSOR, 128 + 9: Lacking.KILLED, 128 + 25: Lacking.BIG_FILES}


def lacking(text: str) -> Reason | None:
    """What the system's words in ``text`` show to be lacking."""
    return next((cause.reason for cause in causes(text, SURROUNDINGS)), None)


def of_signal(code: int | None) -> Cause | None:
    """What an exit status tells of the surroundings."""
    kind = SIGNALS.get(code) if code is not None else None
    return None if kind is None else Cause(Reason(kind), ENVIRONMENT)
