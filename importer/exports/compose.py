"""A Compose file: the server's image at the engine's version, the model at the document's commit."""

from __future__ import annotations

import re
from typing import Any

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.engines.base import Address
from importer.exports import sglang
from importer.exports.base import Exported, ExportRefused, Options, Origin, unrun, yaml_text
from importer.exports.vllm import BUILDS, VllmPlacement, devices, folder_of, served, version, with_files
from importer.frozen import frozen
from importer.reasons import Reason

CHECKED = "Checked against a schema, not run. HF_TOKEN comes from your environment and is written nowhere."

PORT = 8000
IMAGES = {"gpu": "vllm/vllm-openai", "cpu": "vllm/vllm-openai-cpu"}
CACHE = "/root/.cache/huggingface"  # the Hub client's cache of the image's user
MODEL = "/model"  # mount point of a model's directory
SETTINGS = "/settings"  # mount point of the server's files
INSIDE = VllmPlacement(Address("0.0.0.0", PORT), SETTINGS)  # noqa: S104 - all addresses of the container
ASK = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/health', timeout=4)"


@frozen
class Container:
    """A server in a container: what of its service its engine decides.

    ``key``          the name of the service.
    ``command``      the words behind the model, that ``model`` begins.
    ``folder``       of its files beside the export, ``None`` without files.
    ``resources``    cards that the service reserves.
    """

    key: str
    image: str
    entrypoint: tuple[str, ...]
    model: str
    command: list[str]
    environment: list[str]
    port: int
    folder: str | None
    resources: dict[str, object]


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    """Return one service, reachable from this machine only."""
    return (_sglang if document["backend"] == "sglang" else _vllm)(document, receipt, options)


def _vllm(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    service = served(document, receipt, options, lambda _: INSIDE)
    if isinstance(service, ExportRefused):
        return service
    on_cards = service.device != "cpu"
    variables = [f"{name}={value}" for name, value in service.variables.items()]
    image = f"{IMAGES[service.device]}:v{version(document, BUILDS[service.device])}"
    container = Container(
        "vllm", image, ("vllm", "serve"), "", service.words,
        ["VLLM_NO_USAGE_STATS=1", *variables], PORT,
        folder_of(service.origin.name) if service.files else None,
        _cards(devices(document)) if on_cards else {},
    )  # fmt: skip
    comments = [*service.comments, unrun(CHECKED)]
    return with_files("compose.yaml", _text(service.origin, container, comments), service)


def _sglang(document: Document, receipt: Receipt | None, options: Options) -> Exported | ExportRefused:
    service = sglang.served(document, receipt, options, sglang.INSIDE)
    if isinstance(service, ExportRefused):
        return service
    image = f"{sglang.IMAGE}:v{version(document, 'sglang')}"
    container = Container(
        "sglang", image, ("sglang", "serve"), "--model-path=", service.words,
        [f"{name}={value}" for name, value in service.variables.items()], sglang.INSIDE.address.port,
        sglang.folder_of(service.origin.name) if service.files else None,
        _cards(sglang.cards(document)),
    )  # fmt: skip
    comments = [*service.comments, unrun(CHECKED)]
    return service.exported("compose.yaml", _text(service.origin, container, comments))


def _text(origin: Origin, container: Container, comments: list[Reason]) -> str:
    """Return the file with the container as its only service."""
    mounted = origin.hub_id is None
    service: dict[str, Any] = {
        "image": container.image,
        "entrypoint": [*container.entrypoint],
        "command": [f"{container.model}{MODEL if mounted else origin.model}", *container.command],
        "environment": ["HF_TOKEN", *container.environment],
        "volumes": [{"type": "volume", "source": "huggingface", "target": CACHE}],
        "ports": [f"127.0.0.1:{container.port}:{container.port}"],
        "shm_size": "8gb",
        "healthcheck": {
            "test": ["CMD", "python3", "-c", ASK.format(port=container.port)],
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
    if container.folder is not None:
        service["volumes"].append(_bound(f"./{container.folder}", SETTINGS))
    service |= container.resources
    data = {
        "name": _project(origin.name),
        "services": {container.key: service},
        "volumes": {"huggingface": {}},
    }
    return yaml_text(_literal(data), comments)


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


def _project(name: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", name)


def _literal(value: Any) -> Any:
    """Return the data with every ``$`` escaped: Compose substitutes variables in all strings."""
    if isinstance(value, dict):
        return {key: _literal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_literal(inner) for inner in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
