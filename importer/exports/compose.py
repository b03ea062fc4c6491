"""A Compose file: the server's image at the engine's version, the model at the document's commit."""

from __future__ import annotations

import re
from typing import Any

from importer.config_file.receipt import Receipt
from importer.engines.base import Address, Document
from importer.exports.base import ExportComment, Exported, ExportRefused, Options, Origin, yaml_text
from importer.exports.vllm import VllmPlacement, devices, folder_of, served, version, with_files
from importer.reasons import Reason

PORT = 8000
IMAGES = {"gpu": "vllm/vllm-openai", "cpu": "vllm/vllm-openai-cpu"}
CACHE = "/root/.cache/huggingface"  # the Hub client's cache of the image's user
MODEL = "/model"  # mount point of a model's directory
SETTINGS = "/settings"  # mount point of the server's files
INSIDE = VllmPlacement(Address("0.0.0.0", PORT), SETTINGS)  # noqa: S104 - all addresses of the container
ASK = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{PORT}/health', timeout=4)"


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return one service, reachable from this machine only."""
    vllm_service = served(document, receipt, options, lambda _: INSIDE)
    if isinstance(vllm_service, ExportRefused):
        return vllm_service
    origin = vllm_service.origin
    mounted = origin.hub_id is None
    service: dict[str, Any] = {
        "image": f"{IMAGES[vllm_service.device]}:v{version(document, vllm_service.device)}",
        "entrypoint": ["vllm", "serve"],
        "command": [MODEL if mounted else origin.model, *vllm_service.words],
        "environment": [
            "HF_TOKEN",
            "VLLM_NO_USAGE_STATS=1",
            *(f"{name}={value}" for name, value in vllm_service.variables.items()),
        ],
        "volumes": [{"type": "volume", "source": "huggingface", "target": CACHE}],
        "ports": [f"127.0.0.1:{PORT}:{PORT}"],
        "shm_size": "8gb",
        "healthcheck": {
            "test": ["CMD", "python3", "-c", ASK],
            "interval": "10s",
            "timeout": "5s",
            "retries": 3,
            "start_period": "60m",  # weights are fetched and loaded in it; a healthy answer ends it
        },
        "restart": "unless-stopped",
        "labels": labels(origin),
    }
    if mounted:
        service["volumes"].append(_bound(origin.model, MODEL))
    if vllm_service.files:
        service["volumes"].append(_bound(f"./{folder_of(origin.name)}", SETTINGS))
    if vllm_service.device == "cpu":
        service["environment"].append("VLLM_CPU_KVCACHE_SPACE")
    else:
        card = {"driver": "nvidia", "count": devices(document), "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [card]}}}
    data = {"name": _project(origin.name), "services": {"vllm": service}, "volumes": {"huggingface": {}}}
    return with_files(
        "compose.yaml",
        yaml_text(_literal(data), [*vllm_service.comments, Reason(ExportComment.UNRUN_COMPOSE)]),
        vllm_service,
    )


def _bound(source: str, target: str) -> dict[str, Any]:
    return {"type": "bind", "source": source, "target": target, "read_only": True}


def labels(origin: Origin) -> dict[str, str]:
    """Return labels with the origin, for readers of the running container."""
    fields = {
        "model": origin.model,
        "revision": origin.revision,
        "document": origin.digest,
        "review": origin.review,
    }
    return {f"importer/{key}": value for key, value in fields.items() if value is not None}


def _project(name: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", name)


def _literal(value: Any) -> Any:
    """Return the data with every ``$`` escaped: Compose substitutes variables in all strings."""
    if isinstance(value, dict):
        return {key: _literal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_literal(inner) for inner in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
