"""A catalog of GPUStack with one entry, for ``--model-catalog-file``.

Fields: those of the package gpustack 2.3.0, ``gpustack/schemas/model_sets.py`` and ``models.py``.
"""

from __future__ import annotations

import shlex

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.exports.base import Exported, Options, Placement
from importer.exports.kinds import Loss, unrun
from importer.exports.texts import yaml_text
from importer.exports.vllm import BUILDS, served, version
from importer.reasons import Reason

CHECKED = "Checked by GPUStack's own model of a catalog, not run. It fetches the newest commit."

NAMED = "--served-model-name="  # GPUStack serves the name of its model
CATEGORIES = {"embeddings": "embedding", "rerank": "reranker"}


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return a catalog with one model; GPUStack chooses the workers and fetches the model."""
    service = served(document, receipt, options, Placement(pinned=False), fetches=True)
    origin = service.origin
    spec: dict[str, object] = {
        "mode": "standard",
        "source": "huggingface",
        "huggingface_repo_id": origin.hub_id,
        "backend": "vLLM",
        "backend_version": version(document, BUILDS[service.device]),
        "backend_parameters": [_parameter(word) for word in service.words if not word.startswith(NAMED)],
        "env": {"VLLM_NO_USAGE_STATS": "1", **service.variables},
    }
    entry: dict[str, object] = {
        "name": origin.name,
        "description": str(document.get("description") or origin.model),
        "categories": [_category(document)],
        "capabilities": _capabilities(document),
        "specs": [spec],
    }
    lost = list(service.lost)
    if origin.revision:
        lost.append(Reason(Loss.NO_PIN, revision=origin.revision, consumer="GPUStack"))
    comments = [*service.comments, unrun(CHECKED)]
    text = yaml_text({"draft_models": [], "model_sets": [entry]}, comments)
    return Exported({f"{origin.name}.catalog.yaml": text}, tuple(lost))


def _parameter(word: str) -> str:
    """Return the word as GPUStack splits it: by a shell's rules, behind its own two kinds of placeholders.

    Braces that could be a placeholder stand inside of JSON strings only, where an escape means the same.
    """
    flag, equals, value = word.partition("=")
    value = value.replace("{{", r"{\u007b").replace("{data_dir}", r"\u007bdata_dir}")
    return f"{flag}={shlex.quote(value)}" if equals else flag


def _category(document: Document) -> str:
    uses = [str(use) for use in document.get("known_usecases") or ()]
    return next((CATEGORIES[use] for use in uses if use in CATEGORIES), "llm")


def _capabilities(document: Document) -> list[str]:
    options = [str(option) for option in document.get("options") or ()]
    context = document.get("max_model_len")
    found = [f"context/{context // 1024}K"] if isinstance(context, int) and context >= 1024 else []
    found += ["vision"] if (document.get("limit_mm_per_prompt") or {}).get("image") else []
    found += ["tools"] if any(option.startswith("tool_parser:") for option in options) else []
    return found + (
        ["reasoning"] if any(option.startswith("reasoning_parser:") for option in options) else []
    )
