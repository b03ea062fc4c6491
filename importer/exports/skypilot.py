"""A task of SkyPilot, for ``sky launch`` and ``sky serve up``: vLLM's image at the engine's version.

Fields: https://docs.skypilot.co/en/latest/reference/yaml-spec.html, version 0.14.
"""

from __future__ import annotations

import shlex
from typing import Any

from importer.config_file.receipt import Receipt
from importer.engines.base import Document
from importer.exports.base import (
    ExportComment,
    Exported,
    ExportRefused,
    ExportRemedy,
    Options,
    Unexportable,
    yaml_text,
)
from importer.exports.card_names import SKYPILOT, fitted
from importer.exports.compose import SETTINGS
from importer.exports.kubernetes import CPU, MEMORY, image, inside
from importer.exports.vllm import VllmService, devices, folder_of, memory, served, with_files
from importer.reasons import Reason

PORT = 8000
LARGE = ("A100-80GB", "H100", "H200")  # without a fit: any of these
LOADED = 3600  # seconds, in which weights are fetched and loaded


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return one task with the command, a service's probe, and the files that the server needs."""
    service = served(document, receipt, options, lambda _: inside(PORT))
    if isinstance(service, ExportRefused):
        return service
    origin = service.origin
    if origin.hub_id is None:
        return ExportRefused(Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    resources, guesses = _resources(document, receipt, service)
    data: dict[str, Any] = {
        "name": origin.name,
        "resources": resources,
        "envs": {"VLLM_NO_USAGE_STATS": "1", **service.variables},
        "secrets": {"HF_TOKEN": ""},
    }
    if service.files:
        data["file_mounts"] = {SETTINGS: f"./{folder_of(origin.name)}"}
    data["service"] = {
        "readiness_probe": {"path": "/health", "initial_delay_seconds": LOADED},
        "replicas": 1,
    }
    data["run"] = shlex.join(["vllm", "serve", origin.model, *service.words])
    comments = [*service.comments, Reason(ExportComment.UNRUN_SKYPILOT), *guesses]
    return with_files(f"{origin.name}.sky.yaml", yaml_text(data, comments), service)


def _resources(
    document: Document, receipt: Receipt | None, service: VllmService
) -> tuple[dict[str, Any], list[Reason]]:
    """Return the machine that a task asks for, and comments on what is a guess."""
    base: dict[str, Any] = {"image_id": f"docker:{image(document, service.device)}", "ports": PORT}
    if service.device == "cpu":
        amount, why = memory(receipt, service.device) or MEMORY
        guess = Reason(ExportComment.RESOURCES, processors=CPU, memory=amount, why=why)
        return {**base, "cpus": f"{CPU}+", "memory": f"{amount}+"}, [guess]
    count, card = devices(document), fitted(receipt, SKYPILOT)
    if card is not None:
        return {**base, "accelerators": f"{card}:{count}"}, []
    guess = Reason(ExportComment.CARDS, consumer="SkyPilot")
    return {**base, "any_of": [{"accelerators": f"{name}:{count}"} for name in LARGE]}, [guess]
