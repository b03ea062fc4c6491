"""A Compose file: the server's image at the engine's version, the model at the document's commit."""

from __future__ import annotations

import re
from typing import Any

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.engines.base import Address
from importer.exports import sglang, vllm
from importer.exports.base import Exported, Options, Origin, Placement
from importer.exports.kinds import unrun
from importer.exports.texts import yaml_text

CHECKED = "Checked against a schema, not run. HF_TOKEN comes from your environment and is written nowhere."

CACHE = "/root/.cache/huggingface"  # the Hub client's cache of the image's user
MODEL = "/model"  # mount point of a model's directory
SETTINGS = "/settings"  # mount point of the server's files
ASK = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/health', timeout=4)"
PORTS = {"vllm": 8000, "sglang": sglang.PORT}


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return one service, reachable from this machine only."""
    port = PORTS.get(str(document["backend"]), PORTS["vllm"])
    place = Placement(Address("0.0.0.0", port), SETTINGS)  # noqa: S104 - all addresses of the container
    if document["backend"] == "sglang":
        served = sglang.served(document, receipt, options, place)
        image, cards = sglang.image(document), sglang.cards(document)
        model, own = "--model-path=", list[str]()
    else:
        served = vllm.served(document, receipt, options, place)
        image = vllm.image(document, served.device)
        cards = 0 if served.device == "cpu" else vllm.devices(document)
        model, own = "", ["VLLM_NO_USAGE_STATS=1"]
    origin = served.origin
    mounted = origin.hub_id is None
    service: dict[str, Any] = {
        "image": image,
        "entrypoint": [served.kind, "serve"],
        "command": [f"{model}{MODEL if mounted else origin.model}", *served.words],
        "environment": ["HF_TOKEN", *own, *(f"{name}={value}" for name, value in served.variables.items())],
        "volumes": [{"type": "volume", "source": "huggingface", "target": CACHE}],
        "ports": [f"127.0.0.1:{port}:{port}"],
        "shm_size": "8gb",
        "healthcheck": {
            "test": ["CMD", "python3", "-c", ASK.format(port=port)],
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
    if served.files:
        service["volumes"].append(_bound(f"./{served.folder}", SETTINGS))
    service |= _cards(cards) if cards else {}
    data = {
        "name": re.sub(r"[^a-z0-9_-]", "-", origin.name),
        "services": {served.kind: service},
        "volumes": {"huggingface": {}},
    }
    return served.exported("compose.yaml", yaml_text(_literal(data), [*served.comments, unrun(CHECKED)]))


def _cards(count: int) -> dict[str, object]:
    card = {"driver": "nvidia", "count": count, "capabilities": ["gpu"]}
    return {"deploy": {"resources": {"reservations": {"devices": [card]}}}}


def _bound(source: str, target: str) -> dict[str, object]:
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


def _literal(value: Any) -> Any:
    """Return the data with every ``$`` escaped: Compose substitutes variables in all strings."""
    if isinstance(value, dict):
        return {key: _literal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_literal(inner) for inner in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
