"""The servers on MLX: none has a revision, so the commit is fetched first, and a link leads to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
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
    Exported,
    Options,
    Origin,
    Service,
    explained,
    folder_of,
    need_backend,
    refused,
    without_effect,
)
from importer.exports.kinds import ExportComment, ExportRemedy, Unexportable
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
# ``ln`` replaces a file, and puts the link into a folder.
FREE = (
    "if [ -e {link} ] && [ ! -L {link} ]; "
    "then echo '{link} is not a symbolic link. Move it away.' >&2; exit 1; fi"
)

SERVERS: Mapping[str, tuple[_Engine, str]] = {
    "mlx": (Mlx(), "mlx_lm.server"), "mlx-vlm": (MlxVlm(), "mlx_vlm.server"),
    "vllm-mlx": (VllmMlx(), "vllm-mlx serve"),
}  # fmt: skip


def export(engine: str, document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return a script that fetches the model where it is on the Hub, then starts the server."""
    service = served(engine, document, receipt, options)
    if engine == "mlx" and not service.first:
        service = replace(service, first=[CACHE])
    return service.script()


def served(name: str, document: Document, receipt: Receipt | None, options: Options) -> Service:
    """Return the service on a link to the commit, where the model is on the Hub.

    Raises DocumentError: "cannot-export", "invalid".
    """
    engine, program = SERVERS[name]
    if not engine.takes_template and template_file.named(document):
        remedy = Reason(ExportRemedy.SERVE_A_COPY, file=TEMPLATE)
        raise refused(document, Reason(Unexportable.TEMPLATE_IS_FILE), remedy)
    need_backend(document, engine.name)
    origin = Origin.of(document, receipt)
    sent = engine.client_sampling(document)
    template, variables = options.template, variables_of(document)
    lost = _lost(
        document,
        lambda changed: (engine.settings(changed, "", ADDRESS, template), variables_of(changed)),
        sent,
    )
    comments = [*origin.comments(), *explained(program, sent, lost)]
    comments += [] if name == "vllm-mlx" else [Reason(ExportComment.INFERRED)]
    first, model = list[str](), origin.model
    if origin.hub_id is not None and origin.revision is not None:
        model = f"./{folder_of(origin.name, name)}"
        comments.append(Reason(ExportComment.NO_REVISION, server=program, folder=model))
        fetch = " ".join(("hf", "download", origin.hub_id, "--revision", origin.revision, "--quiet"))
        # The weights lie once; requests name the link. An assignment ends with the exit code of the download.
        first += [FREE.format(link=model), f"weights=$({fetch})", f'ln -sfn "$weights" {model}']
    words = engine.settings(document, model, ADDRESS, template)
    return Service(origin, name, program.split(), [], words, comments, lost, variables, {}, first)


def _lost(
    document: Document, settings: Callable[[Document], Any], sent: Mapping[str, object]
) -> tuple[Reason, ...]:
    """Return the keys without an option, apart from the parsers, that are inferred."""
    options = [o for o in document.get("options") or () if parse(str(o)).key not in OPTIONS]
    return without_effect({**document, "options": options}, settings, sent)
