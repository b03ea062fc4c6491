"""Every failure a user can meet: one tree of kinds with fields, and what a process exits with.

ImporterError
 ├── UsageError        what was given is not valid                exit 2
 ├── HubError          the Hub, the network or the cache          exit 3
 ├── RepositoryError   the repository cannot become a document    exit 4
 ├── DocumentError     a document or its folder                   exit 5
 ├── EngineError       an engine is missing, dies or is in the way exit 6
 ├── ValidationError   the engine ran and a probe failed          exit 1
 ├── ServiceError      a request that the service does not answer exit 7
 ├── LauncherError     a run on a cluster or another machine       exit 8
 ├── SandboxError      a stranger's text could not be analysed     exit 75
 ├── InternalError     a fault of the importer itself             exit 70
 └── Interrupted       the user stopped it                        exit 130

An error is raised by its kind: ``HubError("gated", repo="a/b", url=…)``. A misspelt kind fails mypy; a test
compares the fields with those that ``kinds`` declares. The sentence of a kind stands in ``messages.errors``;
the next step is each front end's own (``cli.messages``, ``service.messages``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple, Self

from importer.messages import Text, catalogue, row, sentence_of


class Setting(StrEnum):
    """A value that a person gives, by its name in requests; the command line calls it by its flag."""

    BACKEND = "backend"
    CONCURRENCY = "concurrency"
    CONTEXT = "context"
    DATABASE = "database"
    DEVICE = "device"
    ENDPOINT = "endpoint"
    ENGINE = "engine"
    ENGINE_VERSION = "engine_version"
    FILTER = "filter"
    FRONTEND = "frontend"
    GOAL = "goal"
    KEY_NAME = "key_name"
    MEMORY = "memory"
    NAME = "name"
    ORGANISATION = "organisation"
    REVISION = "revision"
    SET = "set"
    TEMPLATE = "template"
    UNSET = "unset"


class Kind(NamedTuple):
    """What an error carries: ``fields`` that its texts need, ``data`` that only programs read."""

    fields: tuple[str, ...]
    data: tuple[str, ...]


def _of(*fields: str, data: tuple[str, ...] = ()) -> Kind:
    return Kind(fields, data)


class ImporterError(Exception):
    """A failure with a kind, its fields and an exit code; ``str`` gives its sentence."""

    exit_code: ClassVar[int] = 1
    kinds: ClassVar[Mapping[str, Kind]] = {}

    def __init__(self, kind: str, /, **details: object) -> None:
        if kind not in self.kinds:
            raise KeyError(f"{type(self).__name__} has no kind {kind!r}")
        self.kind = kind
        self.details: Mapping[str, object] = details
        super().__init__(kind)

    def __str__(self) -> str:
        """Return the sentence without any front end's own words."""
        return self.sentence()

    @property
    def message(self) -> str:
        """Return the same as ``str``."""
        return self.sentence()

    def sentence(self, instead: Mapping[str, Text] | None = None) -> str:
        """Return one printable line; ``instead`` holds a front end's own texts by key."""
        return one_line(sentence_of(f"{type(self).__name__}.{self.kind}", self.details, instead))

    def but(self, **details: object) -> Self:
        """Make the same failure with some other details."""
        return type(self)(self.kind, **{**self.details, **details})


def one_line(text: str) -> str:
    """Return a text in one printable line: nothing that repositories and servers write may steer a
    terminal.
    """
    plain = " ".join(text.split())[:600]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


UsageKind = Literal[
    "bad-reference", "traversal", "revision-conflict", "bad-option", "bad-value", "unknown-setting",
    "unknown-parser", "editor", "unknown-format", "unknown-probe", "unknown-model", "unknown-report",
    "bad-header", "no-such-directory", "extra-missing", "unknown-device", "bad-target",
]  # fmt: skip
HubKind = Literal[
    "not-found", "revision-not-found", "gated", "private", "forbidden", "bad-token", "rate-limited", "server",
    "network", "bad-answer", "not-cached", "refused-host",
]  # fmt: skip
RepositoryKind = Literal[
    "nothing-to-decide", "not-chat", "gguf-only", "gguf-file", "broken-json", "too-large", "not-text",
    "unreadable", "too-costly", "bad-weights", "tokens-beyond",
]  # fmt: skip
DocumentKind = Literal[
    "exists", "conflict", "not-a-folder", "cannot-write", "no-such-document", "invalid", "changed", "edited",
    "cannot-export", "not-approved", "cannot-edit", "chat-template", "never-validated", "no-receipt",
    "newer-receipt", "other-backend", "other-device", "no-documents", "needs-approval",
]  # fmt: skip
EngineKind = Literal[
    "unknown-engine", "engine-missing", "engine-python", "install-failed", "engine-died", "engine-slow",
    "port-taken", "no-weights", "weights-not-local", "unreachable", "locked", "would-not-run",
    "worker-failed",
]  # fmt: skip
ServiceKind = Literal[
    "bad-request", "bad-json", "no-key", "wrong-scope", "needs-approver", "code-not-approved", "foreign-page",
    "foreign-host", "no-such-page", "page-not-built",
    "no-such-finding", "finding-settled", "finding-outdated", "no-such-webhook", "webhook-made",
    "bad-webhook", "not-deleted",
    "wrong-method", "no-such-job", "no-such-version", "no-such-key", "precondition-failed",
    "precondition-required", "key-made", "key-reused", "not-ended", "has-ended", "ambiguous",
    "no-directories", "body-too-large", "wrong-type", "too-many", "too-slow", "busy", "not-ready",
    "no-database", "bad-setting", "no-gallery", "newer-gallery", "not-listening", "gave-up",
    "digest-required", "not-ready-to-release", "no-such-release", "withdrawn",
    "unknown-parameter", "too-many-connections", "unknown-pool",
]  # fmt: skip
LauncherKind = Literal[
    "cluster-unreachable", "cluster-refused", "cluster-answer", "launcher-missing", "queued-too-long",
    "node-lost",
    "remote-failed", "remote-cancelled", "far-end", "other-digest", "bad-result", "bad-bundle",
    "folder-beside", "followed-elsewhere",
]  # fmt: skip


class UsageError(ImporterError):
    """What was given is not valid. ``bad-option`` is the command line's own."""

    exit_code = 2
    kinds: ClassVar = {
        "bad-reference": _of("reference", "problem"),
        "traversal": _of("reference"),
        "revision-conflict": _of("inline", "option"),
        "bad-option": _of("option", "problem"),
        "bad-value": _of("setting", "problem", data=("value",)),
        "unknown-setting": _of("setting", "name", "near"),
        "unknown-parser": _of("engine", "version", "field", "name", "near"),
        "editor": _of("editor", "problem"),
        "unknown-format": _of("name", "near"),
        "unknown-probe": _of("name", "near"),
        "unknown-model": _of("url", "name", "known"),
        "unknown-report": _of("name", "known"),
        "bad-header": _of("header", "problem"),
        "no-such-directory": _of("path"),
        "extra-missing": _of("package", "extra"),
        "unknown-device": _of("name", "near"),
        "bad-target": _of("target", "problem"),
    }

    def __init__(self, kind: UsageKind, /, **details: object) -> None:
        super().__init__(kind, **details)


class HubError(ImporterError):
    """The Hub, the network between, or the cache in its place."""

    exit_code = 3
    kinds: ClassVar = {
        "not-found": _of("repo"),
        "revision-not-found": _of("repo", "revision"),
        "gated": _of("repo", "url"),
        "private": _of("repo"),
        "forbidden": _of("what", "repo", "status"),
        "bad-token": _of(),
        "rate-limited": _of("wait", data=("seconds",)),
        "server": _of("status", "url", "tries"),
        "network": _of("host", "problem"),
        "bad-answer": _of("url", "problem"),
        "not-cached": _of("repo"),
        "refused-host": _of("url"),
    }

    def __init__(self, kind: HubKind, /, **details: object) -> None:
        super().__init__(kind, **details)


class RepositoryError(ImporterError):
    """What the repository holds cannot become a document."""

    exit_code = 4
    kinds: ClassVar = {
        "nothing-to-decide": _of("repo", "problem"),
        "not-chat": _of("repo", "what", "next"),
        "gguf-only": _of("repo", "next"),
        "gguf-file": _of("file", "repo", "next"),
        "broken-json": _of("file", "repo", "problem"),
        "too-large": _of("file", "repo", "limit"),
        "not-text": _of("file", "repo"),
        "unreadable": _of("file", "repo", "problem"),
        "too-costly": _of("file", "repo", "limit"),
        "bad-weights": _of("file", "repo", "problem"),
        "tokens-beyond": _of("repo", "tokens", "rows"),
    }

    def __init__(self, kind: RepositoryKind, /, **details: object) -> None:
        super().__init__(kind, **details)


class DocumentError(ImporterError):
    """A document, its receipt, or the folder that holds them."""

    exit_code = 5
    kinds: ClassVar = {
        "exists": _of("path"),
        "conflict": _of("path", "count", "first", data=("conflicts",)),
        "not-a-folder": _of("path"),
        "cannot-write": _of("path", "problem"),
        "no-such-document": _of("name", "folder"),
        "invalid": _of("path", "problem", data=("errors",)),
        "changed": _of("path", "name", "now", "seen"),
        "edited": _of("path", "copy"),
        "cannot-export": _of("name", "format", "reason", "remedy"),
        "not-approved": _of("name", "review"),
        "cannot-edit": _of("path", "problem"),
        "chat-template": _of("path", "problem"),
        "never-validated": _of("name"),
        "no-receipt": _of("path", "problem"),
        "other-backend": _of("name", "has", "backend"),
        "other-device": _of("name", "has", "device"),
        "no-documents": _of("folder"),
        "needs-approval": _of("name", "what"),
        "newer-receipt": _of("path", "schema", "known"),
    }

    def __init__(self, kind: DocumentKind, /, **details: object) -> None:
        super().__init__(kind, **details)


class EngineError(ImporterError):
    """An engine is missing, dies, or something is in its way."""

    exit_code = 6
    kinds: ClassVar = {
        "unknown-engine": _of("name", "known"),
        "engine-missing": _of("name"),
        "engine-python": _of("variable", "path", "packages", "name"),
        "install-failed": _of("name", "problem", "log"),
        "engine-died": _of("name", "code", "problem", "log", "blames"),
        "engine-slow": _of("name", "seconds", "log"),
        "port-taken": _of("port"),
        "no-weights": _of("path"),
        "weights-not-local": _of("repo", "size"),
        "unreachable": _of("url", "problem"),
        "locked": _of("url", "says"),
        "would-not-run": _of("name", "engine", "problem", "remedy", data=("troubles",)),
        "worker-failed": _of("name", "problem"),
    }

    def __init__(self, kind: EngineKind, /, **details: object) -> None:
        super().__init__(kind, **details)


class ValidationError(ImporterError):
    """The engine ran, and what it served is not what the document says."""

    exit_code = 1
    kinds: ClassVar = {"probes-failed": _of("failed", "total", "name", "receipt")}

    def __init__(self, kind: Literal["probes-failed"], /, **details: object) -> None:
        super().__init__(kind, **details)


class ServiceError(ImporterError):
    """A request that the service does not answer, or not so; most are met over HTTP alone."""

    exit_code = 7
    kinds: ClassVar = {
        "bad-request": _of("problem", data=("errors",)), "bad-json": _of("problem"), "no-key": _of(),
        "wrong-scope": _of("name", "scope", "has"), "needs-approver": _of("what", "name", "has"),
        "code-not-approved": _of("name", "what"), "foreign-page": _of(), "foreign-host": _of("host"),
        "no-such-page": _of("path"), "page-not-built": _of(), "wrong-method": _of("path", "method"),
        "no-such-job": _of("job"), "no-such-version": _of("name", "number"), "no-such-key": _of("key"),
        "no-such-finding": _of("finding"), "finding-settled": _of("finding", "state"),
        "finding-outdated": _of("name", "compared", "version"), "no-such-webhook": _of("webhook"),
        "webhook-made": _of("webhook"), "bad-webhook": _of("problem"), "not-deleted": _of("name"),
        "precondition-failed": _of("name", "version"), "precondition-required": _of("name"),
        "key-made": _of("key"), "key-reused": _of("key"), "not-ended": _of("job", "state"),
        "has-ended": _of("job", "state"), "ambiguous": _of("reference", "names", data=("candidates",)),
        "no-directories": _of("reference"), "body-too-large": _of("limit"),
        "wrong-type": _of("type", "wanted"), "too-many": _of("seconds"), "too-slow": _of("limit"),
        "busy": _of("seconds"), "not-ready": _of("problem", "seconds"), "no-database": _of("seconds"),
        "bad-setting": _of("place", "problem"), "no-gallery": _of("place", "problem"),
        "newer-gallery": _of("place", "number", "known"),
        "not-listening": _of("host", "port", "problem"), "gave-up": _of("job", "times"),
        "digest-required": _of("name"), "not-ready-to-release": _of("name", "state", "why"),
        "no-such-release": _of("name", "number"), "withdrawn": _of("name", "number"),
        "unknown-parameter": _of("name", "near", data=("errors",)),
        "too-many-connections": _of("seconds"), "unknown-pool": _of("name", "known"),
    }  # fmt: skip

    def __init__(self, kind: ServiceKind, /, **details: object) -> None:
        super().__init__(kind, **details)


class LauncherError(ImporterError):
    """A run on a cluster or another machine (``where``) gave no result; ``run`` is its id there."""

    exit_code = 8
    kinds: ClassVar = {
        "cluster-unreachable": _of("where", "problem"),
        "cluster-refused": _of("where", "status", "says"),
        "cluster-answer": _of("where", "tool", "asked", "came"),
        "launcher-missing": _of("where", "program"),
        "queued-too-long": _of("where", "run", "seconds", "waits_for"),
        "node-lost": _of("where", "run", "says"),
        "remote-failed": _of("where", "run", "what", "says"),
        "remote-cancelled": _of("where", "run"),
        "far-end": _of("where", "run", "problem", data=("cause",)),
        "other-digest": _of("where", "run", "sent", "got"),
        "bad-result": _of("where", "run", "problem"), "bad-bundle": _of("problem"),
        "folder-beside": _of("name", "model"), "followed-elsewhere": _of("name", "where", "run"),
    }  # fmt: skip

    def __init__(self, kind: LauncherKind, /, **details: object) -> None:
        super().__init__(kind, **details)


class SandboxError(ImporterError):
    """A stranger's text could not be analysed on this machine now; the text is not to blame."""

    exit_code = 75
    kinds: ClassVar = {"starved": _of("what"), "lost": _of("what"), "closed": _of("what")}

    def __init__(self, kind: Literal["starved", "lost", "closed"], /, **details: object) -> None:
        super().__init__(kind, **details)


class InternalError(ImporterError):
    """A fault of the importer itself; told in a sentence all the same."""

    exit_code = 70
    kinds: ClassVar = {"internal": _of("problem"), "output-closed": _of("problem")}

    def __init__(self, kind: Literal["internal", "output-closed"], /, **details: object) -> None:
        super().__init__(kind, **details)


class Interrupted(ImporterError):
    """The user stopped it, or what follows a run elsewhere."""

    exit_code = 130
    kinds: ClassVar = {"interrupted": _of(), "detached": _of("name", "where", "run")}

    def __init__(self, kind: Literal["interrupted", "detached"], /, **details: object) -> None:
        super().__init__(kind, **details)


BRANCHES: tuple[type[ImporterError], ...] = (
    UsageError, HubError, RepositoryError, DocumentError, EngineError, ValidationError, ServiceError,
    LauncherError, SandboxError, InternalError, Interrupted,
)  # fmt: skip
KINDS: Mapping[str, type[ImporterError]] = {kind: branch for branch in BRANCHES for kind in branch.kinds}


def sentence_row(kind: str, instead: Mapping[str, Text]) -> str:
    """Return a kind's sentence with the names of its fields, for tables."""
    key = f"{KINDS[kind].__name__}.{kind}"
    return row(instead.get(key) or catalogue()[key])
