"""Exports of documents for other consumers.

``FORMATS`` has one line for each; an export opens and starts nothing.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import cast

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.errors import UsageError
from importer.exports.base import Export, Exported, Options
from importer.frozen import frozen
from importer.registry import Registry


@frozen
class ExportFormat:
    """The consumer of a format, and the module with its ``export``, imported at its first use.

    ``template``  what that function makes the format of, where it makes several.
    """

    consumer: str
    module: str
    template: str = ""

    def export(self, document: Document, receipt: Receipt | None, options: Options) -> Exported:
        """Return the files; raises DocumentError: "cannot-export", "invalid" for values that the consumer
        must not get.
        """
        function = import_module(self.module).export
        whole = cast(Export, partial(function, self.template) if self.template else function)
        return whole(document, receipt, options)


CLUSTERS, MLX, SGLANG, VLLM = (f"importer.exports.{name}" for name in ("clusters", "mlx", "sglang", "vllm"))
FORMATS = Registry[ExportFormat]("exports", {
    "vllm-config": ExportFormat("vllm serve --config FILE", VLLM, "config"),
    "vllm-command": ExportFormat("a shell: vllm serve", VLLM, "command"),
    "vllm-recipe": ExportFormat("vllm-project/recipes: a model's YAML", "importer.exports.vllm_recipe"),
    "sglang-command": ExportFormat("a shell: sglang serve", SGLANG, "command"),
    "sglang-config": ExportFormat("sglang serve --config FILE", SGLANG, "config"),
    "mlx-command": ExportFormat("a shell: mlx_lm.server", MLX, "mlx"),
    "mlx-vlm-command": ExportFormat("a shell: mlx_vlm.server", MLX, "mlx-vlm"),
    "vllm-mlx-command": ExportFormat("a shell: vllm-mlx serve", MLX, "vllm-mlx"),
    "llama-swap": ExportFormat("llama-swap --config FILE", "importer.exports.llama_swap"),
    "localai": ExportFormat("LocalAI: a model's YAML", "importer.exports.localai"),
    "localai-gallery": ExportFormat("LocalAI: a gallery with one entry", "importer.exports.localai_gallery"),
    "compose": ExportFormat("docker compose", "importer.exports.compose"),
    "kserve": ExportFormat("KServe: an InferenceService", CLUSTERS, "kserve"),
    "llm-d": ExportFormat("KServe with llm-d: an LLMInferenceService", CLUSTERS, "llm-d"),
    "kubernetes": ExportFormat("Kubernetes: a Deployment and its Service", CLUSTERS, "kubernetes"),
    "kubernetes-job": ExportFormat("Kubernetes: a Job that validates", CLUSTERS, "kubernetes-job"),
    "kubeai": ExportFormat("KubeAI: a Model", CLUSTERS, "kubeai"),
    "kaito": ExportFormat("Kaito: a Workspace", CLUSTERS, "kaito"),
    "ray-serve": ExportFormat("Ray Serve LLM: serve deploy FILE", "importer.exports.ray_serve"),
    "gpustack": ExportFormat("GPUStack: a catalog with one entry", "importer.exports.gpustack"),
}, ExportFormat, lambda part: import_module(part.module).export)  # fmt: skip


def get(name: str) -> ExportFormat:
    """Return the format; raises UsageError: "unknown-format" or "broken-part"."""
    try:
        return FORMATS[name]
    except KeyError:
        known = dict(FORMATS.every())
        near = get_close_matches(name, known, 3, 0.3) or known
        raise UsageError("unknown-format", name=name, near=", ".join(near)) from None
