"""vllm-mlx: vLLM's options on MLX; parsers, sampling and template variables are set at its start."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from importer.document import document_keys, environment
from importer.document.document import Document
from importer.document.template_file import ChatTemplate
from importer.engines import base
from importer.engines.mlx import check_code
from importer.engines.registries import PINNED
from importer.engines.vllm import PYTORCH_INDEX, parsers
from importer.frozen import frozen

VERSION = PINNED["vllm-mlx"]
CONSTRAINTS = Path(__file__).with_name("constraints") / "vllm-mlx.txt"
TORCH = "2.13.0"  # any; by default pip brings three GB of CUDA's libraries
MOST_TOKENS = 32_768  # its limit for one answer, unless --max-request-tokens raises it
# Without it, a request during another one gets a 503. With it, top_k and penalties are ignored in silence
# (0.6.0).
BATCHING = "continuous_batching"
THINKING = "enable_thinking"
# Its prefix cache stays below the home folder, by the path of the weights alone, where other weights of that
# path would use it. Its working folder is removed after it.
HOME = {"HOME": "."}


@frozen
class VllmMlx(base.Engine):
    """The adapter of vllm-mlx, on Apple silicon and on any x86-64 or ARM Linux."""

    name: str = "vllm-mlx"
    distributions: tuple[str, ...] = ("vllm-mlx",)
    # Requests cannot set the seed, frequency penalty and stop words either: stop words end a streamed answer,
    # and are shown; whole answers go on.
    stops: bool = False

    def plan(self) -> base.Plan:
        """Return an install with a torch for processors, from PyTorch's index where pip's own settings
        have none.

        On Linux the torchvision that comes along is built for another torch, and is not needed here.
        """
        linux = sys.platform != "darwin"
        torch = f"torch=={TORCH}+cpu" if linux else f"torch=={TORCH}"
        packages = (torch, f"vllm-mlx=={VERSION}", "mlx[cpu]" if linux else "mlx")
        install = ("install", "--constraint", str(CONSTRAINTS), *packages)
        return (
            base.Step(install, otherwise=("install", "--extra-index-url", PYTORCH_INDEX, *install[1:])),
            base.Step(("uninstall", "--yes", "torchvision"), unless="import torchvision"),
        )

    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> base.Launch:
        """Return the start of ``vllm_mlx.cli serve`` on loopback."""
        check_code(document, model_dir, "vllm-mlx")
        name = str(document.get("name") or model_dir.name)
        model = str(model_dir.resolve())
        settings = self.settings({**document, "name": name}, model, base.Address(port=port), template)
        arguments = ("-m", "vllm_mlx.cli", "serve", *settings, "--offline")
        return base.Launch(arguments, name, {**HOME, **environment.variables_of(document)})

    def settings(
        self, document: Document, model: str, address: base.Address, template: ChatTemplate | None = None
    ) -> list[str]:
        """Return the model and the server's options, each one word; the template of the document is in the
        model's folder already.

        Raises DocumentError("invalid").
        """
        base.required_template(document, template)
        arguments = [model, f"--host={address.host}", f"--port={address.port}"]
        arguments += [f"--served-model-name={document['name']}", *parsers(document), *_sampling(document)]
        variables = _variables(document)
        if variables:
            arguments.append(f"--default-chat-template-kwargs={json.dumps(variables)}")
        arguments += _extra(document)
        if document.get("trust_remote_code") is True:
            arguments.append("--trust-remote-code")
        return arguments


def _sampling(document: Document) -> Iterator[str]:
    yield from base.joined(base.sampling(document, "vllm-mlx"))
    most = base.parameters(document).get("max_tokens")
    if isinstance(most, int) and most > MOST_TOKENS:
        yield f"--max-request-tokens={base.number(document, 'parameters.max_tokens', most)}"


def _variables(document: Document) -> dict[str, Any]:
    """Return the variables of the template, with thinking switched on for a document with a reasoning
    parser.

    Without the variable, streamed answers and those with tools think, and others follow the template's
    default.
    """
    variables = dict(document.get("chat_template_kwargs") or {})
    thinks = document_keys.parser(document, "reasoning_parser") is not None
    return {THINKING: True, **variables} if thinks else variables


def _extra(document: Document) -> Iterator[str]:
    arguments = {BATCHING: True, **(document.get("engine_args") or {})}
    yield from base.joined(base.written({**document, "engine_args": arguments}, "vllm-mlx"))
