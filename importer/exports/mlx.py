"""The servers on MLX: none has a revision, so the commit is fetched into a folder first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from importer.document import template_file
from importer.document.document import Document, Setting
from importer.document.document_keys import OPTIONS, parse
from importer.document.environment import variables_of
from importer.document.receipt import Receipt
from importer.document.template_file import ChatTemplate
from importer.engines.base import TEMPLATE, Address
from importer.engines.mlx import Mlx
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.vllm_mlx import VllmMlx
from importer.exports.base import (
    ExportComment,
    Exported,
    ExportRefused,
    ExportRemedy,
    Options,
    Origin,
    Unexportable,
    explained,
    script,
    with_variables,
    without_effect,
)
from importer.frozen import frozen
from importer.reasons import Reason

ADDRESS = Address(port=8080)  # where mlx-lm and mlx-vlm listen by default


class _Engine(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def takes_template(self) -> bool: ...

    def settings(
        self, document: Document, model: str, address: Address, template: ChatTemplate | None = None
    ) -> list[str]: ...

    def client_sampling(self, document: Document) -> dict[str, Setting]: ...


# Without this folder of the Hub client, mlx-lm answers to /v1/models with nothing (0.32.2).
CACHE = 'mkdir -p "${HF_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/hub}"'


SERVERS: Mapping[str, tuple[_Engine, str]] = {
    "mlx": (Mlx(), "mlx_lm.server"), "mlx-vlm": (MlxVlm(), "mlx_vlm.server"),
    "vllm-mlx": (VllmMlx(), "vllm-mlx serve"),
}  # fmt: skip


def export(
    engine: str, document: Document, receipt: Receipt | None, options: Options
) -> Exported | ExportRefused:
    """Return a script of one command, or of two where the model is on the Hub."""
    service = served(engine, document, receipt, options)
    if isinstance(service, ExportRefused):
        return service
    first = (CACHE,) if engine == "mlx" else ()
    text = script(service.comments, service.commands, first)
    return Exported({f"{service.origin.name}.{engine}.sh": text}, service.lost, engine)


@frozen
class MlxService:
    """A document served on MLX: ``commands`` are run in their order, the last one is the server."""

    origin: Origin
    commands: list[list[str]]
    comments: list[Reason]
    lost: tuple[Reason, ...]


def served(
    name: str, document: Document, receipt: Receipt | None, options: Options
) -> MlxService | ExportRefused:
    """Return ``hf download`` at the commit where the model is on the Hub, then the server on its folder."""
    engine, program = SERVERS[name]
    if not engine.takes_template and template_file.named(document):
        remedy = Reason(ExportRemedy.SERVE_A_COPY, file=TEMPLATE)
        return ExportRefused(Reason(Unexportable.TEMPLATE_IN_FOLDER), remedy)
    if document["backend"] != engine.name:
        other = Reason(Unexportable.OTHER_BACKEND, backend=document["backend"], engine=engine.name)
        return ExportRefused(other, Reason(ExportRemedy.IMPORT_FOR, backends=[engine.name]))
    origin = Origin.of(document, receipt)
    sent = engine.client_sampling(document)
    template = options.template
    lost = _lost(
        document,
        lambda changed: (engine.settings(changed, "", ADDRESS, template), variables_of(changed)),
        sent,
    )
    comments = [*origin.comments(), *explained(program, sent, lost)]
    comments += [] if name == "vllm-mlx" else [Reason(ExportComment.INFERRED)]
    commands, model = [], origin.model
    if origin.hub_id is not None and origin.revision is not None:
        model = f"./{origin.name}"
        comments.append(Reason(ExportComment.NO_REVISION, server=program, folder=model))
        commands.append(
            ["hf", "download", origin.hub_id, "--revision", origin.revision, "--local-dir", model]
        )
    words = [*program.split(), *engine.settings(document, model, ADDRESS, template)]
    commands.append(with_variables(variables_of(document), words))
    return MlxService(origin, commands, comments, lost)


def _lost(
    document: Document, settings: Callable[[Document], Any], sent: Mapping[str, object]
) -> tuple[Reason, ...]:
    """Return the keys without an option, apart from the parsers, that are inferred."""
    options = [o for o in document.get("options") or () if parse(str(o)).key not in OPTIONS]
    return without_effect({**document, "options": options}, settings, sent)
