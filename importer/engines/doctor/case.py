"""The input and the results of checks: a machine's files, an engine's environment, a document and its
weights.
"""

from __future__ import annotations

import math
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import psutil

from importer import backends, config
from importer.document.document import Document
from importer.engines import get, install
from importer.engines.base import Engine
from importer.engines.deaths import ENVIRONMENT, Attribution
from importer.engines.doctor.kinds import DoctorReason
from importer.engines.install import Installed
from importer.errors import EngineError, ImporterError
from importer.frozen import frozen
from importer.hub.folders import read_object
from importer.reasons import Reason
from importer.sentences import render

GB = 10**9
VLLM = backends.of("vllm").builds
X86 = ("x86_64", "AMD64")
LARGEST = 64 * 2**20  # bytes of a tokenizer file that are read
LONGEST = 2**20  # characters read of a file that another program wrote
REQUIRES = re.compile(r"^Requires-Dist:\s*([\w.-]+)\s*==\s*([\w.+!-]+)", re.MULTILINE)
About = Literal["machine", "engine", "document"]


@frozen
class Package:
    """A distribution in an environment: its version, and its ``.dist-info``."""

    version: str
    info: Path

    @property
    def release(self) -> str:
        """Return the version without the build behind ``+``."""
        return self.version.partition("+")[0]

    @property
    def build(self) -> str:
        """Return the build behind ``+``: ``cpu``, ``cu130``, or nothing."""
        return self.version.partition("+")[2]

    def pins(self, name: str) -> set[str]:
        """Return the exact versions of another distribution that it requires, on any machine."""
        requirements = REQUIRES.findall(text_of(self.info / "METADATA"))
        return {
            version
            for package, version in requirements
            if install.distribution_name(package) == install.distribution_name(name)
        }


@frozen
class DoctorCase:
    """The subject of checks. ``root`` is the folder of ``/proc``, ``/sys`` and ``/dev``.

    ``free``     free bytes of memory on the machine, ``swap`` those of swap.
    ``missing``  why the engine is not found, where its variable names a wrong Python.
    ``fit``      the receipt's estimate of memory.
    ``weights``  the model's folder, where it is known and on this disk.
    ``port``     the port of the engine, where the user has named one.
    """

    root: Path = Path("/")
    system: str = sys.platform
    arch: str = field(default_factory=platform.machine)
    free: int = field(default_factory=lambda: psutil.virtual_memory().available)
    swap: int = field(default_factory=lambda: psutil.swap_memory().free)
    home: Path = field(default_factory=config.home)
    engine: Engine | None = None
    installed: Installed | None = None
    missing: EngineError | None = None
    document: Document | None = None
    fit: Mapping[str, object] | None = None
    weights: Path | None = None
    port: int | None = None

    def about(self, part: str) -> str:
        """Return the name of the subject of a check."""
        if part == "engine" and self.engine is not None:
            return self.engine.name
        return str((self.document or {}).get("name") or part) if part == "document" else part

    def runs(self, *names: str) -> bool:
        """Return whether the engine is one of these."""
        return self.engine is not None and self.engine.name in names

    def text(self, path: str) -> str:
        """Return the text of a system file; empty where there is none."""
        return text_of(self.root / path)

    def places(self) -> tuple[Path, ...]:
        """Return the folders that the engine's Python imports packages from."""
        return () if self.installed is None else install.places(self.installed.python)

    def packages(self) -> dict[str, Package]:
        """Return the packages of the engine's Python, by name in lower case with dashes; the first place
        wins.
        """
        distributions: dict[str, Package] = {}
        for info in (i for place in self.places() for i in sorted(place.glob("*.dist-info"))):
            name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
            distributions.setdefault(install.distribution_name(name), Package(version, info))
        return distributions

    def files(self, pattern: str) -> Iterator[Path]:
        """Yield files of the engine's packages, by a pattern below the folders of ``places``."""
        for place in self.places():
            yield from sorted(place.glob(pattern))

    def config(self) -> dict[str, object]:
        """Return the model's ``config.json``; empty where it cannot be read."""
        return self.json("config.json")

    def json(self, name: str) -> dict[str, object]:
        """Return the object in a file of the model; empty where it cannot be read."""
        return (read_object(self.weights, name, LARGEST) if self.weights else None) or {}


@frozen
class Fine:
    """No trouble; ``reason`` has the state."""

    reason: Reason


@frozen
class Trouble:
    """A trouble of a run.

    ``stops``  whether the run would end by it, or be wrong in silence.
    ``part``   the part at fault, by the names of a validation.
    ``error``  the failure of the run, where it has a row of its own in the table of errors.
    """

    reason: Reason
    remedy: Reason
    stops: bool = True
    part: Attribution = ENVIRONMENT
    error: ImporterError | None = None


def of_error(error: EngineError, remedy: Reason) -> Trouble:
    """Return the trouble that would end a run with this error."""
    return Trouble(Reason(DoctorReason.ERROR, problem=error.message), remedy, error=error)


SOUND = Fine(Reason(DoctorReason.SOUND))


Result = Fine | Trouble | None  # ``None``: nothing to check, or no verdict


@frozen
class Check:
    """One trap: its name, its victims, and the function that checks, without a network."""

    name: str
    about: About
    trap: str
    look: Callable[[DoctorCase], Result]


@frozen
class DoctorFinding:
    """The result of a check with its subject: this machine, an engine, or a document."""

    check: str
    subject: str
    result: Result

    @property
    def stops(self) -> bool:
        """Return whether a run would not come to its end."""
        return isinstance(self.result, Trouble) and self.result.stops

    @property
    def verdict(self) -> str:
        """Return the effect on a run in one word."""
        if isinstance(self.result, Trouble):
            return "stops" if self.result.stops else "warning"
        return "not-applicable" if self.result is None else "fine"

    def to_json(self, word: Callable[[Reason], str] = render) -> dict[str, object]:
        """Return one row of a report; ``word`` renders reasons as a front end does."""
        trouble = self.result if isinstance(self.result, Trouble) else None
        return {
            "check": self.check,
            "subject": self.subject,
            "verdict": self.verdict,
            "message": "" if self.result is None else word(self.result.reason),
            "remedy": "" if trouble is None else word(trouble.remedy),
            "part": None if trouble is None else trouble.part,
        }


def of_engine(name: str, **more: Any) -> DoctorCase:
    """Return the case of an engine, installed or not."""
    engine = get(name)
    try:
        return DoctorCase(engine=engine, installed=install.find(engine), **more)
    except EngineError as error:
        return DoctorCase(engine=engine, missing=error, **more)


def workers(case: DoctorCase) -> int:
    """Return the number of workers, each on a card of its own, that the document starts."""
    document = case.document or {}
    pipeline = (document.get("engine_args") or {}).get("pipeline_parallel_size")
    counts = (document.get("tensor_parallel_size"), pipeline)
    return math.prod(each for each in counts if isinstance(each, int) and each > 0)


def text_of(path: Path) -> str:
    """Return the beginning of a text file; nothing where it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(LONGEST)
    except (OSError, ValueError):
        return ""


def number(text: str) -> int | None:
    """Return the whole number in a system file, or ``None``."""
    return int(text) if text.strip().isdecimal() else None


def version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0])[:4])
