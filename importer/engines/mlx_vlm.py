"""mlx-vlm: vision and text models on MLX; its server infers the tool parser and reads sampling from
requests only.
"""

from __future__ import annotations

from pathlib import Path

from importer import backends
from importer.document import document_keys, environment
from importer.document.document import Document, Setting
from importer.document.template_file import ChatTemplate
from importer.engines import base
from importer.engines.mlx import check_code
from importer.frozen import frozen
from importer.reasons import Reason

CONSTRAINTS = Path(__file__).with_name("constraints") / "mlx-vlm.txt"
# Values of its server for keys that the model's generation_config.json lacks.
OWN_DEFAULTS = {"temperature": 0, "top_p": 1, "top_k": 0}
THINKING = str(backends.MLX_VLM.variable)  # the only one of its command line


@frozen
class MlxVlm(base.Engine):
    """The adapter of mlx-vlm, on Apple silicon and on any x86-64 or ARM Linux."""

    name: str = "mlx-vlm"
    distributions: tuple[str, ...] = ("mlx-vlm",)
    per_request: tuple[str, ...] = (
        "temperature", "top_p", "top_k", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty",
        "seed",
    )  # fmt: skip
    stops: bool = False  # its server ignores stop words

    def plan(self) -> base.Plan:
        """Return one command: every package of the constraints, checked by its hash.

        On Linux they hold mlx's library for processors, on macOS the one for Metal.
        """
        return (base.locked(CONSTRAINTS),)

    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> base.Launch:
        """Return the start of ``mlx_vlm.server`` on loopback."""
        check_code(document, model_dir, "mlx-vlm")
        model = str(model_dir.resolve())
        settings = self.settings(document, model, base.Address(port=port), template)
        arguments = ("-m", "mlx_vlm.server", *settings)
        return base.Launch(arguments, model, environment.variables_of(document))

    def settings(
        self, document: Document, model: str, address: base.Address, template: ChatTemplate | None = None
    ) -> list[str]:
        """Return the server's options; the template of the document is in the model's folder already.

        Raises DocumentError("invalid").
        """
        base.required_template(document, template)
        arguments = ["--model", model, "--host", address.host, "--port", str(address.port)]
        limit = base.parameters(document).get("max_tokens")
        if limit is not None:
            arguments += ["--max-tokens", base.number(document, "parameters.max_tokens", limit)]
        if _thinks(document):
            arguments.append("--enable-thinking")
        arguments += base.apart(base.written(document, self.name))
        if document.get("trust_remote_code") is True:
            arguments.append("--trust-remote-code")
        return arguments

    def client_sampling(self, document: Document) -> dict[str, Setting]:
        """Return all sampling: for requests without a value the server reads generation_config.json."""
        none: dict[str, Setting] = {k: v for k, v in OWN_DEFAULTS.items() if k in base.unset(document)}
        return none | base.sent_by_client(document, self.per_request)


def _thinks(document: Document) -> bool:
    """Return whether to start with thinking: by the template variable, else by the presence of a
    reasoning parser.

    Without the option the server sets the variable to false. Raises DocumentError("invalid") for other
    variables.
    """
    variables = document.get("chat_template_kwargs") or {}
    others = sorted(set(variables) - {THINKING})
    if others:
        raise base.invalid(document, Reason(base.Unstartable.VARIABLE_LOST, key=others[0], only=THINKING))
    return bool(variables.get(THINKING, document_keys.parser(document, "reasoning_parser") is not None))
