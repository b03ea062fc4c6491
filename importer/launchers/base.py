"""What a launcher does, what it is given, and the states of what runs at the far end.

Where a validation runs: the text of ``--on``, as a type.

``ray://HOST:PORT``, ``k8s:CONTEXT/NAMESPACE``, ``ssh:[USER@]HOST[:PORT]`` or ``slurm:PARTITION``, each with
options behind a question mark: ``ssh:box?python=/opt/venv/bin/python``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches
from importlib import import_module
from ipaddress import IPv6Address
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from importer import config
from importer.deadline import Deadline
from importer.errors import UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.registry import Registry

LONGEST = 2000  # characters


class PlaceReason(ReasonKind):
    """Why a text names no target."""

    NO_SCHEME = "no-scheme", "it has no scheme; schemes are {schemes}"
    UNKNOWN_SCHEME = "unknown-scheme", "{scheme!r} is no scheme; schemes are {schemes}"
    BAD_ADDRESS = "bad-address", "its address is not one of {scheme}, such as {example}"
    UNKNOWN_OPTION = "unknown-option", "{scheme} has no option {name!r} (did you mean {near}?)"
    BAD_OPTION = "bad-option", "{value!r} is no value of the option {name}"
    TWICE = "twice", "the option {name} stands twice"
    UNPRINTABLE = "unprintable", "it is too long, or has characters that cannot be printed"
    NO_IMAGE = "no-image", "its pod needs an image with the engine and the importer, as in {example}"


class Form(NamedTuple):
    """How an address of one scheme is written, and the options beside the common ones.

    ``module``  its ``launcher(target)`` returns the Launcher; imported at its first use.
    """

    module: str
    address: re.Pattern[str]
    example: str
    options: Mapping[str, re.Pattern[str]]


_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[(?P<inner>[0-9A-Fa-f:.]+)\])"
_PORT = "(?::(?P<port>[0-9]{1,5}))?"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
NUMBER, AMOUNT = re.compile("[0-9]{1,6}"), re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?(?:[KMGT]i?B?)?")
PATH, WORD = re.compile(r"[~/A-Za-z0-9._][A-Za-z0-9._/+@-]*"), re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
# ``python`` has the importer at the far end; ``importer=sent`` sends this one's own wheel there.
COMMON: Mapping[str, re.Pattern[str]] = {
    "python": PATH, "importer": re.compile(r"sent|installed"),
    "cpus": NUMBER, "gpus": NUMBER, "memory": AMOUNT,
}  # fmt: skip
FORMS = Registry[Form]("launchers", {
    "ray": Form(
        "importer.launchers.ray",
        re.compile(f"//{_HOST}{_PORT}"), "ray://10.0.0.5:8265", {"tls": re.compile("yes|no")}
    ),
    "ssh": Form(
        "importer.launchers.ssh",
        re.compile(f"(?:{_NAME}@)?{_HOST}{_PORT}"), "ssh:user@box:22",
        {"config": PATH, "folder": PATH},
    ),
    "k8s": Form(
        "importer.launchers.kubernetes",
        re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:@/-]*/{_NAME}"), "k8s:my-context/my-namespace",
        {"image": WORD, "queue": WORD, "secret": WORD, "account": WORD},
    ),
    "slurm": Form(
        "importer.launchers.slurm",
        re.compile(_NAME), "slurm:gpu", {"host": WORD, "account": WORD, "image": WORD, "config": PATH}
    ),
}, Form, lambda part: import_module(part.module).launcher)  # fmt: skip


@frozen
class Target:
    """A scheme, its address as written behind it, and options; ``text`` is the whole."""

    scheme: str
    address: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the target without options: what is shown and kept."""
        return f"{self.scheme}:{self.address}"

    @property
    def sent(self) -> bool:
        """Return whether this importer's own wheel goes to the far end."""
        return self.options.get("importer") == "sent"

    @property
    def python(self) -> str:
        """Return the Python at the far end."""
        return self.options.get("python", "python3")


def parse_target(text: str) -> Target:
    """Return the target of a text; raises UsageError: "bad-target" or "broken-part"."""
    if not text.isprintable() or len(text) > LONGEST:
        raise _bad(text, PlaceReason.UNPRINTABLE)
    place, _, query = text.partition("?")
    scheme, colon, address = place.partition(":")
    if not colon:
        raise _bad(text, PlaceReason.NO_SCHEME, schemes=tuple(dict(FORMS.every())))
    try:
        form = FORMS[scheme]
    except KeyError:
        schemes = tuple(dict(FORMS.every()))
        raise _bad(text, PlaceReason.UNKNOWN_SCHEME, scheme=scheme, schemes=schemes) from None
    match = form.address.fullmatch(address)
    if match is None or not _exists(match.groupdict()):
        raise _bad(text, PlaceReason.BAD_ADDRESS, scheme=scheme, example=form.example)
    return Target(scheme, address, _options(text, scheme, query))


def _options(text: str, scheme: str, query: str) -> dict[str, str]:
    known, found = {**COMMON, **FORMS[scheme].options}, dict[str, str]()
    for item in query.split("&") if query else ():
        name, _, value = item.partition("=")
        if name not in known:
            near = tuple(get_close_matches(name, known)) or tuple(known)
            raise _bad(text, PlaceReason.UNKNOWN_OPTION, scheme=scheme, name=name, near=near)
        if name in found:
            raise _bad(text, PlaceReason.TWICE, name=name)
        value = unquote(value)
        if not value.isprintable() or not known[name].fullmatch(value):
            raise _bad(text, PlaceReason.BAD_OPTION, name=name, value=value)
        found[name] = value
    return found


def _exists(parts: Mapping[str, str | None]) -> bool:
    """Return whether there can be the port of an address, and the IPv6 address in its brackets."""
    port, inner = parts.get("port"), parts.get("inner")
    try:
        IPv6Address(inner or "::")
    except ValueError:
        return False
    return port is None or config.number(port, 65535) is not None


def _bad(text: str, reason: PlaceReason, **fields: object) -> UsageError:
    return UsageError("bad-target", target=text[:LONGEST], problem=Reason(reason, **fields))


FAR_END = ("-P", "-m", "importer", "run-task")  # what a Python at the far end runs, and then the task's file


@frozen
class Resources:
    """What the far end reserves: processors, cards, bytes of memory; ``None`` leaves it to the cluster."""

    cpus: int = 1
    gpus: int = 0
    memory: int | None = None

    def __str__(self) -> str:
        """Return what a run waits for."""
        parts = [f"{self.cpus} CPU" + "s" * (self.cpus != 1)]
        parts += [f"{self.gpus} GPU" + "s" * (self.gpus != 1)] if self.gpus else []
        parts += [f"{self.memory / 2**30:.1f} GiB"] if self.memory else []
        return ", ".join(parts)


@frozen
class Secret:
    """A secret that lies at the far end under this name: its value never passes through here."""

    name: str
    key: str


@frozen
class RemoteTask:
    """A validation for the far end. Everything that is sent may be read there, so it holds no secret.

    ``id``       of the run, ``[a-z0-9-]``, at most 50 characters: the same for the same question, so that a
                 submission can be repeated. ``bundle``  the input of ``importer run-task``, JSON in UTF-8.
    ``wheel``    this importer's own wheel, where the target asks for it (``importer=sent``).
    ``secrets``  the far end's environment variables, each by reference. ``seconds``  for the run itself.
    """

    id: str
    bundle: bytes
    digest: str
    engine: str
    resources: Resources = Resources()
    wheel: Path | None = None
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    seconds: int = 6 * 3600


@frozen
class RemoteRun:
    """A run at the far end: its id there, under which launcher, and where."""

    id: str
    launcher: str
    where: str

    @classmethod
    def of(cls, ident: str, target: Target) -> RemoteRun:
        """Return the run with this id at a target; it need not have been submitted."""
        return cls(ident, target.scheme, target.text)


class FailureKind(ReasonKind):
    """Why a run failed at the far end without a result of its own."""

    ENVIRONMENT = "environment", "since its environment could not be made ready"
    COMMAND = "command", "since the importer there ended without a result"
    MEMORY = "memory", "since it took more memory than it had"
    TIME = "time", "since it took more time than it had"
    UNSCHEDULABLE = "unschedulable", "since the cluster has no place for it"
    OTHER = "other", "for a reason of the cluster"


@frozen
class Absent:
    """Nothing with this id is there: it was never submitted, or it was removed."""


@frozen
class Queued:
    """It waits; ``waits_for`` is what for, in the cluster's own words."""

    waits_for: str = ""


@frozen
class Running:
    """It runs; ``node`` is where, if that is known."""

    node: str = ""


@frozen
class Succeeded:
    """It has ended, and its result can be fetched."""


@frozen
class Failed:
    """It has ended without a result; ``says`` is the cluster's own text."""

    kind: FailureKind
    says: str = ""


@frozen
class Lost:
    """Its machine is gone, and it with it."""

    says: str = ""


@frozen
class Cancelled:
    """It was cancelled."""


RemoteState = Absent | Queued | Running | Succeeded | Failed | Lost | Cancelled


class Launcher(Protocol):
    """A way to run tasks elsewhere. Every method may be repeated, also by another process after a kill.

    All raise LauncherError: "cluster-unreachable" where nobody answers (it is asked again), "cluster-refused"
    for a refusal, "cluster-answer" for an answer that is none, "launcher-missing" where a program is missing
    here.
    """

    def within(self, deadline: Deadline) -> Launcher:
        """Return the same launcher, all of whose answers have come by a deadline or not at all."""

    def submit(self, task: RemoteTask) -> RemoteRun:
        """Submit a task once: a run with its id that is there already is returned as it is."""

    def state(self, run: RemoteRun) -> RemoteState:
        """Return the state of a run; ``Absent`` for an id that is not there."""

    def logs(self, run: RemoteRun) -> str:
        """Return its output so far, or the last part of it; "" where there is none."""

    def cancel(self, run: RemoteRun) -> None:
        """End a run with all its processes; one that has ended or is absent is no error."""

    def fetch(self, run: RemoteRun) -> str:
        """Return the standard output of ``run-task``, with the lines of its result (``result.read``)."""

    def facts(self, run: RemoteRun) -> Mapping[str, str]:
        """Return what the cluster knows of where it ran: ``node``, ``image`` with its digest; or nothing."""

    def remove(self, run: RemoteRun) -> None:
        """Delete what a run that has ended left at the far end; an absent one is no error."""
