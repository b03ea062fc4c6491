"""The log of an engine: its file, its end with the cause, and what the engine reports in it."""

from __future__ import annotations

import ast
import contextlib
import fcntl
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from importer.engines.deaths import ENVIRONMENT, Death, DeathCause, Died, causes
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.memory.devices import GIB
from importer.memory.measured import Reported
from importer.reasons import Reason, ReasonKind


class Lacking(ReasonKind):
    """What an engine lacks of its environment."""

    BIG_FILES = "big-files", "it may not write files as large as it needs: raise the limit (ulimit -f)"
    DISK = "disk", "there is no space left on the disk"
    FIT = "fit", "packages of its environment do not fit one another ({words}): install the engine again"
    HIDDEN_MODULE = (
        "hidden-module",
        (
            "a file {module}.py on PYTHONPATH hides Python's own module, or this Python is too new: it has "
            "no {attribute}"
        ),
    )
    INSTRUCTION = "instruction", "this processor lacks an instruction that a library needs"
    KILLED = "killed", "it was killed, as the system does where the memory runs out"
    LIBRARY = "library", "the system lacks the library {library}: install the package that has it"
    LIBRARY_VERSION = "library-version", "the system is too old for a library: it lacks {version}"
    LOCALE = "locale", "the locale has no letters but English ones: set LC_ALL=C.UTF-8"
    LOG_SPACE = "log-space", "no more lines fit into {path}: make room on its disk and start the engine anew"
    MEMORY = "memory", "there is not enough memory, or a limit of it is too low"
    MODULE_IN_THE_WAY = (
        "module-in-the-way",
        "{file} stands in the way of Python's own module {module}: take its folder off PYTHONPATH",
    )
    OPEN_FILES = "open-files", "it may not open as many files as it needs: raise the limit (ulimit -n)"
    PERMISSION = "permission", "a file's owner does not let it in ({words})"
    PROCESSOR = (
        "processor",
        "this processor lacks an instruction that a library needs: install a build for this processor",
    )
    PROCESSOR_SECONDS = (
        "processor-seconds",
        "it used all seconds of the processor that it may have: raise the limit (ulimit -t)",
    )
    WRITABLE_FOLDER = (
        "writable-folder",
        "it has to write where nothing can be written: give it a folder of its own",
    )


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
        (r"Illegal instruction", Lacking.INSTRUCTION),
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
MAX_LOGS = 20  # logs in the folder
TAIL = 64 * 1024  # bytes of a log that are searched
LONGEST = 2000  # characters of a line


def lacking(text: str) -> Reason | None:
    """Return the part of the environment that is missing by the messages of the system in ``text``."""
    return next((cause.reason for cause in causes(text, ENVIRONMENT_ERRORS)), None)


def of_signal(code: int | None) -> DeathCause | None:
    """Return the part of the environment that is missing by the signal in an exit status."""
    kind = SIGNALS.get(code) if code is not None else None
    return None if kind is None else DeathCause(Reason(kind), ENVIRONMENT)


def fresh(folder: Path, name: str) -> Path:
    """Return the path of a new log; the folder's oldest are removed, but none of a running engine."""
    _make(folder)
    old = sorted(folder.glob("*.log"), key=_written)
    for path in old[: max(0, len(old) - MAX_LOGS + 1)]:
        if not _in_use(path):
            path.unlink(missing_ok=True)
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10_000:04d}"
    return folder / f"{name}-{stamp}.log"


def _written(path: Path) -> float:
    """Return when a log was last written to; another process may remove it at any time."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _in_use(path: Path) -> bool:
    """Return whether a process holds the log: whoever opened it, or the engine that writes to it."""
    try:
        with path.open("rb") as log:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # it is gone
        return False
    return False


def opened(path: Path) -> BinaryIO:
    """Return the log, empty and open for writing; raises DocumentError("cannot-write").

    It is locked until each process that has it has closed it, so that nobody removes it meanwhile.
    """
    _make(path.parent)
    try:
        log = path.open("wb")
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror) from None
    with contextlib.suppress(OSError):  # some file systems have no locks
        fcntl.flock(log, fcntl.LOCK_SH)
    return log


def tail(path: Path) -> str:
    """Return the end of a log."""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - TAIL))
        return bounded(log.read().decode(errors="replace"))


def bounded(text: str) -> str:
    """Return the text with its lines cut: some patterns take time by the square of a line."""
    return "\n".join(line[:LONGEST] for line in text.split("\n"))


def explain(
    path: Path, deaths: Iterable[Death], code: int | None = None, *, served: bool = False
) -> DeathCause:
    """Return why the engine ended: a limit by its exit status, else the first known cause in its log, else
    the signal that ended it, else its last error.

    The causes of the engine come before those of any engine. One that has ``served`` has read its files and
    options, so these did not end it: its log has errors of requests, too.
    """
    text, ended = tail(path), of_signal(code)
    if ended is not None and ended.reason.kind in LIMITS:
        return ended
    own = (death for death in deaths if not served or death.kind in AT_WORK)
    known = next(causes(text, (PYTHON_FAILS, *own, *ENVIRONMENT_ERRORS)), None)
    return known or ended or DeathCause(_last_words(text))


def _last_words(text: str) -> Reason:
    words = [line.strip() for line in text.splitlines() if line.strip() and "warnings.warn(" not in line]
    telling = [line for line in words if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
    last = (telling or words or [""])[-1]
    return Reason(Died.LAST_WORDS, words=last) if last else Reason(Died.SILENT)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DocumentError("cannot-write", path=folder, problem=error.strerror) from None


HEAD = 1024 * 1024  # bytes of a log: memory is reported before the first request
NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
WEIGHTS = re.compile(rf"Model loading took {NUMBER} GiB")
CACHE = re.compile(rf"Available KV cache memory: {NUMBER} GiB|(?:Explicitly|Auto) set \({NUMBER}/")
# One line of vLLM 0.12 and later has them all, behind the graphs.
DEVICE = re.compile(rf"Free memory on device [^(\n]{{0,20}}\({NUMBER}/{NUMBER} GiB\) on startup")
REQUESTED = re.compile(
    rf"tilization (?:is )?\([0-9.]{{1,8}}, {NUMBER} GiB\)|, with {NUMBER} GiB requested memory"
)
ACTIVATIONS = re.compile(rf"{NUMBER} GiB for peak activation")
GRAPHS = re.compile(rf"{NUMBER} GiB for CUDAGraph memory|Estimated CUDA graph memory: {NUMBER} GiB")
CONSUMED = re.compile(rf"{NUMBER} GiB for consumed memory|{NUMBER} GiB memory was consumed by non-kv")
TOKENS = re.compile(r"KV cache size: ([0-9][0-9,]{0,18}) tokens")
CONTEXT = re.compile(r"Maximum concurrency for ([0-9][0-9,]{0,18}) tokens")  # on the same line from 0.32 on
# vLLM: its arguments, its effective settings, and the sampling of requests without values.
# Only the first match in a line counts: where nothing follows it, nothing follows a later one.
NON_DEFAULT = re.compile(r"^(?>.*?non-default args: (?=\{))(\{.*\})", re.MULTILINE)
CONFIG = re.compile(r"engine \(v\S+\) with config: .*")
SAMPLING = re.compile(r"^(?>.*?ampling param\S* ).*?(\{[^{}\n]*\})", re.MULTILINE)
# vllm-mlx, one line each.
BANNER = r"^ *{}: (?:ENABLED \(parser: (?P<name>[^\s)]+)\)|Use --)"
SHORTEST = 4  # letters of an abbreviated flag
REPORTED_LONGEST = 20_000  # characters of a line that are read


def read_memory(log: Path) -> Reported:
    """Return the memory in the beginning of a log (for now of vLLM); ``None`` for each missing figure."""
    with log.open("rb") as file:
        return memory_of(bounded(file.read(HEAD).decode(errors="replace")))


def memory_of(text: str) -> Reported:
    """Return the memory that the text of a log reports."""

    def most(pattern: re.Pattern[str]) -> int | None:
        found = [float(next(filter(None, match.groups()))) for match in pattern.finditer(text)]
        return None if not found else int(max(found) * GIB)

    tokens, context = (p.search(text) for p in (TOKENS, CONTEXT))
    rooms = [float(next(filter(None, match.groups()))) for match in CACHE.finditer(text)]
    device = DEVICE.search(text)
    free, total = (None, None) if device is None else (int(float(n) * GIB) for n in device.groups())
    return Reported(
        weights=most(WEIGHTS),
        cache=int(min(rooms) * GIB) if rooms else None,  # that of the device with the least
        tokens=None if tokens is None else int(tokens[1].replace(",", "")),
        context=None if context is None else int(context[1].replace(",", "")),
        activations=most(ACTIVATIONS), graphs=most(GRAPHS), consumed=most(CONSUMED),
        free=free, total=total, requested=most(REQUESTED),
    )  # fmt: skip


@frozen
class EffectiveSettings:
    """The settings of a running engine, ``None`` where it does not report one; an empty name is no parser.

    ``infers``    the engine chose its parsers by itself.
    ``sampling``  by the names of requests, from the model's files or the start; other values are vLLM's own.
    """

    tool_parser: str | None = None
    reasoning_parser: str | None = None
    sampling: Mapping[str, float] | None = None
    prefix_caching: bool | None = None
    infers: bool = False


def read_settings(log: str, health: bytes = b"") -> EffectiveSettings:
    """Return the settings in the beginning of a log, else in the answer of ``/health``."""
    if (non_default := NON_DEFAULT.search(log)) is None:
        tools, thoughts = (_banner(log, what) for what in ("Tool calling", "Reasoning"))
        return _from_health(health) if tools is None else EffectiveSettings(tools, thoughts)
    line, config = non_default[1][:REPORTED_LONGEST], CONFIG.search(log)
    cached = re.search(r"\benable_prefix_caching=(True|False)\b", config[0]) if config else None
    return EffectiveSettings(
        tool_parser=_named(line, "tool_call_parser"),
        reasoning_parser=_named(line, "reasoning_parser"),
        sampling=_sampling(log),
        prefix_caching=cached[1] == "True" if cached else None,
    )


def _banner(log: str, feature: str) -> str | None:
    match = re.search(BANNER.format(feature), log, re.MULTILINE)
    return None if match is None else match["name"] or ""


def mentions(argv: Sequence[str], name: str) -> bool:
    """Return whether a command line, or a file on it, has a sampling value.

    ``--temp 1``, ``--default-temperature=1`` and ``{"temperature": 1.0}`` all set ``temperature``.
    """
    flags = (word.partition("=")[0].lstrip("-").replace("-", "_") for word in argv if word.startswith("--"))
    if any(flag.endswith(name) or (len(flag) >= SHORTEST and name.startswith(flag)) for flag in flags):
        return True
    return any(f'"{name}"' in word for word in argv)


def _named(line: str, key: str) -> str:
    match = re.search(rf"'{key}': '([^'\n]*)'", line)
    return match[1] if match else ""


def _sampling(log: str) -> dict[str, float] | None:
    match = SAMPLING.search(log)
    if match is None or len(match[1]) > REPORTED_LONGEST:
        return None
    try:
        values = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    numbers = (int, float)
    return {k: v for k, v in values.items() if isinstance(k, str) and isinstance(v, numbers)}


def _from_health(body: bytes) -> EffectiveSettings:
    """Return the parser and the state of the prefix cache that mlx-vlm reports."""
    try:
        health: Any = json.loads(body)
    except (ValueError, RecursionError):
        return EffectiveSettings()
    if not isinstance(health, dict):
        return EffectiveSettings()
    cached = health.get("apc_enabled")
    parser = health.get("loaded_tool_parser", False)
    return EffectiveSettings(
        tool_parser=(parser or "") if parser is None or isinstance(parser, str) else None,
        prefix_caching=cached if isinstance(cached, bool) else None,
        infers=True,
    )
