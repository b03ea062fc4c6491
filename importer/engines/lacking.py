"""What an engine lacks of its environment, by the messages of the system in its log and by its end."""

from __future__ import annotations

import sys

from importer.engines.deaths import ENVIRONMENT, Death, DeathCause, Died, causes
from importer.reasons import Reason, ReasonKind


class Lacking(ReasonKind):
    """What an engine lacks of its environment."""

    BIG_FILES = "it may not write files as large as it needs: raise the limit (ulimit -f)"
    DISK = "there is no space left on the disk"
    FIT = "packages of its environment do not fit one another ({words}): install the engine again"
    HIDDEN_MODULE = (
        "a file {module}.py on PYTHONPATH hides Python's own module, or this Python is too new: it has "
        "no {attribute}"
    )
    KILLED = "it was killed, as the system does where the memory runs out"
    LIBRARY = "the system lacks the library {library}: install the package that has it"
    LIBRARY_VERSION = "the system is too old for a library: it lacks {version}"
    LOCALE = "the locale has no letters but English ones: set LC_ALL=C.UTF-8"
    MEMORY = "there is not enough memory, or a limit of it is too low"
    MODULE_IN_THE_WAY = (
        "{file} stands in the way of Python's own module {module}: take its folder off PYTHONPATH"
    )
    OPEN_FILES = "it may not open as many files as it needs: raise the limit (ulimit -n)"
    PERMISSION = "a file's owner does not let it in ({words})"
    PROCESSOR = "this processor lacks an instruction that a library needs: install a build for this processor"
    PROCESSOR_SECONDS = "it used all seconds of the processor that it may have: raise the limit (ulimit -t)"
    WRITABLE_FOLDER = "it has to write where nothing can be written: give it a folder of its own"


LACKING_MEMORY = (
    r"\bMemoryError\b|bad_alloc|(?:not|n't|to) allocate|start new thread|failed to map segment"
    r"|[Oo]ut ?[Oo]f ?[Mm]emory"
)
# A file under the name of one of Python's own modules, in a folder that is searched before Python's.
STDLIB = "|".join(sorted(sys.stdlib_module_names))
ELSEWHERE = r"(?!\S*/(?:site-packages|dist-packages|lib/python3)[^/]*/)"
IN_THE_WAY = (
    rf"cannot import name '[^'\n]+' from (?:partially initialized module )?'(?P<module>{STDLIB})' "
    rf"(?:\(most likely[^()\n]*\) )?\({ELSEWHERE}(?P<file>\S+/(?P=module)\.py)\)"
)
HIDDEN = (
    rf"AttributeError: (?:partially initialized )?module '(?P<module>{STDLIB})' "
    r"has no attribute '(?P<attribute>\w+)'"
)
# vLLM prints at every start the error of a low limit as a warning.
ADVICE = r".*`OSError: \[Errno 24\][^`\n]*`"
# Checked after the causes of the engine, that are more specific.
ENVIRONMENT_ERRORS = tuple(
    Death(pattern, kind, ENVIRONMENT)
    for pattern, kind in (
        (r"\[Errno (?:28|122)\]|No space left on device|Disk quota exceeded", Lacking.DISK),
        (
            rf"^(?!{ADVICE}).*(?:\[Errno 2[34]\]|Too many open files|not allowed to raise maximum limit)",
            Lacking.OPEN_FILES,
        ),
        (
            r"\[Errno 30\]|Read-only file system|No usable temporary directory|temp_directory_path:",
            Lacking.WRITABLE_FOLDER,
        ),
        (r"PermissionError: .*?(?P<words>Permission denied: .*)", Lacking.PERMISSION),
        (r"(?P<library>[\w.+-]+\.(?:so[.\d]*|dylib)): cannot open shared object file", Lacking.LIBRARY),
        (r"Library not loaded: (?P<library>\S+)", Lacking.LIBRARY),
        (r"version `(?P<version>\w+_[\d.]+)' not found", Lacking.LIBRARY_VERSION),
        (HIDDEN, Lacking.HIDDEN_MODULE),
        (IN_THE_WAY, Lacking.MODULE_IN_THE_WAY),
        (
            (
                r"(?P<words>cannot import name '[^'\n]+' from '[\w.]+'|undefined symbol: \S+"
                r"|requires [\w.-]{1,60} ?[<>=!~]{1,2} ?[\d.]{1,20} to be installed)"
            ),
            Lacking.FIT,
        ),
        (LACKING_MEMORY, Lacking.MEMORY),
        (r"Illegal instruction", Lacking.PROCESSOR),
        (r"'(?:ascii|latin-1)' codec can't (?:en|de)code", Lacking.LOCALE),
    )
)
# By exit status: 128 and the signal, as in a shell and in the supervisor.
SIGNALS = {
    128 + 4: Lacking.PROCESSOR,
    128 + 9: Lacking.KILLED,
    128 + 24: Lacking.PROCESSOR_SECONDS,
    128 + 25: Lacking.BIG_FILES,
}
LIMITS = frozenset({Lacking.PROCESSOR_SECONDS, Lacking.BIG_FILES})  # no exception in a log is their cause
# Causes of an engine's own that may end it after its start.
AT_WORK = frozenset({
    Died.CARD_IN_USE, Died.LAST_WORDS, Died.NO_AVX2, Died.NO_MEMORY_FOR_CACHE, Died.NO_MEMORY_FOR_WEIGHTS,
    Died.WORKER_GONE,
})  # fmt: skip
# Python does not begin: in its environment, not in the engine.
PYTHON_FAILS = Death(
    r"Fatal Python error: (?P<words>.*)\nPython runtime state: (?:pre|core )?initialized",
    Died.PYTHON_FAILS,
    ENVIRONMENT,
)


def in_text(text: str) -> Reason | None:
    """Return the part of the environment that is missing by the messages of the system in ``text``."""
    return next((cause.reason for cause in causes(text, ENVIRONMENT_ERRORS)), None)


def of_signal(code: int | None) -> DeathCause | None:
    """Return the part of the environment that is missing by the signal in an exit status."""
    kind = SIGNALS.get(code) if code is not None else None
    return None if kind is None else DeathCause(Reason(kind), ENVIRONMENT)
