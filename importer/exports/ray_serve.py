"""A configuration of Ray Serve, for ``serve deploy`` and a RayService: one model of Ray Serve LLM.

Fields: https://docs.ray.io/en/latest/serve/llm/, version 2.60.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.engines.base import grouped
from importer.engines.vllm import is_rust
from importer.exports.base import Exported, Options, Placement, refused
from importer.exports.kinds import ExportComment, ExportRemedy, Unexportable, unrun
from importer.exports.texts import argument_value, yaml_text
from importer.exports.vllm import BUILDS, served, version
from importer.reasons import Reason

CHECKED = (
    "Read by Ray's own models of its configuration, not run. HF_TOKEN comes from the environment of "
    "Ray's processes and is written nowhere."
)

BUILDER = "ray.serve.llm:build_openai_app"
NAMED = "--served-model-name"  # Ray refuses it: its model_id is the name
# By the names of fitted devices: the cards of ``ray.util.accelerators``.
CARDS: Mapping[str, str] = {
    "t4": "T4",
    "v100-16g": "V100",
    "v100-32g": "V100",
    "a10-24g": "A10G",
    "a100-40g": "A100",
    "a100-80g": "A100",
    "l4": "L4",
    "l40s": "L40S",
    "h100-80g": "H100",
    "h100-94g": "H100",
    "h200": "H200",
    "h20-96g": "H20",
    "b200": "B200",
    "b300": "B300",
    "gb200": "GB200",
    "gb300": "GB300",
    "rtx-pro-6000": "RTX-PRO-6000",
    "mi210": "AMD-Instinct-MI210",
    "mi300x": "AMD-Instinct-MI300X-OAM",
    "mi325x": "AMD-Instinct-MI325X-OAM",
    "mi350x": "AMD-Instinct-MI350X-OAM",
    "mi355x": "AMD-Instinct-MI355X-OAM",
}


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return one application with one model; every option of vLLM is a keyword of its engine."""
    if is_rust(document):
        reason = Reason(Unexportable.FRONTEND, consumer="Ray Serve")
        raise refused(document, reason, Reason(ExportRemedy.PYTHON_FRONTEND))
    service = served(document, receipt, options, Placement())
    origin = service.origin
    model: dict[str, object] = {
        "model_loading_config": {"model_id": origin.name, "model_source": origin.model},
        "engine_kwargs": dict(_keywords(service.words)),
        "deployment_config": {"num_replicas": 1},
        "runtime_env": {"env_vars": {"VLLM_NO_USAGE_STATS": "1", **service.variables}},
    }
    card = _card(receipt) if service.device == "gpu" else None
    if card is not None:
        model["accelerator_type"] = card
    if service.device == "cpu":
        model["accelerator_config"] = {"kind": "cpu"}
    application = {
        "name": origin.name,
        "route_prefix": "/",
        "import_path": BUILDER,
        "args": {"llm_configs": [model]},
    }
    wanted = version(document, BUILDS[service.device])
    comments = [
        *service.comments,
        unrun(CHECKED),
        Reason(ExportComment.ENGINE_OF_CONSUMER, version=wanted, consumer="Ray"),
    ]
    text = yaml_text({"applications": [application]}, comments)
    return Exported({f"{origin.name}.serve.yaml": text}, service.lost)


def _card(receipt: Receipt | None) -> str | None:
    """Return Ray's name of the card that a document is fitted to; ``None`` without one."""
    device = receipt.fit.get("device") if receipt is not None and receipt.fit else None
    return CARDS.get(str((device or {}).get("name")))


def _keywords(words: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the options of a server as keywords of vLLM's engine and of its frontend."""
    found = list[tuple[str, Any]]()
    for flag, texts in grouped([*words]):
        if flag == NAMED:
            continue
        if not texts:
            off = flag.startswith("--no-")
            found.append((_keyword(flag.removeprefix("--no-" if off else "--")), not off))
            continue
        values = [argument_value(text) for text in texts]
        found.append((_keyword(flag.removeprefix("--")), values[0] if len(values) == 1 else values))
    return found


def _keyword(flag: str) -> str:
    return flag.replace("-", "_")
