"""A recipe of vLLM's own kind: ``models/OWNER/NAME.yaml`` of vllm-project/recipes.

A recipe has a model, features, variants, hardware and strategies; their site makes the command of them. Every
word of the server stands in one of these, so that the site's command is the document's.

The hardware of vLLM's recipes: the node that a device of the fit belongs to.

The table is ``importer/data/recipe_hardware.json``; ``python -m gen_defaults --only vllm-recipes`` writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from importer import config
from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.engines.vllm import flag, is_rust
from importer.errors import UsageError
from importer.exports.base import Exported, Options, Placement, Service
from importer.exports.kinds import Loss, unrun
from importer.exports.texts import yaml_text
from importer.exports.vllm import BUILDS, served, version
from importer.frozen import frozen
from importer.memory.devices import named
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render

CHECKED = (
    "Checked against a schema of the recipes' documented fields, not by their build. Add "
    "meta.hardware after a run on that hardware."
)

FILE = "recipe_hardware.json"
SEVERAL = re.compile(r"_(\d+)x$")  # the end of a node's name that has its number of cards


@frozen
class Node:
    """One kind of node: its name in the recipes, the device in importer's table, and its number of cards."""

    name: str
    device: str
    count: int


def node_of(device: Mapping[str, Any]) -> Node | None:
    """Return the node of a receipt's device: the smallest one with as many cards, else the largest.

    None stands for fewer cards than its name has.
    """
    fitting = [node for node in nodes() if node.device == device.get("name")]
    wanted = int(device.get("count") or 1)
    enough = [node for node in fitting if node.count >= wanted]
    found = min(enough, key=lambda n: n.count, default=max(fitting, key=lambda n: n.count, default=None))
    return None if found is not None and found.count > wanted and SEVERAL.search(found.name) else found


@cache
def nodes() -> tuple[Node, ...]:
    """Return every kind of node whose device importer knows."""
    rows = json.loads(config.data(FILE).read_text("utf-8"))["hardware"]
    found = [(name, _device(name), int(row["cards"])) for name, row in rows.items()]
    return tuple(Node(name, device, count) for name, device, count in found if device is not None)


def _device(name: str) -> str | None:
    """Return the device that a node's name means; ``None`` where no device has that name."""
    try:
        return named(SEVERAL.sub("", name)).name
    except UsageError:
        return None


TENSOR, DATA, PIPELINE, EXPERTS = (
    "tensor-parallel-size", "data-parallel-size", "pipeline-parallel-size", "enable-expert-parallel",
)  # fmt: skip
LOCAL = "data-parallel-size-local"
# Flags that the site writes itself for a strategy over several nodes.
OF_NODES = ("nnodes", "node-rank", "master-addr", "master-port", "headless")
NAMED = "served-model-name"
FEATURES = {
    "tool_calling": ("enable-auto-tool-choice", "tool-call-parser", "tool-parser-plugin"),
    "reasoning": ("reasoning-parser",),
    "spec_decoding": ("speculative-config",),
}
# Precisions of the recipes by a word of the scheme; the first one that is found counts.
PRECISIONS = {
    "nvfp4": "nvfp4", "mxfp4": "mxfp4", "mxfp8": "mxfp8", "fp8": "fp8", "w8a8": "int8", "int8": "int8",
    "w4a16": "int4", "awq": "int4", "gptq": "int4",
}  # fmt: skip
PLAIN = {"float32": "fp32", "float16": "fp16"}
OVERHEAD = 1.2  # of the weights: the recipes' rule for the least memory
BILLION = 10**9


def _feature(fields: Fields) -> str:
    known = {"tool_calling": "Tool calls are parsed", "reasoning": "Reasoning is parsed"}
    return known.get(fields["name"], "Tokens are drafted before they are verified")


class RecipeText(ReasonKind):
    """A text in a recipe."""

    DESCRIPTION = "{model}, as a document of importer configures it."
    FEATURE = (_feature,)
    GUIDE = "## Launch\n\nThe command above is that of a document written for {model}.\n"
    VARIANT = "The published weights"


@frozen
class Words:
    """The words of a server by their place in a recipe, each flag with its value."""

    base: list[str]
    fitted: list[str]
    features: dict[str, list[str]]
    sizes: dict[str, int]
    experts: bool


def export(document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return one recipe, in the folder of a checkout of the recipes; a model of the Hub is required."""
    service = served(document, receipt, options, Placement(pinned=False), fetches=True)
    origin = service.origin
    fit: Mapping[str, Any] = (receipt.fit if receipt is not None else None) or {}
    node = node_of(fit.get("device") or {})
    words = sorted_words(
        service.words, {flag(key.removeprefix("engine_args.")) for key in fit.get("chosen", {})}
    )
    lost = [*service.lost, Reason(Loss.SERVED_NAME, name=origin.name, model=origin.hub_id)]
    if origin.revision:
        lost.append(Reason(Loss.NO_PIN, revision=origin.revision, consumer="a recipe"))
    strategy, change = _strategy(words, node)
    day = "" if receipt is None else receipt.imported_at[:10]
    data = {
        "meta": _meta(document, service, day, node),
        "model": _model(document, service, words, fit, None if node is not None else words.fitted),
        "features": {
            name: {"description": render(Reason(RecipeText.FEATURE, name=name)), "args": args}
            for name, args in words.features.items()
        },
        "opt_in_features": [],
        "variants": {"default": _variant(document, fit, words, node)},
        "compatible_strategies": [strategy],
        "default_strategy": strategy,
        "hardware_overrides": {},
        "strategy_overrides": {strategy: change} if change else {},
        "guide": render(Reason(RecipeText.GUIDE, model=origin.hub_id)),
    }
    comments = [*service.comments, unrun(CHECKED)]
    owner, _, name = origin.model.partition("/")
    return Exported({f"models/{owner}/{name}.yaml": yaml_text(data, comments)}, tuple(lost))


def sorted_words(words: Sequence[str], fitted: set[str]) -> Words:
    """Return a server's words by their place; ``fitted`` are the flags that were chosen for a device."""
    found = Words([], [], {}, {}, experts=False)
    experts = False
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        feature = next((f for f, flags in FEATURES.items() if name in flags), None)
        if name in (TENSOR, DATA, PIPELINE, LOCAL) and value.isdigit():
            found.sizes[name] = int(value)
        elif name == EXPERTS:
            experts = True
        elif feature is not None:
            found.features.setdefault(feature, []).extend(_apart(word))
        elif name != NAMED:
            (found.fitted if name in fitted else found.base).extend(_apart(word))
    return Words(found.base, found.fitted, found.features, found.sizes, experts)


def _apart(word: str) -> list[str]:
    """Return flag and value as two entries; one entry for a value that the site would read as a flag."""
    name, equals, value = word.partition("=")
    return [name, value] if equals and value and not value.startswith("-") else [word]


def _meta(document: Document, service: Service, day: str, node: Node | None) -> dict[str, object]:
    model = str(service.origin.hub_id)
    owner, _, name = model.partition("/")
    dates = {"date_added": day, "date_updated": day} if day else {}
    several = {*(document.get("limit_mm_per_prompt") or {})} or {"vision"} & {*_uses(document)}
    embeds = {"embeddings", "rerank"} & {*_uses(document)}
    return {
        "title": name,
        "slug": service.origin.name,
        "provider": owner,
        "description": render(Reason(RecipeText.DESCRIPTION, model=model)),
        **dates,
        "tasks": ["embedding" if embeds else "multimodal" if several else "text"],
        "related_recipes": [],
        **({"default_hardware": node.name} if node is not None else {}),
    }


def _uses(document: Document) -> list[str]:
    return [str(use).lower() for use in document.get("known_usecases") or ()]


def _model(
    document: Document, service: Service, words: Words, fit: Mapping[str, Any], unplaced: list[str] | None
) -> dict[str, Any]:
    """Return the part of the model; ``unplaced`` are flags for a device that no recipe knows."""
    weights: Mapping[str, Any] = fit.get("weights") or {}
    total, active = weights.get("parameters"), weights.get("active")
    routed = (active is not None and active < total) or words.experts
    context = fit.get("wanted") or document.get("max_model_len") or document.get("context_size")
    counts = {"parameter_count": total, "active_parameters": active}
    return {
        "model_id": service.origin.hub_id,
        "min_vllm_version": version(document, BUILDS[service.device]),
        "architecture": "moe" if routed else "dense",
        **{key: _billions(count) for key, count in counts.items() if count},
        **({"context_length": context} if isinstance(context, int) else {}),
        **({"default_frontend": "rust"} if is_rust(document) else {}),
        "base_args": [*words.base, *(unplaced or ())],
        "base_env": dict(service.variables),
    }


def _billions(count: int) -> str:
    """Return a number of parameters as recipes write it, such as ``8.2B`` and ``1.6T``."""
    value, unit = (count / BILLION / 1000, "T") if count >= 1000 * BILLION else (count / BILLION, "B")
    return f"{float(f'{value:.3g}'):g}{unit}"


def _variant(document: Document, fit: Mapping[str, Any], words: Words, node: Node | None) -> dict[str, Any]:
    weights: Mapping[str, Any] = fit.get("weights") or {}
    least = weights.get("likely")
    placed = node is not None and bool(words.fitted)
    return {
        "precision": precision(document),
        **({"vram_minimum_gb": -int(-least * OVERHEAD // BILLION)} if least else {}),
        "description": render(Reason(RecipeText.VARIANT)),
        **({"hardware_overrides": {node.name: {"extra_args": words.fitted}}} if node and placed else {}),
    }


def precision(document: Document) -> str:
    """Return the precision of the weights in the words of the recipes."""
    block = document.get("importer") or {}
    stated = [block.get("quantization_scheme"), block.get("quantization"), document.get("quantization")]
    scheme = " ".join(str(word).lower() for word in stated if word)
    named = next((name for word, name in PRECISIONS.items() if word in scheme), None)
    return named or PLAIN.get(str(document.get("dtype")), "bf16")


def _strategy(words: Words, node: Node | None) -> tuple[str, dict[str, object]]:
    """Return the strategy with these sizes, and the change that makes it the document's own."""
    tensor, data, stages = (words.sizes.get(name, 1) for name in (TENSOR, DATA, PIPELINE))
    count = None if node is None else node.count
    several = count is not None and tensor * data * stages > count
    local = {name: size for name, size in words.sizes.items() if name == LOCAL}
    made: dict[str, int | None]  # by the strategy; the number of nodes is the reader's choice
    if stages > 1:
        name, made = "multi_node_tp_pp", {}
    elif data > 1 and words.experts:
        name = "multi_node_dep" if several else "single_node_dep"
        made = {DATA: None, TENSOR: 1, LOCAL: count} if several else {DATA: count, TENSOR: 1}
    elif words.experts:
        name, made = ("multi_node_tep", {}) if several else ("single_node_tep", {TENSOR: count})
    elif several and data == 1:
        name, made = "multi_node_tp", {}
    else:
        return "single_node_tp", {
            "tp": tensor,
            **_extra([*_sizes({DATA: data, PIPELINE: stages, **local}, {DATA: 1, PIPELINE: 1})]),
        }
    sizes = {TENSOR: tensor, DATA: data, PIPELINE: stages, **local}
    experts = [f"--{EXPERTS}"] if words.experts and stages > 1 else []
    return name, _extra([*_sizes(sizes, {DATA: 1, PIPELINE: 1, **made}), *experts])


def _sizes(wanted: Mapping[str, int], made: Mapping[str, int | None]) -> Iterator[str]:
    """Yield the flags of the sizes that the strategy does not make by itself."""
    for name, size in wanted.items():
        if made.get(name) != size:
            yield from (f"--{name}", str(size))


def _extra(args: list[str]) -> dict[str, object]:
    return {"extra_args": args} if args else {}
