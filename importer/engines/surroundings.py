"""What every engine may stumble over that is not its doing: the machine, its limits, broken installations.

The words are the system's and Python's, so they are the same in every engine's log.
"""

from __future__ import annotations

import re
import sys

from importer.engines.base import Death

LACKING_MEMORY = (
    r"\bMemoryError\b|bad_alloc|(?:not|n't|to) allocate|start new thread|failed to map segment"
    r"|[Oo]ut ?[Oo]f ?[Mm]emory"
)
# A file under the name of one of Python's own modules, in a folder that is searched before Python's.
OWN = "|".join(sorted(sys.stdlib_module_names))
ELSEWHERE = r"(?!\S*/(?:site-packages|dist-packages|lib/python3)[^/]*/)"
IN_THE_WAY = (
    rf"cannot import name '[^'\n]+' from (?:partially initialized module )?'({OWN})' "
    rf"(?:\(most likely[^()\n]*\) )?\({ELSEWHERE}(\S+/\1\.py)\)"
)
# vLLM says at every start what a low limit might lead to, error and all.
ADVICE = r".*`OSError: \[Errno 24\][^`\n]*`"
# Looked for behind an engine's own deaths, which know more.
SURROUNDINGS = tuple(
    Death(pattern, says, "environment")
    for pattern, says in (
        (
            r"\[Errno (?:28|122)\]|No space left on device|Disk quota exceeded",
            "there is no space left on the disk",
        ),
        (
            rf"^(?!{ADVICE}).*(?:\[Errno 2[34]\]|Too many open files)",
            "it may not open as many files as it needs: raise the limit (ulimit -n)",
        ),
        (
            r"\[Errno 30\]|Read-only file system",
            "it has to write where nothing can be written: give it a folder of its own",
        ),
        (r"PermissionError: .*?(Permission denied: .*)", "a file's owner does not let it in ({0})"),
        (
            r"([\w.+-]+\.(?:so[.\d]*|dylib)): cannot open shared object file|Library not loaded: (\S+)",
            "the system lacks the library {0}: install the package that has it",
        ),
        (r"version `(\w+_[\d.]+)' not found", "the system is too old for a library: it lacks {0}"),
        (
            rf"AttributeError: (?:partially initialized )?module '({OWN})' has no attribute '(\w+)'",
            "a file {0}.py on PYTHONPATH hides Python's own module, or this Python is too new: it has no {1}",
        ),
        (
            IN_THE_WAY,
            "{1} stands in the way of Python's own module {0}: take its folder off PYTHONPATH",
        ),
        (
            r"(cannot import name '[^'\n]+' from '[\w.]+'|undefined symbol: \S+)",
            "packages of its environment do not fit one another ({0}): install the engine again",
        ),
        (
            LACKING_MEMORY,
            "there is not enough memory, or a limit of it is too low",
        ),
        (r"Illegal instruction", "this processor lacks an instruction that a library needs"),
        (
            r"'(?:ascii|latin-1)' codec can't (?:en|de)code",
            "the locale has no letters but English ones: set LC_ALL=C.UTF-8",
        ),
    )
)
# By exit status, where the log says nothing: 128 and the signal, as a shell and the guardian tell it.
SIGNALS = {
    128 + 4: "this processor lacks an instruction that a library needs: install a build for this processor",
    128 + 9: "it was killed, as the system does where the memory runs out",
    128 + 25: "it may not write files as large as it needs: raise the limit (ulimit -f)",
}


def told(text: str) -> str | None:
    """What was lacking, in a sentence, where the system's words say it in ``text``."""
    for death in SURROUNDINGS:
        if (found := re.search(death.pattern, text, re.MULTILINE)) is not None:
            return death.says.format(*(g for g in found.groups() if g is not None))
    return None
