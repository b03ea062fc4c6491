"""Asks the engines what the toys of ``toy_shapes`` take, and predicts the same without them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.memory import estimate, pages
from importer.memory.estimate import on_device
from importer.memory.estimate_types import Load, Unknown
from importer.memory.shape import Shape, describe
from tests import toy_shapes

SCRIPTS = Path(__file__).parent
CONTEXT = 4096  # tokens; the toy with an encoder ends at 448
MEMORY = 1 << 33
DRAFTED = 2  # tokens, where a toy has a layer that drafts
PROMPT, STEP, WRITTEN = 300, 128, 3  # tokens that mlx-lm's caches are filled with


@dataclass(frozen=True)
class Compared:
    """One figure, predicted and reported, or the engine's words for its refusal and the type of its error."""

    kind: str
    what: str
    predicted: int
    reported: int | None
    refused: str = ""
    devices: int = 1
    cause: str = ""

    @property
    def error(self) -> float:
        """The difference as a share of what is reported."""
        return 0.0 if not self.reported else self.predicted / self.reported - 1


def shape_of(name: str) -> Shape:
    """The toy's shape."""
    found = describe(toy_shapes.TOYS[name])
    assert not isinstance(found, Unknown), found.reason
    return found


def ask(
    python: Path, script: str, questions: Sequence[dict[str, Any]], *arguments: str
) -> list[dict[str, Any]]:
    """One process of the engine's Python for all questions."""
    lines = "".join(json.dumps(q) + "\n" for q in questions)
    done = subprocess.run(
        [str(python), str(SCRIPTS / script), *arguments], input=lines, capture_output=True, text=True,
        check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions), done.stderr[-2000:]
    return answers


def vllm(python: Path, names: Sequence[str], folder: Path, devices: Sequence[int] = (1,)) -> list[Compared]:
    """Weights, and keys, values and states, of the first of so many devices, on vLLM for processors."""
    cases = [(name, number) for number in devices for name in names]
    questions = []
    for i, (name, number) in enumerate(cases):
        context = min(CONTEXT, toy_shapes.TOYS[name].get("max_target_positions", CONTEXT))
        arguments: dict[str, Any] = {"max_model_len": context, "tensor_parallel_size": number}
        if _drafts(name):
            arguments["speculative_config"] = {"method": "mtp", "num_speculative_tokens": DRAFTED}
        model = str(toy_shapes.write(name, folder / str(i)))
        questions.append({"model": model, "memory": MEMORY, "arguments": arguments})
    found = []
    for (name, number), told in zip(cases, ask(python, "vllm_fit_script.py", questions), strict=True):
        found += _on_vllm(name, told, number)
    return found


def _drafts(name: str) -> bool:
    return "num_nextn_predict_layers" in toy_shapes.TOYS[name]


def _on_vllm(name: str, told: dict[str, Any], devices: int) -> list[Compared]:
    shape = shape_of(name)
    latent = "latent" in shape.kinds()  # whose blocks depend on what the processor can do, like states
    load = Load(
        told.get("context", CONTEXT), device="cpu", tensor_parallel=devices,
        drafts=DRAFTED if _drafts(name) else 0, batched_tokens=told.get("batched"),
        block_size=told.get("block_size") if latent else None,
        state_dtype={"auto": "bfloat16"}.get(told.get("state_dtype", ""), "auto"),
    )  # fmt: skip
    pool, flight = pages.pool(shape, load), pages.in_flight(load)
    predicted = {
        "weights": on_device(shape, shape.parts, load, 2),
        "bytes of a sequence": pool.sequence(load.context, flight),
        "tokens in 8 GiB": pool.tokens(MEMORY, load.context, flight),
    }
    if "refused" in told:
        words, cause = told["refused"], told["cause"]
        return [Compared(name, what, n, None, words, devices, cause) for what, n in predicted.items()]
    reported = dict(zip(predicted, (told["weights"], told["sequence"], told["tokens"]), strict=True))
    return [Compared(name, what, n, reported[what], "", devices) for what, n in predicted.items()]


@dataclass(frozen=True)
class Card:
    """A card that vLLM is made to believe in: its compute capability and its memory in GiB."""

    name: str
    capability: str
    gib: int


CARDS = (Card("H200", "9.0", 140), Card("B200", "10.0", 178))


def cards(
    python: Path, configs: Mapping[str, dict[str, Any]], folder: Path, card: Card, arguments: dict[str, Any]
) -> list[Compared]:
    """Weights, a full sequence and the tokens of a cache, on a pretended card, by vLLM's own functions."""
    questions = []
    for i, config in enumerate(configs.values()):
        model = folder / str(i)
        model.mkdir(parents=True)
        (model / "config.json").write_text(json.dumps(config), "utf-8")
        questions.append({"model": str(model), "memory": 1 << 42, "arguments": arguments})
    found = []
    answers = ask(python, "vllm_cards_script.py", questions, card.capability, str(card.gib))
    for name, told in zip(configs, answers, strict=True):
        found += _on_card(name, configs[name], told, card)
    return found


def _on_card(name: str, config: dict[str, Any], told: dict[str, Any], card: Card) -> list[Compared]:
    if "refused" in told:
        return [Compared(name, "bytes of a sequence", 0, None, told["refused"], 1, told["cause"])]
    shape = describe(config)
    assert not isinstance(shape, Unknown), shape.reason
    load = Load(
        told["context"], device="cuda", tensor_parallel=told["devices"], context_parallel=told["parts"],
        memory=card.gib << 30, capability=pages.compute_number(card.capability),
        kv_dtype=told["kv_dtype"] if told["kv_dtype"] not in {"bfloat16", "float16"} else "auto",
        drafts=told["drafts"],
    )  # fmt: skip
    pool, flight, kept = pages.pool(shape, load), pages.in_flight(load), pages.kept(load)
    sequences = pool.concurrency(1 << 42, kept, flight)
    predicted = {
        "weights": on_device(shape, shape.parts, load, 2), "bytes of a sequence": pool.sequence(kept, flight),
        "tokens in 4 TiB": int(sequences * load.context), "sequences in 4 TiB": int(sequences),
    }  # fmt: skip
    reported = (told["weights"], told["sequence"], told["tokens"], int(told["concurrency"]))
    pairs = zip(predicted.items(), reported, strict=True)
    return [Compared(name, what, n, real, "", load.tensor_parallel) for (what, n), real in pairs]


def mlx(python: Path, names: Sequence[str], folder: Path) -> list[Compared]:
    """Keys, values and states of one sequence in mlx-lm's own caches, filled by running the toy."""
    questions: list[dict[str, Any]] = []
    for i, name in enumerate(names):
        model = str(toy_shapes.write(name, folder / str(i)))
        questions.append({"model": model, "prompt": PROMPT, "step": STEP, "written": WRITTEN})
    found = []
    for name, told in zip(names, ask(python, "mlx_fit_script.py", questions), strict=True):
        keys, states = estimate.sequence(
            shape_of(name), Load(PROMPT + WRITTEN, dtype="float32", device="metal")
        )
        predicted = keys.likely + states.likely
        found.append(
            Compared(name, "bytes of a sequence", predicted, told.get("cache"), told.get("refused", ""))
        )
    return found
