"""A document as an export has it: its origin, its server, and the files for one consumer."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Self

from importer.document import template_file
from importer.document.check import CONTEXT, ValueReason
from importer.document.document import Document, document_of
from importer.document.document_keys import OPTIONS, digest, parse, parser
from importer.document.effective import EDITED, effective
from importer.document.receipt import Receipt
from importer.document.template_file import ChatTemplate
from importer.engines.base import NEUTRAL, Address, as_request, grouped, invalid
from importer.errors import DocumentError
from importer.exports.kinds import ExportComment, ExportRemedy, Loss, Unexportable
from importer.exports.texts import argument_value, command_line, script, with_variables, yaml_text
from importer.frozen import frozen
from importer.reasons import Reason
from importer.signals.evidence import Rule
from importer.version import __version__

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
    """Files by name, that of the consumer first; ``lost`` has the parts that they lack."""

    files: Mapping[str, str]
    lost: tuple[Reason, ...] = ()


Export = Callable[[Document, Receipt | None, Options], Exported]


def refused(document: Document, reason: Reason, remedy: Reason) -> DocumentError:
    """Return the error of a document that has no such export, with what helps."""
    return DocumentError("cannot-export", name=document["name"], reason=reason, remedy=remedy)


def need_backend(document: Document, *engines: str) -> None:
    """Raise DocumentError("cannot-export") for a document of another engine."""
    if document["backend"] not in engines:
        reason = Reason(Unexportable.OTHER_BACKEND, backend=document["backend"], engines=engines)
        raise refused(document, reason, Reason(ExportRemedy.IMPORT_FOR, backends=engines))


def need_named_parser(document: Document) -> None:
    """Raise DocumentError("cannot-export") for a response template: no option of a server carries it."""
    if template_file.derived_parser_of(document) is not None:
        file = template_file.RESPONSE_TEMPLATE_FILE
        reason = Reason(Unexportable.PARSER_IS_DATA, file=file)
        raise refused(document, reason, Reason(ExportRemedy.IMPORT_A_COPY, file=file))


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
    count = 1 if device["kind"] == "cpu" else device.get("count") or 1
    label = f"{count}x{device['name']}" if count > 1 else device["name"]
    return Reason(kind, device=label, kind=device["kind"], edited=edited)


def _commit(document: Document, hub_id: str | None) -> str | None:
    """Return the commit of the model: of the block ``importer``, else of the artifacts."""
    block = document.get("importer") or {}
    pins: list[tuple[Any, Any]] = [(block.get("model_id"), block.get("revision"))]
    sources = [a.get("source") for a in document.get("artifacts") or ()]
    pins += [(s.get("repo"), s.get("revision")) for s in sources if isinstance(s, Mapping)]
    revisions = [r for repo, r in pins if hub_id is not None and repo == hub_id and isinstance(r, str)]
    return next((r for r in revisions if COMMIT.fullmatch(r)), None)


@frozen
class Placement:
    """The place of a server: its options beside the document, ``None`` where the consumer sets them.

    ``folder``  the folder of its files, by the path on the server.
    ``pinned``  whether the server fetches the model itself.
    """

    address: Address | None = None
    folder: str | None = None
    pinned: bool = True


@frozen
class Service:
    """A document as its engine serves it, in the words of a command line.

    ``program``  starts the server, ``model`` names its model, ``words`` are its options.
    ``first``    lines of a shell before it.
    ``kind``     of the engine; the export and the folder of the files beside it are named by it.
    ``files``    by their names in that folder.
    ``device``   that it runs on.
    ``comments``  the first lines of the export.
    """

    origin: Origin
    kind: str
    program: Sequence[str]
    model: Sequence[str]
    words: Sequence[str]
    comments: Sequence[Reason]
    lost: tuple[Reason, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    first: Sequence[str] = ()
    device: Device = "gpu"

    @property
    def folder(self) -> str:
        """Return the folder of its files."""
        return folder_of(self.origin.name, self.kind)

    def exported(self, name: str, text: str) -> Exported:
        """Return the export under ``name``, with the files of the server in the folder beside it."""
        files = {f"{self.folder}/{file}": content for file, content in self.files.items()}
        return Exported({name: text, **files}, self.lost)

    def script(self) -> Exported:
        """Return the script that starts the server."""
        words = with_variables(self.variables, [*self.program, *self.model, *self.words])
        return self.exported(f"{self.folder}.sh", script(self.comments, command_line(words), self.first))

    def config(self, model: str) -> Exported:
        """Return the file of ``--config``: keys in the order of the command line, first that of the model."""
        data: dict[str, object] = {model: self.origin.model}
        for flag, values in grouped([*self.words]):
            read = [argument_value(text) for text in values]
            data[flag.removeprefix("--")] = True if not read else read[0] if len(read) == 1 else read
        name = f"{self.folder}.yaml"
        line = shlex.join(with_variables(self.variables, [*self.program, "--config", name]))
        comments = [*self.comments, Reason(ExportComment.COMMAND, command=line)]
        return self.exported(name, yaml_text(data, comments))


def folder_of(name: str, kind: str) -> str:
    """Return the folder of the files of a document's server."""
    return f"{name}.{kind}"


def explained(server: str, sent: Mapping[str, object], lost: Sequence[Reason]) -> list[Reason]:
    """Return comments on the values that a server lacks at its start."""
    values = json.dumps(as_request(sent))
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
