"""``python -m benchmarks plans FOLDER``: ten plans, from a laptop to two nodes, beside the model's recipe.

FOLDER holds the files of models in ``ORG__NAME/``; a model without files is left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from benchmarks.recipe_compare import CONTEXT, Layout, device_of
from benchmarks.recipe_documents import Documents, Refused
from benchmarks.recipe_settings import values_of
from gen_defaults.paths import folder as existing
from gen_defaults.recipe_book import Book
from gen_defaults.recipe_commands import Deployment, deployments
from importer.errors import UsageError
from importer.memory.devices import named
from importer.memory.plans import Goal, Plan
from importer.sentences import render

# Model, device, goal: from 0.6 to 1,000 billion parameters.
CASES: tuple[tuple[str, str, Goal], ...] = (
    ("Qwen/Qwen3-0.6B-GPTQ-Int8", "rtx3060-12g", "latency"),
    ("Qwen/Qwen3-8B", "rtx4090", "latency"),
    ("openai/gpt-oss-20b", "rtx5090", "context"),
    ("Qwen/Qwen3-32B", "8xtpu-v6e", "latency"),
    ("Qwen/Qwen3-30B-A3B", "4xarc-pro-b70", "latency"),
    ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", "dgx-spark", "latency"),
    ("MiniMaxAI/MiniMax-M2.5", "8xmi300x", "throughput"),
    ("Qwen/Qwen3-VL-235B-A22B-Instruct-FP8", "8xh100", "context"),
    ("deepseek-ai/DeepSeek-V3.1", "8xh200", "throughput"),
    ("moonshotai/Kimi-K2.5", "16xh100", "context"),
)


def main(arguments: list[str]) -> int:
    """Print the plan of each case, its next-best ones, and the recipe's deployments on that hardware."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks plans", description=__doc__)
    parser.add_argument("folder", type=existing, help="the files of models, in ORG__NAME/")
    folder = parser.parse_args(arguments).folder
    book = Book.shipped()
    with Documents(folder) as documents:
        known = {*documents.models()}
        for model, device, goal in CASES:
            if model not in known:
                sys.stderr.write(f"plans: {folder} has no files of {model}\n")
                continue
            command = documents.command(model, device, {}, goal=goal)
            print(f"{model} on {device}, {goal}")
            if isinstance(command, Refused):
                print(f"  {command.message}")
                continue
            for number, plan in enumerate(command.plan.fit.plans):
                print("\n".join(_described("plan" if number == 0 else f"next {number}", plan)))
            official = [d for d in deployments(book, {model}, every=True) if _same_device(d, device)]
            for line in sorted({_recipe(d) for d in official if d.role in {"", "head"}}) or [
                "recipe: none here"
            ]:
                print(f"  {line}", flush=True)
    return 0


def _described(title: str, plan: Plan) -> Iterator[str]:
    """Yield the layout of a plan, and for the first one its reasons and costs."""
    split = plan.split
    layout = Layout(split.tensor, split.pipeline, split.data, split.replicas)
    experts = " with expert parallel" if split.experts else ""
    speed = "" if plan.step is None else f", {plan.step:.1f} ms a token at least"
    yield (
        f"  {title}: {layout}{experts}, {plan.context:,} tokens x {plan.sequences:,} sequences, "
        f"cache in {plan.kv_dtype}{speed}"
    )
    if title == "plan":
        yield from (f"    because {render(reason)}" for reason in plan.why)
        yield from (f"    it costs {render(reason)}" for reason in plan.costs)


def _recipe(deployment: Deployment) -> str:
    flags = values_of(deployment.flags)
    experts = " with expert parallel" if flags.get("enable-expert-parallel") is True else ""
    names = (CONTEXT, "kv-cache-dtype", "max-num-seqs", "max-num-batched-tokens")
    limits = "".join(f", {name} {flags[name]}" for name in names if name in flags)
    return f"recipe: {deployment.strategy}: {Layout.of(flags)}{experts}{limits}"


def _same_device(deployment: Deployment, device: str) -> bool:
    """Return whether a deployment is for this device, in any number."""
    try:
        return named(device_of(deployment.profile)).name == named(device).name
    except UsageError:
        return False
