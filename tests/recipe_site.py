"""The command that the site of vllm-project/recipes shows for a recipe of one model on one kind of node.

The order of the parts, the later one counts: model, variant, strategy with its parallel sizes, the recipe's
change of the strategy, features. Source: ``command-synthesis.js`` and ``strategies/`` of vllm-project/recipes
at 8959cf6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TENSOR, DATA, PIPELINE = "--tensor-parallel-size", "--data-parallel-size", "--pipeline-parallel-size"
EXPERTS = "--enable-expert-parallel"
NODES = 2  # of a deployment over several
# By strategy: the flag of the parallel size, and the further flags.
STRATEGIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "single_node_tp": (TENSOR, ()),
    "single_node_tep": (TENSOR, (EXPERTS,)),
    "single_node_dep": (DATA, (EXPERTS,)),
    "multi_node_tp": (TENSOR, ()),
    "multi_node_tep": (TENSOR, (EXPERTS,)),
    "multi_node_dep": (DATA, (EXPERTS, "--data-parallel-hybrid-lb")),
    "multi_node_tp_pp": (PIPELINE, ()),
}


def command(recipe: Mapping[str, Any], node: str, cards: int) -> dict[str, str | None]:
    """Return the flags of the head of a deployment by the recipe's default strategy."""
    strategy, variant = recipe["default_strategy"], recipe["variants"]["default"]
    change = recipe["strategy_overrides"].get(strategy, {})
    parts = (
        recipe["model"]["base_args"],
        variant.get("hardware_overrides", {}).get(node, {}).get("extra_args", ()),
        STRATEGIES[strategy][1],
        tuple(_sizes(strategy, cards, change)),
        change.get("extra_args", ()),
        *(feature["args"] for feature in recipe["features"].values()),
    )
    return flagged([str(word) for part in parts for word in part])


def _sizes(strategy: str, cards: int, change: Mapping[str, Any]) -> Iterator[str]:
    flag, _ = STRATEGIES[strategy]
    if strategy.startswith("single"):
        size = change["tp"] if strategy == "single_node_tp" else cards
        yield from (flag, str(min(size, cards)))
    elif flag == DATA:
        yield from (DATA, str(cards * NODES), "--data-parallel-size-local", str(cards))
        yield from ("--data-parallel-address", "$HEAD_IP")
    else:
        staged = flag == PIPELINE
        yield from (TENSOR, str(cards if staged else cards * NODES))
        yield from (PIPELINE, str(NODES)) if staged else ()
        yield from ("--nnodes", str(NODES), "--node-rank", "0", "--master-addr", "$HEAD_IP")


def flagged(words: list[str]) -> dict[str, str | None]:
    """Return flags with their values, the last of each; ``None`` for a flag alone."""
    found: dict[str, str | None] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            found[name] = value if equals else None
        elif name:  # what stands before the first flag is the program and its model
            found[name] = word
    return found
