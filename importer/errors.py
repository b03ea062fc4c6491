"""Every failure a user can meet: one tree of kinds with fields, and what a process exits with.

ImporterError
 ├── UsageError        what was given is not valid                exit 2
 ├── HubError          the Hub, the network or the cache          exit 3
 ├── RepositoryError   the repository cannot become a document    exit 4
 ├── DocumentError     a document or its folder                   exit 5
 ├── EngineError       an engine is missing, dies or is in the way exit 6
 ├── ValidationError   the engine ran and a probe failed          exit 1
 ├── ServiceError      a request that the service does not answer exit 7
 ├── RemoteError       a run by a command elsewhere gave no result exit 8
 ├── SandboxError      a stranger's text could not be analysed     exit 75
 ├── InternalError     a fault of the importer itself             exit 70
 └── Interrupted       the user stopped it                        exit 130

An error is raised by its kind: ``HubError("gated", repo="a/b", url=…)``. A test looks for each kind that is
raised, and compares its fields with those of its texts. A kind has its sentence, and the next step where
all front ends name the same; others are the front ends' own (``cli.messages``, ``service.messages``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, NamedTuple, Self

from importer.reasons import Text
from importer.sentences import placeholders, row, worded


class Setting(StrEnum):
    """A value that a person gives, by its name in requests; the command line calls it by its flag."""

    ADAPTER = "adapter"
    BACKEND = "backend"
    CONCURRENCY = "concurrency"
    CONTEXT = "context"
    DATABASE = "database"
    DEVICE = "device"
    ENDPOINT = "endpoint"
    ENGINE_VERSION = "engine_version"
    FRONTEND = "frontend"
    GOAL = "goal"
    HUB_HOSTS = "hub_hosts"
    KEY_NAME = "key_name"
    MEMORY = "memory"
    NAME = "name"
    PARSERS = "parsers"
    REVISION = "revision"
    SET = "set"
    TEMPLATE = "template"
    UNSET = "unset"


class Kind(NamedTuple):
    """An error's sentence, the next step that all front ends name alike, and what else it carries.

    ``more`` are fields that only texts of front ends show, ``data`` those that only programs read.
    """

    text: str
    step: str = ""
    more: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields that its texts show."""
        return tuple(dict.fromkeys((*placeholders(self.text), *placeholders(self.step), *self.more)))


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
        return one_line(worded(_text(self.kind, instead or {}), self.details, instead))

    def but(self, **details: object) -> Self:
        """Make the same failure with some other details."""
        return type(self)(self.kind, **{**self.details, **details})


def one_line(text: str) -> str:
    """Return a text in one printable line: nothing that repositories and servers write may steer a
    terminal.
    """
    plain = " ".join(text.split())[:600]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


class UsageError(ImporterError):
    """What was given is not valid. ``bad-option`` is the command line's own."""

    exit_code = 2
    kinds: ClassVar = {
        "bad-reference": Kind(
            "{reference!r} is not a model reference: {problem}.",
            "Give owner/name, owner/name@revision, hf://owner/name, a Hub URL, or a directory such as "
            "./model.",
        ),
        "traversal": Kind(
            "{reference!r} contains a path step that leaves its place.",
            "Remove '..' and empty steps from the reference.",
        ),
        "revision-conflict": Kind(
            "The reference names revision {inline!r}, and {option!r} was named beside it.",
            "Name the revision once.",
        ),
        "bad-option": Kind("{option}: {problem}.", data=("near", "command")),
        "bad-value": Kind("Invalid value for {setting}: {problem}.", data=("value",)),
        "unknown-setting": Kind("Unknown setting {name!r} in {setting}.", "{near}"),
        "unknown-parser": Kind("{engine} {version} has no {field} named {name!r}.", "Did you mean {near}?"),
        "editor": Kind("The editor {editor!r} failed: {problem}. Nothing was changed."),
        "unknown-format": Kind("There is no export format {name!r}.", more=("near",)),
        "unknown-probe": Kind("There is no probe {name!r}.", more=("near",)),
        "unknown-model": Kind("{url} serves no model named {name!r}.", more=("known",)),
        "unknown-report": Kind("No report is known by the ending of {name}.", more=("known",)),
        "bad-header": Kind("Header {header} {problem}."),
        "no-such-directory": Kind(
            "There is no directory {path}.", "Check the path; a Hub id has the form owner/name."
        ),
        "no-model-file": Kind(
            "{path} is a file, and not of a model.",
            "Give the folder that has the model's config.json and weights.",
        ),
        "extra-missing": Kind(
            "The package {package} is not installed; it belongs to the extra '{extra}'.",
            "Install it: pip install 'model-importer[{extra}]'.",
        ),
        "unknown-device": Kind("Unknown device {name!r}. {near}"),
        "bad-target": Kind(
            "{target!r} is no command to run importer by: {problem}.",
            "Give a command such as 'ssh gpu1', or a preset such as ssh:gpu1.",
        ),
        "broken-part": Kind(
            "{name!r} of the package {package} cannot be used in importer.{group}: {problem}.",
            "Update the package, or remove it.",
        ),
    }


class HubError(ImporterError):
    """The Hub, the network between, or the cache in its place."""

    exit_code = 3
    kinds: ClassVar = {
        "not-found": Kind("The Hub has no repository {repo} that this caller can see."),
        "revision-not-found": Kind(
            "{repo} has no revision {revision!r}.",
            "List its branches and tags on the Hub, or leave the revision out. A URL has %2F for a slash of "
            "its name.",
        ),
        "gated": Kind("{repo} is gated and this caller has not been let in{said}.", more=("url",)),
        "private": Kind("{repo} is private or missing, and no token was given."),
        "forbidden": Kind("The Hub refused {what} of {repo} with status {status}{said}."),
        "missing-file": Kind(
            "{repo} lists {file}, and the server answered {status} for it{said}.",
            "Try again later, or check that HF_ENDPOINT names a complete mirror.",
        ),
        "storage": Kind(
            "{host}, to which the Hub sends for {file} of {repo}, answered {status}{said}.",
            "Try again in a few minutes. If this machine's clock is wrong, correct it.",
        ),
        "no-route": Kind(
            "{url} answered {status}{said}: {repo} is not there, or the address is not a Hub's.",
            "Check the name of the repository, and that HF_ENDPOINT names a Hub.",
        ),
        "bad-token": Kind(
            "The Hub refused the token{said}.",
            "Check HF_TOKEN, or the token saved by 'hf auth login'; it may have expired.",
        ),
        "rate-limited": Kind(
            "The Hub is limiting this caller's requests{said}.",
            "Wait {wait} and try again; a token raises the limit.",
            data=("seconds",),
        ),
        "server": Kind(
            "{url} answered {status} after {tries:try|tries}{said}.", "Try again in a few minutes."
        ),
        "network": Kind("{host} could not be reached: {problem}."),
        "proxy": Kind(
            "The proxy {proxy} of {variable} did not lead to {host}: {problem}.",
            "Correct or unset {variable}, or add {host} to NO_PROXY.",
        ),
        "certificate": Kind(
            "The certificate of {host} could not be checked: {problem}.",
            "Set SSL_CERT_FILE to a file with your authorities' certificates; REQUESTS_CA_BUNDLE and "
            "CURL_CA_BUNDLE do not count. In use: {authorities}.",
        ),
        "bad-answer": Kind(
            "The Hub's answer for {url} cannot be used: {problem}.",
            "Check that HF_ENDPOINT names a Hub; otherwise try again.",
        ),
        "not-cached": Kind("The cache lacks {what} of {repo}, and the Hub must not be asked."),
        "refused-host": Kind(
            "{sender} redirects to {url}, a host that importer does not follow.", "{remedy}"
        ),
    }


class RepositoryError(ImporterError):
    """What the repository holds cannot become a document."""

    exit_code = 4
    kinds: ClassVar = {
        "nothing-to-decide": Kind(
            "{repo} offers nothing to decide from: {problem}.",
            "Name the repository or folder that has the config.json and the weights of the model.",
        ),
        "not-chat": Kind("{repo} is {what}. None of the engines here serve such a model.", "{next}"),
        "gguf-only": Kind("{repo} holds only GGUF files, which none of the engines here serve.", "{next}"),
        "gguf-file": Kind("{file} of {repo} is a GGUF file, which none of the engines here serve.", "{next}"),
        "tag": Kind(
            "':{tag}' is a tag of llama.cpp, Ollama or Docker, for one quantisation of {repo}. importer "
            "imports whole repositories.",
            "{next}",
        ),
        "subfolder": Kind(
            "{path!r} is a folder of {repo}; engines load a repository from its top.", "{next}"
        ),
        "no-such-path": Kind("{repo} lists no file or folder {path!r}.", "{next}"),
        "in-folders": Kind(
            "{repo} has no model at its top, and config.json with weights in its folders: {folders}.",
            "Import one of these folders, such as {first}; from the Hub fetch it to this disk first.",
        ),
        "broken-json": Kind(
            "{file} in {repo} is not valid JSON: {problem}.", "Tell the repository's owner, or fix the file."
        ),
        "too-large": Kind(
            "{file} in {repo} is larger than the {limit} this importer reads.",
            "No real {file} is that large; check the repository.",
        ),
        "not-text": Kind("{file} in {repo} is not UTF-8 text.", "Check the repository."),
        "unreadable": Kind(
            "{file} in {repo} cannot be read: {problem}.",
            "Check the file's permissions; put the file itself in the place of a link (cp -L), or fetch it "
            "again.",
        ),
        "too-costly": Kind(
            "{file} in {repo} cannot be analysed within its limits: {limit}.",
            "No real {file} needs that much; check the repository.",
        ),
        "bad-weights": Kind("{file} in {repo} is not a sound safetensors file: {problem}."),
        "tokens-beyond": Kind(
            "{repo} needs the tokens {tokens}, and its embedding has no row for them ({rows} rows)."
        ),
    }


class DocumentError(ImporterError):
    """A document, its receipt, the folder that holds them, or what is written of them."""

    exit_code = 5
    kinds: ClassVar = {
        "exists": Kind("{path} exists already and holds other settings."),
        "conflict": Kind(
            "{path} was edited, and {count} of the edited values changed upstream too: {first}.",
            data=("conflicts",),
        ),
        "not-a-folder": Kind("{path} is a file where a folder belongs."),
        "foreign-file": Kind(
            "{path} exists, and no build of a gallery wrote it. Nothing was written.",
            "Name another folder for the site, or move the file away.",
        ),
        "cannot-write": Kind("{path} could not be written: {problem}."),
        "cannot-open": Kind("{path} could not be opened: {problem}."),
        "output-closed": Kind("The output could not be written: {problem}."),
        "no-such-document": Kind("There is no document {name!r} in {folder}."),
        "invalid": Kind("{path} is not a valid document: {problem}.", "Fix the named key.", data=("errors",)),
        "changed": Kind(
            "{path} has changed since it was shown: its digest is {now}, not {seen}.", more=("name",)
        ),
        "edited": Kind(
            "{path} changed while it was being edited, so it was left as it is now.", more=("copy",)
        ),
        "cannot-export": Kind("{name} has no such export: {reason}.", "{remedy}"),
        "not-approved": Kind(
            "{name} is not approved (review: {review}), and only an approved document was asked for."
        ),
        "cannot-edit": Kind(
            "{path} cannot be edited without touching more than what changes: {problem}.",
            "Make the change by hand, or write that part with one key or one dash to a line.",
        ),
        "chat-template": Kind("{path} names a chat template that cannot be used: {problem}."),
        "never-validated": Kind("{name} as it is now was never run, so there is nothing to report."),
        "no-receipt": Kind(
            "{path} has no readable receipt: {problem}.",
            "Import the model again: what is damaged stays beside it, with a number in its name.",
        ),
        "other-backend": Kind("{name} is the document for {has}, not for {backend}."),
        "other-device": Kind("{name} is the document for {has}, and this import is for {device}."),
        "no-value": Kind("{name} has no value for {key!r}.", "Did you mean {near}?"),
        "no-documents": Kind("There are no documents in {folder}."),
        "needs-approval": Kind("{name} is not approved here, and it sets {what}."),
        "newer-receipt": Kind(
            "{path} is of a newer importer: its schema is {schema}, and this one reads up to {known}.",
            "Update the importer.",
        ),
    }


class EngineError(ImporterError):
    """An engine is missing, dies, or something is in its way."""

    exit_code = 6
    kinds: ClassVar = {
        "unknown-engine": Kind("The importer runs no engine {name!r}.", "Engines: {known}."),
        "engine-missing": Kind("The engine {name} is not installed."),
        "engine-python": Kind(
            "{variable} names {path}, and that is no Python with {packages}.", more=("name",)
        ),
        "install-failed": Kind("Installing {name} failed: {problem}.", "The full log is {log}."),
        "parsers-not-fetched": Kind(
            "The parsers of {name} were not fetched: {problem}.",
            "Try again, or set IMPORTER_PARSERS=installed to import without them.",
        ),
        "engine-died": Kind(
            "{name} ended before it was ready (exit {code}): {problem}.",
            "At fault: {blames}. The full log is {log}.",
        ),
        "engine-slow": Kind("{name} was not ready after {seconds} s.", "The full log is {log}."),
        "port-taken": Kind("Port {port} is taken."),
        "no-port": Kind(
            "No engine can listen at {address}: {problem}.", "Check the firewall or the sandbox."
        ),
        "not-measured": Kind(
            "The memory of {name} was not measured: {problem}.",
            "The document and its estimate are as they were.",
        ),
        "no-weights": Kind("{path} does not hold weights and a tokenizer, so there is nothing to run."),
        "weights-not-local": Kind("The weights of {repo} ({size}) are not on this disk."),
        "unreachable": Kind(
            "{url} cannot be asked: {problem}.", "Check the address, and that the server runs."
        ),
        "locked": Kind("{url} does not let this caller in: {says}."),
        "would-not-run": Kind(
            "{name} would not run on {engine} here: {problem:;}.", more=("remedy",), data=("troubles",)
        ),
        "worker-failed": Kind("The {name} worker failed: {problem}."),
    }


class ValidationError(ImporterError):
    """The engine ran, and what it served is not what the document says."""

    exit_code = 1
    kinds: ClassVar = {
        "probes-failed": Kind("{failed} of {total:probe|probes} did not pass for {name}.", more=("receipt",))
    }


class ServiceError(ImporterError):
    """A request that the service does not answer, or not so; most are met over HTTP alone."""

    exit_code = 7
    kinds: ClassVar = {
        "bad-request": Kind("The request is not valid: {problem}.", data=("errors",)),
        "bad-json": Kind("The body is not valid JSON: {problem}."),
        "no-key": Kind("This address needs an API key.", more=("sent",)),
        "wrong-scope": Kind("The key {name!r} lacks the scope {scope}.", more=("has",)),
        "needs-approver": Kind("{what} needs the scope approve, and the key {name!r} has {has}."),
        "code-not-approved": Kind(
            "{name} is not approved as it is now, so it is not run. {what} needs that."
        ),
        "foreign-page": Kind("This request comes from a page of another site."),
        "foreign-host": Kind("{host!r} is not a name of this server."),
        "no-such-page": Kind("There is nothing at {path}."),
        "page-not-built": Kind("The web page of this checkout is not built; the API answers without it."),
        "wrong-method": Kind("{path} does not take {method}."),
        "no-such-job": Kind("There is no job {job!r}."),
        "no-such-version": Kind("{name} has no version {number}."),
        "no-such-key": Kind("There is no active key {key!r}."),
        "precondition-failed": Kind("{name} has changed: it is at version {version} now."),
        "precondition-required": Kind("A change of {name} has to say which version it is of."),
        "not-ended": Kind("The job {job} is {state}, so it cannot be tried again."),
        "has-ended": Kind("The job {job} has ended already: it is {state}."),
        "ambiguous": Kind("{reference} runs on {names}. Choose one.", data=("candidates",)),
        "no-directories": Kind("{reference!r} is a directory, and this server reads none from there."),
        "body-too-large": Kind("The request's body is larger than {limit} bytes."),
        "wrong-type": Kind("The body is {type!r}.", more=("wanted",)),
        "too-many": Kind("There were too many requests from this caller.", more=("seconds",)),
        "too-slow": Kind("The request's body did not arrive within {limit} s."),
        "busy": Kind("Too many previews in progress.", more=("seconds",)),
        "not-ready": Kind("This process does not work at the moment: {problem}.", more=("seconds",)),
        "no-database": Kind("The database does not answer.", more=("seconds",)),
        "bad-setting": Kind("Invalid value for {place}: {problem}."),
        "no-gallery": Kind("The gallery's database at {place} cannot be used: {problem}."),
        "newer-gallery": Kind(
            "The gallery's database at {place} is of a newer importer: it has migration {number}, and this "
            "one knows {known}."
        ),
        "early-gallery": Kind(
            "The gallery's database at {place} is of the development before 0.1.0, and cannot be brought "
            "up to date."
        ),
        "not-listening": Kind("{host} port {port} cannot be listened on: {problem}."),
        "gave-up": Kind("The job {job} was begun {times} times, and each time its process died."),
        "digest-required": Kind(
            "A review or a release of {name} needs the digest of the content that was seen."
        ),
        "not-ready-to-release": Kind("{name} cannot be released, it is {state}: {why}."),
        "unknown-parameter": Kind("Unknown query parameter {name!r}.", more=("near",), data=("errors",)),
        "too-many-connections": Kind("The server has as many connections as it takes.", more=("seconds",)),
    }


class RemoteError(ImporterError):
    """A command that runs importer elsewhere (``where``) gave no result."""

    exit_code = 8
    kinds: ClassVar = {
        "program-missing": Kind("The program {program} of {where} is not on this machine."),
        "too-late": Kind("{where} {what}. It was ended.", "Check what the command prints there."),
        "no-result": Kind(
            "{where} ended with status {status} and without a result: {says}.",
            "Check that the command finds importer there.",
        ),
        "far-end": Kind(
            "{where} could not run it: {problem}", "Do there what the sentence says, then try again.",
            data=("cause",),
        ),
        "other-version": Kind(
            "{where} has importer {theirs}, and this machine has importer {ours}.",
            "Install one version at both ends.",
        ),
        "other-digest": Kind(
            "{where} returned a result for {got}, and {sent} was sent.",
            "Nothing was recorded. Check what else the command prints, then try again.",
        ),
        "bad-result": Kind(
            "The result of {where} cannot be used: {problem}.",
            "Nothing was recorded. Check what else the command prints.",
        ),
        "bad-bundle": Kind(
            "The task cannot be read: {problem}.",
            "Use one version of importer at both ends.",
        ),
        "folder-beside": Kind(
            "{name} has its model in the folder {model}, relative to its own place, which is another one "
            "elsewhere.",
            "Import it by its whole path, if the other machine has it there, or from the Hub.",
        ),
    }  # fmt: skip


class SandboxError(ImporterError):
    """A stranger's text could not be analysed on this machine now; the text is not to blame."""

    exit_code = 75
    kinds: ClassVar = {
        "starved": Kind(
            "Could not analyse {what}: the machine is busy.", "Try again when the machine has less to do."
        ),
        "lost": Kind(
            "Could not analyse {what}: the process that reads it ended twice without an answer.",
            "Try again when the machine has more free memory; if it happens again, report it.",
        ),
        "closed": Kind("Could not analyse {what}: the importer is ending.", "Ask again when it runs."),
    }


class InternalError(ImporterError):
    """A fault of the importer itself; told in a sentence all the same."""

    exit_code = 70
    kinds: ClassVar = {"internal": Kind("The importer met a fault of its own: {problem}.")}


def described(error: Exception) -> ImporterError:
    """Return an error as it is where it has a kind; any other one is a fault of the importer."""
    if isinstance(error, ImporterError):
        return error
    return InternalError("internal", problem=f"{type(error).__name__}: {error}")


class Interrupted(ImporterError):
    """The user stopped it, or what follows a run elsewhere."""

    exit_code = 130
    kinds: ClassVar = {"interrupted": Kind("Stopped.", "Nothing half-written was left behind.")}


BRANCHES: tuple[type[ImporterError], ...] = (
    UsageError, HubError, RepositoryError, DocumentError, EngineError, ValidationError,
    ServiceError, RemoteError, SandboxError, InternalError, Interrupted,
)  # fmt: skip
KINDS: Mapping[str, type[ImporterError]] = {kind: branch for branch in BRANCHES for kind in branch.kinds}
STEPS: dict[str, Text] = {
    kind: found.step for branch in BRANCHES for kind, found in branch.kinds.items() if found.step
}


def _text(kind: str, instead: Mapping[str, Text]) -> Text:
    branch = KINDS[kind]
    return instead.get(f"{branch.__name__}.{kind}") or branch.kinds[kind].text


def sentence_row(kind: str, instead: Mapping[str, Text]) -> str:
    """Return a kind's sentence with the names of its fields, for tables."""
    return row(_text(kind, instead))
