"""The common part of all exports: files for one consumer, or the reason for their absence; origin,
losses, texts.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, Self

import yaml

from importer.config_file import derived_parser
from importer.config_file.diff import digest
from importer.config_file.document_keys import OPTIONS, parse, parser
from importer.config_file.receipt import Receipt
from importer.config_file.template_file import ChatTemplate
from importer.engines.base import NEUTRAL, Document, Unstartable, invalid
from importer.messages import render
from importer.reasons import Reason
from importer.version import __version__


class Unexportable(StrEnum):
    """Why a document has no such export."""

    DIRECTORY = "directory"
    FRONTEND = "frontend"
    LOCALAI_BACKEND = "localai-backend"
    LOCALAI_DIRECTORY = "localai-directory"
    OTHER_BACKEND = "other-backend"
    PARSER_IS_DATA = "parser-is-data"
    TEMPLATE_IN_FOLDER = "template-in-folder"
    TEMPLATE_IS_FILE = "template-is-file"
    VLLM_LACKS = "vllm-lacks"


class ExportRemedy(StrEnum):
    """The change that makes an export possible."""

    IMPORT_A_COPY = "import-a-copy"
    IMPORT_FOR = "import-for"
    IMPORT_FROM_HUB = "import-from-hub"
    PYTHON_FRONTEND = "python-frontend"
    SERVE_A_COPY = "serve-a-copy"
    WITHOUT_TEMPLATE = "without-template"


class LossEffect(StrEnum):
    """What a consumer makes of a part of a document."""

    ADDED = "added"
    CHANGED = "changed"
    DROPPED = "dropped"
    NOT_PINNED = "not-pinned"


class Loss(StrEnum):
    """A part of a document that a consumer lacks or changes, or that the export adds."""

    ADDED = "added"
    ARGUMENT_OF_SERVER = "argument-of-server"
    AUTO_CONTEXT = "auto-context"
    ARGUMENTS = "arguments"
    COMMIT = "commit"
    CONTEXT_AS_MAXIMUM = "context-as-maximum"
    ENVIRONMENT = "environment"
    FLAG = "flag"
    GREEDY = "greedy"
    KEY = "key"
    MAXIMUM = "maximum"
    NO_PIN = "no-pin"
    PARSER_VERSIONS = "parser-versions"
    PENALTIES = "penalties"
    REMOTE_CODE = "remote-code"
    REPEAT_PENALTY = "repeat-penalty"
    SEED = "seed"
    SERVED_NAME = "served-name"
    STOPS = "stops"
    TEMPLATE = "template"
    THINKING_OFF = "thinking-off"
    VALUE = "value"
    VARIABLE = "variable"


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


class ExportComment(StrEnum):
    """A comment of an export."""

    COMMAND = "command"
    ENGINE_OF_CONSUMER = "engine-of-consumer"
    FITTED = "fitted"
    FITTED_TO_OTHER = "fitted-to-other"
    FROM_CLIENTS = "from-clients"
    INFERRED = "inferred"
    NO_OPTION = "no-option"
    NO_REVISION = "no-revision"
    RESOURCES = "resources"
    SOURCE = "source"
    UNAPPROVED = "unapproved"
    UNPINNED = "unpinned"
    UNRUN_COMPOSE = "unrun-compose"
    UNRUN_GPUSTACK = "unrun-gpustack"
    UNRUN_JOB = "unrun-job"
    UNRUN_KAITO = "unrun-kaito"
    UNRUN_KSERVE = "unrun-kserve"
    UNRUN_KUBERNETES = "unrun-kubernetes"
    UNRUN_LLM_D = "unrun-llm-d"
    UNRUN_RAY = "unrun-ray"
    UNRUN_RECIPE = "unrun-recipe"
    UNRUN_SGLANG = "unrun-sglang"
    WRITTEN = "written"


class MemoryReason(StrEnum):
    """Why an export requests so much of a machine's own memory."""

    ESTIMATE = "estimate"
    GUESS = "guess"
    WEIGHTS_ONCE = "weights-once"


Device = Literal["gpu", "cpu"]
HUB_ID = re.compile(r"(?!.*\.\.)\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
# Keys about a document that are no settings of a server.
ABOUT = (
    "name", "description", "backend", "known_usecases", "embeddings", "template", "artifacts", "importer",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an export.

    ``device``    the kind of machine, by default that of the fit.
    ``template``  the chat template of the document.
    """

    device: Device | None = None
    template: ChatTemplate | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """Files by name, that of the consumer first; ``lost`` has the parts that they lack."""

    files: Mapping[str, str]
    lost: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportRefused:
    """Why this document has no such export, with the remedy."""

    reason: Reason
    remedy: Reason


def parser_as_data(document: Document) -> ExportRefused | None:
    """Return why a document with a response template has no export: no option of a server carries it."""
    if derived_parser.of(document) is None:
        return None
    reason = Reason(Unexportable.PARSER_IS_DATA, file=derived_parser.FILE)
    return ExportRefused(reason, Reason(ExportRemedy.IMPORT_A_COPY, file=derived_parser.FILE))


Export = Callable[[Document, Receipt | None, Options], Exported | ExportRefused]
# Strings without quotes in any version of YAML; PyYAML quotes true, null and their like by itself.
PLAIN = re.compile(r"[A-Za-z/][\w./+@-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
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
        if model.startswith("-"):
            raise invalid(document, Reason(Unstartable.MODEL_IS_OPTION))
        if not model.isprintable():
            raise invalid(document, Reason(Unstartable.MODEL_UNPRINTABLE))
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
            fitted=_fitted(receipt),
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


def _fitted(receipt: Receipt | None) -> Reason | None:
    if receipt is None or receipt.fit is None:
        return None
    device = receipt.fit["device"]
    if device is None:
        return None
    return Reason(ExportComment.FITTED, device=device["name"], kind=device["kind"])


def _commit(document: Document, hub_id: str | None) -> str | None:
    """Return the commit of the model: of the block ``importer``, else of the artifacts."""
    block = document.get("importer") or {}
    pins: list[tuple[Any, Any]] = [(block.get("model_id"), block.get("revision"))]
    sources = [a.get("source") for a in document.get("artifacts") or ()]
    pins += [(s.get("repo"), s.get("revision")) for s in sources if isinstance(s, Mapping)]
    revisions = [r for repo, r in pins if hub_id is not None and repo == hub_id and isinstance(r, str)]
    return next((r for r in revisions if COMMIT.fullmatch(r)), None)


def explained(server: str, sent: Mapping[str, Any], lost: Sequence[Reason]) -> list[Reason]:
    """Return comments on the values that a server lacks at its start."""
    values = json.dumps(sent)
    reasons = [Reason(ExportComment.FROM_CLIENTS, server=server, values=values)] if sent else []
    return reasons + ([Reason(ExportComment.NO_OPTION, server=server, losses=lost)] if lost else [])


def without_effect(
    document: Document, settings: Callable[[Document], Any], sent: Mapping[str, Any]
) -> tuple[Reason, ...]:
    """Return the keys without an effect: the settings of the server are the same without them.

    ``sent`` has the values that clients send.
    """
    whole = settings(document)
    parameters = {k: v for k, v in document["parameters"].items() if k != "model"}
    without: dict[str, Document] = {
        key: {k: v for k, v in document.items() if k != key}
        for key in document
        if key not in (*ABOUT, "parameters", "options", *sent)
        and document[key] not in (None, False, "", [], {})
    }
    for key, value in parameters.items():
        if key not in sent and value is not None and value != NEUTRAL.get(key):
            left = {k: v for k, v in document["parameters"].items() if k != key}
            without[f"parameters.{key}"] = {**document, "parameters": left}
    options = document.get("options") or []
    none = {key for key in OPTIONS if parser(document, key) is None}  # expressed by the absence of a flag
    for index, option in enumerate(options):
        if parse(option).key in none:
            continue
        without[f"options: {option}"] = {**document, "options": options[:index] + options[index + 1 :]}
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


def script(comments: Iterable[Reason], commands: Sequence[Sequence[str]]) -> str:
    """Return a shell script; each command on one line, every word quoted where needed."""
    lines = [shlex.join(words) for words in commands]
    stop = ["set -e"] if len(lines) > 1 else []  # each command needs the one before
    return "#!/bin/sh\n" + commented(comments) + "\n".join([*stop, *lines]) + "\n"


def commented(comments: Iterable[Reason]) -> str:
    """Return comment lines; control characters in them become spaces."""
    lines = map(render, comments)
    return "".join(f"# {''.join(c if c.isprintable() else ' ' for c in line)}\n" for line in lines)
