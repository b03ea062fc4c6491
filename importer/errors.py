"""Every failure a user can meet: one tree, one table.

ImporterError
 ├── UsageError        what was typed cannot be meant            exit 2
 ├── HubError          the Hub, the network or the cache          exit 3
 ├── RepositoryError   the repository cannot become a document    exit 4
 ├── DocumentError     a document or its folder                   exit 5
 ├── EngineError       an engine is missing, dies or is in the way exit 6
 ├── ValidationError   the engine ran and a probe failed          exit 1
 ├── ServiceError      a request that the service does not answer exit 7
 ├── SandboxError      a stranger's text could not be analysed     exit 75
 ├── InternalError     a fault of the importer itself             exit 70
 └── Interrupted       the user stopped it                        exit 130

An error is raised by its kind: ``HubError("gated", repo="a/b")``. The kind's row in ``KINDS`` holds the
sentence and the next step; ``docs/errors.md`` shows the same table and a test keeps the two alike.
"""

from __future__ import annotations

from typing import NamedTuple

from importer.messages import worded_field


class Kind(NamedTuple):
    """One row of the table: ``sentence`` and ``hint`` are format strings over the error's details."""

    name: str
    sentence: str
    hint: str


class ImporterError(Exception):
    """A failure with a kind, one sentence, a next step and an exit code."""

    exit_code = 1
    kinds: tuple[Kind, ...] = ()

    def __init__(self, kind: str, **details: object) -> None:
        row = next((k for k in self.kinds if k.name == kind), None)
        if row is None:
            raise KeyError(f"{type(self).__name__} has no kind {kind!r}")
        self.kind = kind
        self.details = details
        shown = {name: worded_field(value) for name, value in details.items()}
        self.message = _one_line(row.sentence.format(**shown))
        self.hint = _one_line(row.hint.format(**shown))
        super().__init__(self.message)


def _one_line(text: str) -> str:
    """Repositories and servers are quoted here: nothing of theirs may steer a terminal."""
    plain = " ".join(text.split())[:600]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


class UsageError(ImporterError):
    """What was typed cannot be meant."""

    exit_code = 2
    kinds = (
        Kind("bad-reference", "{reference!r} is not a model reference: {problem}.",
             "Give owner/name, owner/name@revision, hf://owner/name, a Hub URL, or a directory such as ./model."),
        Kind("traversal", "{reference!r} contains a path step that leaves its place.",
             "Remove '..' and empty steps from the reference."),
        Kind("revision-conflict", "The reference names revision {inline!r} and --revision names {option!r}.",
             "Name the revision once."),
        Kind("bad-option", "{option}: {problem}.", "See 'importer --help'."),
        Kind("unknown-parser", "{engine} {version} has no {field} named {name!r}.", "Near names: {near}."),
        Kind("editor", "The editor {editor!r} failed: {problem}. Nothing was changed.",
             "Set VISUAL or EDITOR to an editor that waits until you are done."),
        Kind("unknown-format", "There is no export format {name!r}.", "Near names: {near}; 'importer export --list' shows all."),
        Kind("unknown-probe", "There is no probe {name!r}.", "Near names: {near}; 'importer validate --list-probes' shows all."),
        Kind("unknown-model", "{url} serves no model named {name!r}.", "Name one with --model; it serves: {known}."),
        Kind("unknown-report", "No report is known by the ending of {name}.", "Known: {known}; or name one with --format."),
        Kind("no-such-directory", "There is no directory {path}.", "Check the path; a Hub id has the form owner/name."),
        Kind("unknown-device", "There is no device {name!r}; near names: {near}.", "Known: {known}; in front of it how many (8xh100-80g). Or say --memory."),
    )  # fmt: skip


class HubError(ImporterError):
    """The Hub, the network between, or the cache in its place."""

    exit_code = 3
    kinds = (
        Kind("not-found", "The Hub has no repository {repo} that this caller can see.",
             "Check the spelling; if it is private, set HF_TOKEN to a token that may read it."),
        Kind("revision-not-found", "{repo} has no revision {revision!r}.",
             "List its branches and tags on the Hub, or leave the revision out."),
        Kind("gated", "{repo} is gated and this caller has not been let in.",
             "Ask for access on {url}, then set HF_TOKEN to a token of that account."),
        Kind("private", "{repo} is private or missing, and no token was given.",
             "Set HF_TOKEN to a token that may read it."),
        Kind("bad-token", "The Hub refused the token.",
             "Check HF_TOKEN, or the token saved by 'hf auth login'; it may have expired."),
        Kind("rate-limited", "The Hub is limiting this caller's requests.",
             "Wait {wait} and try again; a token raises the limit."),
        Kind("server", "The Hub answered {status} for {url} after {tries} tries.", "Try again in a few minutes."),
        Kind("network", "{host} could not be reached: {problem}.",
             "Check the network and HF_ENDPOINT, or use --offline with what is cached."),
        Kind("bad-answer", "The Hub's answer for {url} cannot be used: {problem}.",
             "Check that HF_ENDPOINT names a Hub; otherwise try again."),
        Kind("not-cached", "{repo} is not in the cache and --offline forbids asking the Hub.",
             "Run once without --offline (and without HF_HUB_OFFLINE)."),
        Kind("refused-host", "{url} is outside the hosts this importer talks to.",
             "Set HF_ENDPOINT if that host is your Hub."),
    )  # fmt: skip


class RepositoryError(ImporterError):
    """What the repository holds cannot become a document."""

    exit_code = 4
    kinds = (
        Kind("nothing-to-decide", "{repo} offers nothing to decide from: {problem}.",
             "Check that this is a model repository with a config or a chat template."),
        Kind("not-chat", "{repo} is {what}, not a model that chats or completes.", "{next}"),
        Kind("gguf-only", "{repo} holds only GGUF files, which none of the engines here serve.", "{next}"),
        Kind("broken-json", "{file} in {repo} is not valid JSON: {problem}.", "Tell the repository's owner, or fix the file."),
        Kind("too-large", "{file} in {repo} is larger than the {limit} this importer reads.",
             "No real {file} is that large; check the repository."),
        Kind("not-text", "{file} in {repo} is not UTF-8 text.", "Check the repository."),
        Kind("unreadable", "{file} in {repo} cannot be read: {problem}.", "Check the file's permissions."),
        Kind("too-costly", "{file} in {repo} cannot be analysed within its limits: {limit}.",
             "No real {file} needs that much; check the repository."),
        Kind("bad-weights", "{file} in {repo} is not a sound safetensors file: {problem}.",
             "Leave --exact-fit out; no engine can be trusted with these weights either."),
    )  # fmt: skip


class DocumentError(ImporterError):
    """A document, its receipt, or the folder that holds them."""

    exit_code = 5
    kinds = (
        Kind("exists", "{path} exists already and holds other settings.",
             "Choose another --name or --output, or remove the file first."),
        Kind("conflict", "{path} was edited, and {count} of the edited values changed upstream too: {first}.",
             "The file is as it was: run again with --take mine for the file's, or --take theirs for this import's."),
        Kind("not-a-folder", "{path} is a file where a folder belongs.", "Name a folder with --output."),
        Kind("cannot-write", "{path} could not be written: {problem}.", "Free space, or choose another place with --output or IMPORTER_HOME; nothing was left behind."),
        Kind("no-such-document", "There is no document {name!r} in {folder}.", "See 'importer list'."),
        Kind("invalid", "{path} is not a valid document: {problem}.", "Fix the named key; docs/document.md lists them all."),
        Kind("changed", "{path} has changed since it was shown: its digest is {now}, not {seen}.",
             "Look at it again with 'importer review {name}'."),
        Kind("edited", "{path} changed while it was being edited, so it was left as it is now.", "Your text is kept in {copy}."),
        Kind("cannot-export", "{name} cannot be exported as {format}: {reason}.", "{remedy}"),
        Kind("not-approved", "{name} is not approved (review: {review}), and --approved-only asks for that.",
             "Run 'importer approve {name}' once you have read it, or leave --approved-only out."),
        Kind("cannot-edit", "{path} cannot be edited without touching more than what changes: {problem}.",
             "Make the change by hand, or write that part with one key or one dash to a line."),
        Kind("chat-template", "{path} names a chat template that cannot be used: {problem}.",
             "Import the model again with --template."),
        Kind("never-validated", "{name} as it is now was never run, so there is nothing to report.", "Run 'importer validate {name}'."),
        Kind("no-receipt", "{path} has no readable receipt beside it: {problem}.", "Import the model again."),
    )  # fmt: skip


class EngineError(ImporterError):
    """An engine is missing, dies, or something is in its way."""

    exit_code = 6
    kinds = (
        Kind("unknown-engine", "The importer runs no engine {name!r}.", "Engines: {known}."),
        Kind("engine-missing", "The engine {name} is not installed.", "Run 'importer engine install {name}'."),
        Kind("engine-python", "{variable} names {path}, which is no Python with {packages}.",
             "Correct {variable}, or unset it and run 'importer engine install {name}'."),
        Kind("install-failed", "Installing {name} failed: {problem}.", "The full log is {log}."),
        Kind("engine-died", "{name} ended before it was ready (exit {code}): {problem}.",
             "At fault: {blames}. The full log is {log}."),
        Kind("engine-slow", "{name} was not ready after {seconds} s.", "The full log is {log}."),
        Kind("port-taken", "Port {port} is taken.", "Choose another --port, or leave it out for a free one."),
        Kind("no-weights", "{path} does not hold weights and a tokenizer, so there is nothing to run.",
             "Import a snapshot that has both, or skip validation with --no-validate."),
        Kind("weights-not-local", "The weights of {repo} ({size}) are not on this disk.",
             "Run again with --validate to fetch them into the Hub client's cache."),
        Kind("unreachable", "{url} cannot be asked: {problem}.", "Check the address, and that the server runs."),
        Kind("locked", "{url} does not let this caller in: {says}.", "Name the variable that holds its key with --api-key-env."),
        Kind("would-not-run", "{name} would not run on {engine} here: {problem}.", "{remedy}"),
        Kind("worker-failed", "The {name} worker failed: {problem}.", "Run 'importer doctor'."),
    )  # fmt: skip


class ValidationError(ImporterError):
    """The engine ran, and what it served is not what the document says."""

    exit_code = 1
    kinds = (
        Kind("probes-failed", "{failed} of {total} probes did not pass for {name}.", "See {receipt}, or run 'importer show {name}'."),
    )  # fmt: skip


class ServiceError(ImporterError):
    """A request that the service does not answer, or not so; most are met over HTTP alone."""

    exit_code = 7
    kinds = (
        Kind("bad-request", "The request cannot be meant: {problem}.", "See /openapi.json on the server for what it takes."),
        Kind("bad-json", "The body is no JSON: {problem}.", "Send JSON, with Content-Type: application/json."),
        Kind("no-key", "This address needs an API key.", "Send it as 'Authorization: Bearer KEY'; 'importer keys create' makes one."),
        Kind("wrong-scope", "The key {name!r} may not {scope}.", "Use one with the scope {scope}; it has {has}."),
        Kind("foreign-page", "This request comes from a page of another site.", "Send it from the service's own page, or with an API key."),
        Kind("foreign-host", "{host!r} is not a name of this server.", "Use the address it listens on, or name it with --allowed-host."),
        Kind("no-such-page", "There is nothing at {path}.", "See /openapi.json for what there is."),
        Kind("wrong-method", "{path} does not take {method}.", "See /openapi.json for what it takes."),
        Kind("no-such-job", "There is no job {job!r}.", "See /v1/jobs."),
        Kind("no-such-version", "{name} has no version {number}.", "See /v1/configs/{name}/history."),
        Kind("no-such-key", "There is no key {key!r} that counts.", "See 'importer keys list'."),
        Kind("precondition-failed", "{name} has changed: it is at version {version} now.", "Get it again and look at what is new; its ETag goes into If-Match."),
        Kind("precondition-required", "A change of {name} has to say which version it is of.", "Send If-Match with the ETag that GET answered."),
        Kind("key-made", "This request has made the key {key} already, which was shown once.", "Ask with another Idempotency-Key, and revoke the one that was lost."),
        Kind("key-reused", "The idempotency key {key!r} was used for another request.", "Use a new key for a new request."),
        Kind("not-ended", "The job {job} is {state}, so it cannot be tried again.", "One that failed or was cancelled can be; cancel one that still runs."),
        Kind("has-ended", "The job {job} has ended already: it is {state}.", "See its result; a retry starts it again."),
        Kind("ambiguous", "Several backends could take {reference}: {names}.", "Ask again with one of the candidates as 'backend', a job by its retry; 'auto' leaves it to the server's own machine."),
        Kind("no-directories", "{reference!r} is a directory, and this server imports none from there.", "Import from the Hub, or start the server with --directory."),
        Kind("body-too-large", "The request's body is larger than {limit} bytes.", "Send less at once."),
        Kind("wrong-type", "The body is {type!r}.", "Send {wanted}."),
        Kind("too-many", "There were too many requests from this caller.", "Wait {seconds} s and try again."),
        Kind("too-slow", "The request's body did not arrive within {limit} s.", "Send it at once; a large one needs --body-seconds."),
        Kind("busy", "As many repositories as may be looked at a time are being looked at.", "Try again in {seconds} s, or import: a job waits for its turn."),
        Kind("not-ready", "This process does not work at the moment: {problem}.", "Ask another one, or try again in {seconds} s."),
        Kind("no-database", "The database does not answer.", "Try again in {seconds} s; the server's log tells more."),
        Kind("bad-setting", "{place} cannot be meant: {problem}.", "See 'importer serve --help'; --show-config tells where each value comes from."),
        Kind("no-gallery", "The gallery's database at {place} cannot be used: {problem}.", "Check --database, that its server runs, and that its folder can be written."),
        Kind("newer-gallery", "The gallery's database at {place} is of a newer importer: it has migration {number}, and this one knows {known}.", "Update the importer, or go back to the copy that was made before."),
        Kind("not-listening", "{host} port {port} cannot be listened on: {problem}.", "Choose another --host or --port."),
        Kind("gave-up", "The job {job} was begun and never ended: its workflow is {status}.", "See the server's log, then try it again."),
    )  # fmt: skip


class SandboxError(ImporterError):
    """A stranger's text could not be analysed on this machine now; the text is not to blame."""

    exit_code = 75
    kinds = (
        Kind("starved", "Could not analyse {what}: the machine is busy.", "Try again when the machine has less to do."),
        Kind("lost", "Could not analyse {what}: the process that reads it ended twice without an answer.",
             "Try again when the machine has more free memory; if it happens again, report it."),
    )  # fmt: skip


class InternalError(ImporterError):
    """A fault of the importer itself; told in a sentence all the same."""

    exit_code = 70
    kinds = (
        Kind("internal", "The importer met a fault of its own: {problem}.", "Set IMPORTER_DEBUG=1 to see where, and report it."),
        Kind("output-closed", "The output could not be written: {problem}.", "Free space, or write the output elsewhere."),
    )  # fmt: skip


class Interrupted(ImporterError):
    """The user stopped it."""

    exit_code = 130
    kinds = (Kind("interrupted", "Stopped.", "Nothing half-written was left behind."),)


BRANCHES: tuple[type[ImporterError], ...] = (
    UsageError, HubError, RepositoryError, DocumentError, EngineError, ValidationError, ServiceError,
    SandboxError, InternalError, Interrupted,
)  # fmt: skip
KINDS: dict[str, tuple[type[ImporterError], Kind]] = {k.name: (b, k) for b in BRANCHES for k in b.kinds}
