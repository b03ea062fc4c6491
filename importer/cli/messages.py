"""The messages of the command line: next steps with flags and commands, and the names of settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from importer import backends, errors
from importer.app.request import OPTIONS
from importer.errors import STEPS, HubError, ImporterError, one_line
from importer.reasons import Text
from importer.sentences import row, worded, worded_field


class Command(NamedTuple):
    """The command that prints a next step: the words that lead to its help, its options, and the option
    with the documents' folder as typed.
    """

    words: str
    options: frozenset[str]
    dir: str = ""


# What runs in this process. The default is an import, whose threads know no other.
RUNNING: ContextVar[Callable[[], Command]] = ContextVar("RUNNING")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
QUOTED = re.compile(r"'[^']*'")  # a whole command, whose own parser takes its options

# The doctor's texts with commands and flags.
DOCTOR: dict[str, Text] = {
    "DoctorRemedy.correct-variable": "Correct {variable}, or unset it and run 'importer engine install "
    "{name}'.",
    "DoctorRemedy.fewer-cards": "Import again for this machine, without --device, or run it where the"
    " cards are.",
    "DoctorRemedy.fetch-snapshot": "Remove {folder}, then run 'importer validate NAME --fetch'.",
    "DoctorRemedy.give-cards": "Start the container with --gpus all, or as your runtime says it.",
    "DoctorRemedy.install": "Run 'importer engine install {name}'.",
    "DoctorRemedy.install-again": "Run 'importer engine remove {name}', then 'importer engine install "
    "{name}'.",
    "DoctorRemedy.less-memory": "End other programs, raise the container's limit, or import again "
    "with --memory {gib}GiB.",
    "DoctorRemedy.less-memory-on-cpu": "End other programs, raise the container's limit, or import again "
    "with --memory {gib}GiB. A smaller VLLM_CPU_KVCACHE_SPACE or "
    "kv_cache_memory_bytes leaves more for the weights.",
    "DoctorRemedy.raise-shared": "Give the container --ipc=host or --shm-size={gib}g.",
}
# What to do instead of an export.
EXPORTS: dict[str, Text] = {
    "ExportRemedy.import-for": "Import the model again with --backend {backends:or}.",
    "ExportRemedy.without-template": "Serve it another way, or import the model again without --template.",
}


# What settles a warning.
ATTENTION: dict[str, Text] = {
    "AttentionStep.approve": "'importer review NAME --approve', or take the setting out",
    "AttentionStep.fit": "--device, --memory or --context",
    "AttentionStep.start": "--backend or --engine-version, or mend the files",
    "AttentionStep.allow-code": "--set trust_remote_code=true, after a look at the files",
    "AttentionStep.read-code": "read it before --set trust_remote_code=true",
    "AttentionStep.template": "--template FILE, with a template that is mended",
    "AttentionStep.parser": "--set {key}=NAME or {key}=none",
    "AttentionStep.no-tools": "--set tool_parser=none accepts it",
    "AttentionStep.conflict": "--on-conflict mine or theirs",
    "AttentionStep.device": "--per-device makes one for each",
    "AttentionStep.look": "--set {key}=VALUE",
}


def _not_installed(fields: Mapping[str, object]) -> str:
    """Return the message of a missing proof, with the command that installs {engine}."""
    name = backends.of(fields["engine"]).installed_as
    return f"not proved: 'importer engine install {name}' lets the engine's own parsers read the template"


def _see(fields: Mapping[str, object]) -> str:
    """See '{command} --help'."""
    near = f"Did you mean {fields['near']}? " if "near" in fields else ""
    return f"{near}See '{fields['command']} --help'."


def _takes(fields: Mapping[str, object]) -> str:
    """'importer info keys' lists the settings with their types; '{command} --help' describes every option."""
    setting = str(fields["setting"])
    if setting in ("--set", "--unset"):
        return "'importer info keys' lists the settings and their types."
    if setting.startswith("--"):
        return f"See '{fields['command']} --help' for the values of {setting}."
    return f"Correct {setting}."


def _fetch(fields: Mapping[str, Any]) -> str:
    """Return the command that fetches {folder} of {repo} at {revision}, and what to import then."""
    import shlex

    folder, local = fields["folder"], fields["repo"].rpartition("/")[2]
    pattern, there = shlex.quote(f"{folder}/*"), shlex.quote(f"./{local}/{folder}")
    pinned = f"{fields['repo']} --revision {fields['revision']}"
    return f"Import {there} after: hf download {pinned} --include {pattern} --local-dir {local}"


def _pair(fields: Mapping[str, Any]) -> str:
    """Return the command that imports {repo} with {settings} for its draft."""
    import shlex

    setting = shlex.quote(f"engine_args.speculative_config={fields['settings']}")
    return f"Import {fields['repo']}, the model that it drafts for, with it: --backend vllm --set {setting}"


def _offer(fields: Mapping[str, Any]) -> str:
    """Return the flag for each of {templates}."""
    names = " or ".join(f"--template {name}" for name in fields["templates"])
    return f"{names} offers it tools, with a chat template of importer's own"


def _shown(fields: Mapping[str, Any]) -> str:
    """Return the flag for each of {templates}."""
    return f"{' or '.join(f'--template {name}' for name in fields['templates'])} would show them"


# Texts in place of those of the kinds, by key.
INSTEAD: Mapping[str, Text] = DOCTOR | EXPORTS | ATTENTION | {
    "UsageError.revision-conflict": "The reference names revision {inline!r} and --revision names {option!r}.",
    "HubError.not-cached": "The cache lacks {what} of {repo}, and --offline forbids asking the Hub.",
    "DocumentError.not-approved": "{name} is not approved (review: {review}), and --approved-only asks for that.",
    "Unavailable.not-fetched": "not proved: {problem} Try again: 'importer engine install {parsers}'.",
    "Unavailable.not-installed": _not_installed,
    "FileRemedy.fetch": _fetch,
    "KindRemedy.adapted": "Import {repo}, its base model, with it: --backend vllm --adapter {adapter}",
    "KindRemedy.adapted-unnamed": "Import its base model with --backend vllm --adapter, and this adapter.",
    "KindRemedy.drafted-for": _pair,
    "ForeignReason.would-offer": _offer,
    "CoverageEffect.template-offered": _shown,
    "TemplateFault.offered": "--template {template}",
    "BackendReason.other-could": "{engine} could load it there: --backend {backend}",
    "Setting.adapter": "--adapter",
    "Setting.backend": "--backend",
    "Setting.concurrency": "--concurrency",
    "Setting.context": "--context",
    "Setting.database": "--database",
    "Setting.device": "--device",
    "Setting.endpoint": "HF_ENDPOINT",
    "Setting.engine_version": "--engine-version",
    "Setting.frontend": "--frontend",
    "Setting.goal": "--goal",
    "Setting.hub_hosts": "IMPORTER_HUB_HOSTS",
    "Setting.parsers": "IMPORTER_PARSERS",
    "Setting.key_name": "NAME",
    "Setting.memory": "--memory",
    "Setting.name": "--name",
    "Setting.revision": "--revision",
    "Setting.set": "--set",
    "Setting.template": "--template",
    "Setting.unset": "--unset",
}  # fmt: skip


# The next step by kind.
# Of several sentences a command prints those whose options it has; {command} is itself.
HINTS: Mapping[str, Text | tuple[str, ...]] = STEPS | {
    "bad-option": _see,
    "bad-value": _takes,
    "editor": "Set VISUAL or EDITOR to an editor that waits until you are done.",
    "unknown-setting": "{near} 'importer info keys' lists all.",
    "unknown-format": "Did you mean {near}? 'importer export --list' shows all.",
    "unknown-probe": "Did you mean {near}? 'importer validate --list-probes' shows all.",
    "unknown-model": "Name one with --model; it serves: {known}.",
    "bad-header": "Write --header-env Name=VARIABLE.",
    "unknown-report": ("Known: {known}.", "Or name one with --format."),
    "unknown-device": ("'importer info devices' lists all. Eight of a device are 8xNAME.", "Or give --memory."),
    "not-found": "Check the spelling; if it is private, set HF_TOKEN to a token that may read it.",
    "gated": "Ask for access on {url}, then set HF_TOKEN to a token of that account.",
    "private": "Check the spelling; if it is private, set HF_TOKEN to a token that may read it.",
    "forbidden": "Set HF_TOKEN to a token that may read it, unless the message names another cause.",
    "network": ("Check the network and HF_ENDPOINT.", "Or use what is cached, with --offline."),
    "not-cached": ("Run it once with the Hub: unset HF_HUB_OFFLINE.", "Leave --offline out."),
    "bad-weights": ("Fetch the weights again: no engine can be trusted with these.", "Without --exact-fit they are not read."),
    "tokens-beyond": "Use weights and a tokenizer of one model: no engine can serve these together.",
    "exists": ("Move that file away.", "Or choose another --name or --dir.", "Or choose another --output."),
    "conflict": ("The file is as it was.", "Add --on-conflict mine to keep your edited values, or --on-conflict theirs to take the imported ones."),
    "not-a-folder": ("Move that file away.", "Or name another folder with --dir."),
    "cannot-write": ("Check rights and free space, or set IMPORTER_HOME to another place; nothing was left behind.", "--dir names another folder.", "--output names another file."),
    "no-such-document": "See 'importer list{dir}'.",
    "no-documents": ("Import a model first.", "Or name a folder with --dir."),
    "invalid": "Fix the named key; 'importer info keys' lists all settings.",
    "changed": "Look at it again with 'importer review {name}{dir}'.",
    "edited": "Your text is kept in {copy}.",
    "not-approved": "Run 'importer review {name} --approve{dir}' once you have read it, or leave --approved-only out.",
    "chat-template": "Import the model again with another template: 'importer REFERENCE --template NAME'.",
    "needs-approval": "Read it and approve it with 'importer review {name}{dir}'; then run or export it.",
    "never-validated": "Run 'importer validate {name}{dir}'.",
    "engine-missing": "Run 'importer engine install {name}'.",
    "engine-python": "Correct {variable}, or unset it and run 'importer engine install {name}'.",
    "port-taken": ("End the program that listens there.", "Or choose another --port, or leave it out for a free one."),
    "no-weights": "Import a repository or a folder that has both.",
    "weights-not-local": "Run again with --fetch to fetch them into the Hub client's cache.",
    "locked": "Name the variable that holds its key with --api-key-env.",
    "would-not-run": "{remedy}",
    "worker-failed": "Run 'importer doctor'.",
    "program-missing": "Install {program}, or put its whole path into --on.",
    "probes-failed": "See {receipt}, or run 'importer show {name}{dir}'.",
    "no-such-key": "See 'importer admin api-keys list'.",
    "bad-setting": "See '{command} --help'.",
    "other-backend": ("Leave --name out, so that the document for {backend} has its own name, or choose another.", "'importer REFERENCE --backend {backend}' writes one for {backend}."),
    "other-device": "Leave --name out and add --per-device, so that {device} has its own document, or choose another --name.",
    "no-gallery": "Check --database, that its server runs, and that its folder can be written.",
    "newer-gallery": "Update the importer, or go back to the copy that was made before.",
    "early-gallery": "Export the documents with the importer that made it, and choose another --database.",
    "not-listening": "Choose another --host or --port.",
    "internal": "Run it again with -v to see where, and report it.",
    "cannot-open": "Check the path and its permissions.",
    "output-closed": "Free space, or write the output elsewhere.",
}  # fmt: skip
# Kinds that are met over HTTP alone.
ELSEWHERE = frozenset({
    "bad-request", "bad-json", "no-key", "wrong-scope", "foreign-page", "foreign-host", "no-such-page",
    "page-not-built",
    "wrong-method", "no-such-job", "no-such-version", "precondition-failed", "precondition-required",
    "needs-approver", "code-not-approved", "not-ended", "has-ended", "ambiguous", "no-directories", "body-too-large",
    "wrong-type", "too-many", "too-slow", "busy", "not-ready", "no-database", "gave-up",
    "digest-required", "not-ready-to-release",
    "unknown-parameter", "too-many-connections",
})  # fmt: skip


# What a warning is about, where its key is no setting.
ABOUT = {
    "request_coverage": "chat template",
    "code": "code of the repository",
    "sisters": "quantised versions",
}
SPECULATION = "speculation: off; --set {key}={method} enables it (no min_p, logit_bias)"


def sentence(error: ImporterError) -> str:
    """Return the failure in one line."""
    return error.sentence(INSTEAD)


def hint(error: ImporterError, reference: str | None = None) -> str:
    """Return the next step in one line; ``reference`` is the user's text, which may name a folder here."""
    if reference and _is_folder_taken_for_an_id(error, reference):
        return one_line(f"{reference} is a folder here: write ./{reference} to import it.")
    running = RUNNING.get(_import)()
    fields = {"command": running.words, "dir": running.dir, **error.details}
    return one_line(" ".join(worded(text, fields, INSTEAD) for text in _texts(error.kind, running)))


def _import() -> Command:
    return Command("importer import", frozenset(option.flag for option in OPTIONS.values()))


def _texts(kind: str, running: Command) -> Iterator[Text]:
    """Yield the sentences of a kind's next step, but those that name an option of other commands."""
    texts = HINTS.get(kind, ())
    for text in texts if isinstance(texts, tuple) else (texts,):
        if not isinstance(text, str) or running.options >= {*OPTION.findall(QUOTED.sub("", text))}:
            yield text


def _is_folder_taken_for_an_id(error: ImporterError, reference: str) -> bool:
    if error.kind != "bad-reference" and not (isinstance(error, HubError) and "/" in reference):
        return False
    from pathlib import Path

    from importer.hub.reference import is_directory

    try:
        return not is_directory(reference) and Path(reference).is_dir()
    except (OSError, ValueError):
        return False


def line(error: ImporterError) -> str:
    """Return the failure and the next step."""
    return f"{sentence(error)} {hint(error)}"


def error_json(error: ImporterError, reference: str | None = None) -> dict[str, object]:
    """Return the error's members in a line of ``--json``; ``reference`` is the user's text."""
    return {"kind": error.kind, "message": sentence(error), "hint": hint(error, reference)}


def text(value: object) -> str:
    """Return a reason, or another field, in the words of this front end."""
    return str(worded_field(value, INSTEAD))


def sentence_row(kind: str) -> str:
    """Return a kind's sentence with the names of its fields, for tables."""
    return errors.sentence_row(kind, INSTEAD)


def hint_row(kind: str) -> str:
    """Return a kind's next step with the names of its fields."""
    texts = HINTS[kind]
    return " ".join(map(row, texts)) if isinstance(texts, tuple) else row(texts)
