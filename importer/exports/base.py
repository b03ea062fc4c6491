"""The common part of all exports: files for one consumer, or the reason for their absence; origin,
losses, texts.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, Self

import yaml

from importer.document import template_file
from importer.document.check import CONTEXT, ValueReason
from importer.document.document import Document, document_of
from importer.document.document_keys import OPTIONS, digest, parse, parser
from importer.document.effective import EDITED, effective
from importer.document.receipt import Receipt
from importer.document.template_file import ChatTemplate
from importer.engines.base import NEUTRAL, invalid
from importer.frozen import frozen
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import Rule
from importer.version import __version__


class Unexportable(ReasonKind):
    """Why a document has no such export."""

    DIRECTORY = "directory", "its model is a directory of one machine"
    FRONTEND = "frontend", "it is written for vLLM's Rust frontend, and {consumer} has a frontend of its own"
    LOCALAI_BACKEND = "localai-backend", "LocalAI has no backend {backend}"
    LOCALAI_DIRECTORY = (
        "localai-directory",
        "LocalAI refuses paths and looks only into its own folder of models",
    )
    NO_FEATURE = "no-feature", "{consumer} has no feature for {uses:and}"
    OTHER_BACKEND = "other-backend", "it is written for {backend}, not for {engine}"
    PARSER_IS_DATA = (
        "parser-is-data",
        "its parser is a response template, which this consumer reads from the model's {file} alone",
    )
    TEMPLATE_IN_FOLDER = "template-in-folder", "its server takes a chat template from the model's folder only"
    TEMPLATE_IS_FILE = "template-is-file", "its chat template is a file, and this consumer takes none"
    VLLM_LACKS = "vllm-lacks", "it is written for {backend}, whose parsers and settings vLLM does not have"


class ExportRemedy(ReasonKind):
    """The change that makes an export possible."""

    IMPORT_A_COPY = (
        "import-a-copy",
        "Put importer.response_template into {file} of a copy of the model, and import the copy.",
    )
    IMPORT_FOR = "import-for", "Import the model again for {backends:or}."
    OTHER_FORMAT = "other-format", "Export it as kubernetes: a Deployment serves every kind of model."
    IMPORT_FROM_HUB = "import-from-hub", "Import the model from the Hub."
    PYTHON_FRONTEND = "python-frontend", "Import the model again for vLLM's Python frontend."
    SERVE_A_COPY = (
        "serve-a-copy",
        "Put the template into a copy of that folder as {file}, and serve the copy.",
    )
    WITHOUT_TEMPLATE = (
        "without-template",
        "Serve it another way, or import the model again without the template.",
    )


class LossEffect(StrEnum):
    """What a consumer makes of a part of a document."""

    ADDED = "added"
    CHANGED = "changed"
    DROPPED = "dropped"
    NOT_PINNED = "not-pinned"


class Loss(ReasonKind):
    """A part of a document that a consumer lacks or changes, or that the export adds."""

    ADDED = "added", "{values} is added: what the engine does by itself, in place of LocalAI's own values."
    ARGUMENT_OF_SERVER = (
        "argument-of-server",
        "engine_args.{key} is left out: it is the server's, and LocalAI runs the engine alone.",
    )
    AUTO_CONTEXT = (
        "auto-context",
        "max_model_len auto is left out: LocalAI takes a number, and vLLM the model's own context.",
    )
    ARGUMENTS = "arguments", "engine_args ({keys}): LocalAI's {backend} backend reads none."
    COMMIT = (
        "commit",
        (
            "The commit is not pinned: LocalAI's {backend} backend asks the Hub for the newest one. "
            "HF_HUB_OFFLINE=1 after its first start keeps the one that is installed."
        ),
    )
    CONTEXT_AS_MAXIMUM = (
        "context-as-maximum",
        "max_tokens is the whole context: unset, LocalAI's backend ends after {tokens} tokens.",
    )
    ENVIRONMENT = "environment", "env.{key} is left out: set the variable for LocalAI's process."
    FILE_NAME = "file-name", "{file!r} is left out of files: such a name may lead out of LocalAI's folder."
    FLAG = "flag", "options: {option!r} is left out: LocalAI would make it a flag of the engine."
    GREEDY = "greedy", "temperature 0 is written as {value}: LocalAI's backends take 0 for unset."
    KEY = "key", "{key}"
    MAXIMUM = (
        "maximum",
        "max_tokens is not set, so LocalAI's backend ends every answer after {tokens} tokens.",
    )
    NO_PIN = "no-pin", "The commit {revision} is not pinned: {consumer} has no place for a revision."
    PARSER_VERSIONS = (
        "parser-versions",
        "{key} {name} is not in vLLM {versions}; look which one LocalAI runs.",
    )
    PENALTIES = "penalties", "{keys}: LocalAI's own table may set what is zero or unset here."
    REMOTE_CODE = "remote-code", "trust_remote_code: LocalAI's mlx-vlm backend never sets it."
    REPEAT_PENALTY = (
        "repeat-penalty",
        "repeat_penalty does not reach vLLM through LocalAI; clients cannot send it there either.",
    )
    SEED = "seed", "seed 0 is none for LocalAI's backends."
    SERVED_NAME = (
        "served-name",
        "Clients use the id {model} in place of the name {name}: a recipe serves no other name.",
    )
    STOPS = (
        "stops",
        "stopwords: LocalAI looks for them in text, from which vLLM has taken special tokens out.",
    )
    TEMPLATE = (
        "template",
        "The chat template is not carried over, nor its tools: LocalAI renders with the model's own.",
    )
    THINKING_OFF = (
        "thinking-off",
        "{key}: false does not reach the template; a template that thinks by default will.",
    )
    VALUE = "value", "{key} is left out: {problem}."
    VARIABLE = "variable", "chat_template_kwargs.{key} does not reach the template."


# The effect of a loss; every other one drops a part.
EFFECTS: Mapping[Loss, LossEffect] = {
    Loss.ADDED: LossEffect.ADDED,
    Loss.COMMIT: LossEffect.NOT_PINNED,
    Loss.CONTEXT_AS_MAXIMUM: LossEffect.ADDED,
    Loss.GREEDY: LossEffect.CHANGED,
    Loss.MAXIMUM: LossEffect.ADDED,
    Loss.PARSER_VERSIONS: LossEffect.CHANGED,
    Loss.PENALTIES: LossEffect.ADDED,
}


def loss_json(loss: Reason) -> dict[str, str]:
    """Return effect, kind and sentence of a loss."""
    kind = Loss(loss.kind)
    effect = EFFECTS.get(kind, LossEffect.DROPPED)
    return {"effect": effect.value, "kind": kind.value, "message": render(loss)}


def _source(fields: Fields) -> str:
    at = f" at {fields['revision']}" if fields["revision"] else ""
    return f"{fields['name']}: {fields['model']}{at}, for {fields['engine']}"


class ExportComment(ReasonKind):
    """A comment of an export."""

    CACHE_GUESSED = (
        "cache-guessed",
        "{variable} is a guess: {gib} GiB of this machine's memory for the KV cache; raise it for more load.",
    )
    COMMAND = "command", "{command}"
    ENGINE_OF_CONSUMER = (
        "engine-of-consumer",
        "The document is for vLLM {version}; {consumer} runs the vLLM that is installed with it.",
    )
    FITTED = "fitted", "Context and memory were chosen for {device} ({kind})."
    FITTED_ONCE = (
        "fitted-once",
        "The import chose for {device} ({kind}); since then {edited:and} was edited.",
    )
    FITTED_TO_OTHER = "fitted-to-other", "WARNING: this is for {meant}, and the document for something else."
    FROM_CLIENTS = "from-clients", "{server} takes these from clients only, so send them: {values}"
    INFERRED = (
        "inferred",
        "The server infers its parsers from the chat template and the vocabulary; it takes no names.",
    )
    NO_OPTION = "no-option", "{server} has no option for: {losses}"
    NO_REVISION = (
        "no-revision",
        "{server} takes no revision, so this commit is fetched into {folder} and served from there.",
    )
    RESOURCES = (
        "resources",
        "Check the resources: {processors} processors are a guess, {memory}Gi is {why}.",
    )
    SOURCE = "source", _source
    UNAPPROVED = "unapproved", "WARNING: this document is not approved in its present form."
    UNPINNED = "unpinned", "WARNING: the document names no commit, so whatever is newest will be served."
    UNRUN = "unrun", "{text}"
    WRITTEN = "written", "Written by importer {version} from the document {digest} (review: {review})."


def unrun(text: str, **fields: object) -> Reason:
    """Return the comment on how a format was checked, and what it needs before it runs."""
    return Reason(ExportComment.UNRUN, text=text.format(**fields))


class MemoryReason(ReasonKind):
    """Why an export requests so much of a machine's own memory."""

    ESTIMATE = "estimate", "the fit's high estimate"
    GUESS = "guess", "a guess"
    WEIGHTS_ONCE = "weights-once", "{gib} GiB and the weights once"


Device = Literal["gpu", "cpu"]
HUB_ID = re.compile(r"(?!.*\.\.)\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
# Keys about a document that are no settings of a server.
ABOUT = (
    "name", "description", "backend", "known_usecases", "embeddings", "template", "artifacts", "importer",
)  # fmt: skip


@frozen
class Options:
    """The options of an export.

    ``device``    the kind of machine, by default that of the fit.
    ``template``  the chat template of the document.
    """

    device: Device | None = None
    template: ChatTemplate | None = None


@frozen
class Exported:
    """Files by name, that of the consumer first; ``lost`` has the parts that they lack.

    ``engine``  the engine whose environment runs the command, where the export is one.
    """

    files: Mapping[str, str]
    lost: tuple[Reason, ...] = ()
    engine: str = ""


@frozen
class ExportRefused:
    """Why this document has no such export, with the remedy."""

    reason: Reason
    remedy: Reason


def parser_as_data(document: Document) -> ExportRefused | None:
    """Return why a document with a response template has no export: no option of a server carries it."""
    if template_file.derived_parser_of(document) is None:
        return None
    reason = Reason(Unexportable.PARSER_IS_DATA, file=template_file.RESPONSE_TEMPLATE_FILE)
    return ExportRefused(
        reason, Reason(ExportRemedy.IMPORT_A_COPY, file=template_file.RESPONSE_TEMPLATE_FILE)
    )


Export = Callable[[Document, Receipt | None, Options], Exported | ExportRefused]
# Strings without quotes in any version of YAML; PyYAML quotes true, null and their like by itself.
PLAIN = re.compile(r"[A-Za-z/][\w./+@-]+", re.ASCII)


@frozen
class Origin:
    """The origin of an export.

    ``model``     the model on the command line: a Hub id, or a directory.
    ``hub_id``    the same where it is on the Hub, else ``None``; ``revision`` its commit, where one is known.
    ``fitted``    the device of the fit of context and memory, where there is one.
    ``review``    approved, draft, stale, rejected, or ``no receipt``.
    """

    name: str
    model: str
    hub_id: str | None
    revision: str | None
    engine: str
    fitted: Reason | None
    digest: str
    review: str

    @classmethod
    def of(cls, document: Document, receipt: Receipt | None) -> Self:
        """Return the origin of a document that is valid to its schema; raises DocumentError("invalid")."""
        block = document.get("importer") or {}
        model = str(document["parameters"]["model"])
        if model.startswith("-") or not model.isprintable():
            raise invalid(document, Reason(ValueReason.NO_MODEL))
        here = bool(block) and "model_id" not in block
        if here and receipt is not None and receipt.directory is not None:
            model = receipt.directory
        hub_id = model if HUB_ID.fullmatch(model) and not here else None
        engine = block.get("engine") or {"name": document["backend"]}
        now = digest(document)
        return cls(
            name=str(document["name"]),
            model=model,
            hub_id=hub_id,
            revision=_commit(document, hub_id),
            engine=" ".join(str(engine[k]) for k in ("name", "version") if engine.get(k)),
            fitted=_fitted(document, receipt),
            digest=now,
            review="no receipt" if receipt is None else receipt.state(now),
        )

    def comments(self) -> list[Reason]:
        """Return the first comments of every export."""
        source = Reason(
            ExportComment.SOURCE,
            name=self.name, model=self.model, revision=self.revision, engine=self.engine,
        )  # fmt: skip
        written = Reason(ExportComment.WRITTEN, version=__version__, digest=self.digest, review=self.review)
        comments = [source, written]
        if self.fitted is not None:
            comments.append(self.fitted)
        if self.review != "approved":
            comments.append(Reason(ExportComment.UNAPPROVED))
        if self.hub_id and not self.revision:
            comments.append(Reason(ExportComment.UNPINNED))
        return comments


def _fitted(document: Document, receipt: Receipt | None) -> Reason | None:
    if receipt is None or receipt.fit is None:
        return None
    device = receipt.fit["device"]
    if device is None:
        return None
    fitted = {key for key, one in receipt.decisions.items() if one.get("status") == Rule.FIT.status}
    fitted.add(CONTEXT)
    edited = [one.key for one in effective(document, receipt) if one.status == EDITED and one.key in fitted]
    kind = ExportComment.FITTED_ONCE if edited else ExportComment.FITTED
    return Reason(kind, device=device["name"], kind=device["kind"], edited=edited)


def _commit(document: Document, hub_id: str | None) -> str | None:
    """Return the commit of the model: of the block ``importer``, else of the artifacts."""
    block = document.get("importer") or {}
    pins: list[tuple[Any, Any]] = [(block.get("model_id"), block.get("revision"))]
    sources = [a.get("source") for a in document.get("artifacts") or ()]
    pins += [(s.get("repo"), s.get("revision")) for s in sources if isinstance(s, Mapping)]
    revisions = [r for repo, r in pins if hub_id is not None and repo == hub_id and isinstance(r, str)]
    return next((r for r in revisions if COMMIT.fullmatch(r)), None)


def explained(server: str, sent: Mapping[str, object], lost: Sequence[Reason]) -> list[Reason]:
    """Return comments on the values that a server lacks at its start."""
    values = json.dumps(sent)
    reasons = [Reason(ExportComment.FROM_CLIENTS, server=server, values=values)] if sent else []
    return reasons + ([Reason(ExportComment.NO_OPTION, server=server, losses=lost)] if lost else [])


def without_effect(
    document: Document, settings: Callable[[Document], Any], sent: Mapping[str, object]
) -> tuple[Reason, ...]:
    """Return the keys without an effect: the settings of the server are the same without them.

    ``sent`` has the values that clients send.
    """
    whole = settings(document)
    parameters = {k: v for k, v in document["parameters"].items() if k != "model"}
    without: dict[str, Document] = {
        key: document_of({k: v for k, v in document.items() if k != key})
        for key, value in document.items()
        if key not in (*ABOUT, "parameters", "options", *sent) and value not in (None, False, "", [], {})
    }
    for key, value in parameters.items():
        if key not in sent and value is not None and value != NEUTRAL.get(key):
            left = {k: v for k, v in document["parameters"].items() if k != key}
            without[f"parameters.{key}"] = document_of({**document, "parameters": left})
    options = document.get("options") or []
    none = {key for key in OPTIONS if parser(document, key) is None}  # expressed by the absence of a flag
    for index, option in enumerate(options):
        if parse(option).key in none:
            continue
        without[f"options: {option}"] = {**document, "options": [*options[:index], *options[index + 1 :]]}
    return tuple(Reason(Loss.KEY, key=key) for key, changed in without.items() if settings(changed) == whole)


class _Dumper(yaml.SafeDumper):
    """A dumper with strings in double quotes unless they are plain words, and without aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if PLAIN.fullmatch(text) else '"'
    )


_Dumper.add_representer(str, _string)


def argument_value(text: str) -> Any:
    """Return the value of a server's argument for its YAML: an object or a number where the server writes the
    same word for it again, else the text.

    ``true`` and ``false`` stay texts: vllm serve drops ``false`` in silence, where the command has --no-….
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    same = isinstance(value, dict) or (isinstance(value, int | float) and str(value) == text)
    return value if same and not isinstance(value, bool) else text


def yaml_text(data: Any, comments: Iterable[Reason]) -> str:
    """Return ``data`` as YAML below ``comments``, without invisible characters."""
    text = _dump(data, allow_unicode=True)
    if not all(c.isprintable() or c == "\n" for c in text):
        text = _dump(data, allow_unicode=False)
    return commented(comments) + text


def _dump(data: Any, *, allow_unicode: bool) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=2**31)
    return text


def with_variables(variables: Mapping[str, str], words: Sequence[str]) -> list[str]:
    """Return a command with its variables; ``env`` sets those that a shell's assignment has to quote."""
    chosen = [f"{name}={value}" for name, value in variables.items()]
    plain = all(shlex.quote(value) == value for value in variables.values())
    return [*([] if plain else ["env"]), *chosen, *words]


LINE = 100  # characters of a command that stays on one line


def script(comments: Iterable[Reason], commands: Sequence[Sequence[str]], first: Sequence[str] = ()) -> str:
    """Return a shell script, every word quoted where needed; a long command has a line for each option.

    ``first``  lines before them, as they stand.
    """
    lines = [*first, *map(_command, commands)]
    stop = ["set -e"] if len(lines) > 1 else []  # each command needs the one before
    return "#!/bin/sh\n" + commented(comments) + "\n".join([*stop, *lines]) + "\n"


def _command(words: Sequence[str]) -> str:
    line = shlex.join(words)
    if len(line) <= LINE:
        return line
    options = (f"\\\n  {shlex.quote(word)}" if word.startswith("--") else shlex.quote(word) for word in words)
    return " ".join(options)


def commented(comments: Iterable[Reason]) -> str:
    """Return comment lines; control characters in them become spaces."""
    lines = map(render, comments)
    return "".join(f"# {''.join(c if c.isprintable() else ' ' for c in line)}\n" for line in lines)
