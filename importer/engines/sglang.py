"""SGLang: its server needs an NVIDIA card; its parsers are asked without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from importer.document import document_keys, environment, template_file
from importer.document.document import Document
from importer.document.document_keys import SAMPLING
from importer.document.template_file import ChatTemplate
from importer.engines import base
from importer.engines.registries import PINNED
from importer.frozen import frozen

VERSION = PINNED["sglang"]
TEMPLATE = "chat_template.jinja"


@frozen
class SGLang(base.Engine):
    """The adapter of SGLang: an OpenAI server with parsers and limits set at its start."""

    name: str = "sglang"
    distributions: tuple[str, ...] = ("sglang",)
    readiness: base.Readiness = base.Readiness(seconds=1800)  # it answers after the first generated token
    takes_template: bool = True
    needs_card: bool = True
    per_request: tuple[str, ...] = SAMPLING  # its server has no option that reaches its chat route

    def plan(self) -> base.Plan:
        """Return the release with its libraries for cards, 8 GB; its parsers alone are ``sglang-parsers``."""
        return (base.Step(("install", f"sglang=={VERSION}")),)

    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> base.Launch:
        """Return the start of the server on loopback; without a card it ends at once."""
        name = str(document.get("name") or model_dir.name)
        settings = self.settings({**document, "name": name}, base.Address(port=port), folder=".")
        arguments = ("-m", "sglang.launch_server", f"--model-path={model_dir.resolve()}", *settings)
        return base.Launch(
            arguments, name, environment.variables_of(document), self.files(document, template)
        )

    def files(self, document: Document, template: ChatTemplate | None = None) -> dict[str, str]:
        """Return the files beside the model, name to text; raises DocumentError("invalid") where the template
        of the document is missing.
        """
        other = base.required_template(document, template)
        return {} if other is None else {TEMPLATE: other.text}

    def settings(
        self,
        document: Document,
        address: base.Address | None = None,
        revision: str | None = None,
        folder: str | None = None,
    ) -> list[str]:
        """Return the server's options apart from the model, each one word: ``--flag`` or ``--flag=value``.

        ``revision`` is the commit of a model on the Hub, ``folder`` the place of ``files``. Raises
        DocumentError("invalid").
        """
        arguments = [] if address is None else [f"--host={address.host}", f"--port={address.port}"]
        arguments.append(f"--served-model-name={document['name']}")
        if revision is not None:
            arguments.append(f"--revision={revision}")
        arguments += [
            *_parsers(document),
            *base.limits(document, self.name),
            *base.joined(base.written(document, self.name)),
        ]
        if document.get("trust_remote_code") is True:
            arguments.append("--trust-remote-code")
        if document.get("enforce_eager") is True:
            arguments += [f"--cuda-graph-backend-{phase}=disabled" for phase in ("decode", "prefill")]
        if folder is not None and template_file.named(document):
            arguments.append(f"--chat-template={folder}/{TEMPLATE}")
        return arguments


def _parsers(document: Document) -> Iterator[str]:
    for key, flag in (("tool_parser", "tool-call-parser"), ("reasoning_parser", "reasoning-parser")):
        name = document_keys.parser(document, key)
        if name is not None:
            yield f"--{flag}={base.word(document, key, name)}"
