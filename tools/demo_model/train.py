"""Train the demo model: ``python -m tools.demo_model.train [DIR]``, in the environment of the engine ``mlx``.

A small Qwen3 (network.py) learns the lessons of recipe.py with its own chat template, and is saved in bf16
under transformers' names, so that every engine loads it. ``training.json`` records its recipe and files.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # these matrices are too small to share out; read on import
import numpy as np

from tools.demo_model.conversations import Lesson
from tools.demo_model.network import Adam, Array, Ids, Network
from tools.demo_model.recipe import (
    BATCH,
    DEMO,
    HELD_OUT,
    LESSONS,
    RATE,
    RECORD,
    VOCABULARY,
    WARM_UP,
    Recipe,
    file_digests,
)

Pair = tuple[list[int], list[int]]  # prompt, completion


def main() -> int:
    """Train into the folder given, by default the one that ships."""
    parser = argparse.ArgumentParser(description="Train the demo model.")
    parser.add_argument("directory", nargs="?", type=Path, default=DEMO.folder)
    parser.add_argument("--steps", type=int, default=DEMO.steps)
    options = parser.parse_args()
    train(DEMO, options.directory, options.steps)
    return 0


def train(recipe: Recipe, directory: Path, steps: int) -> None:
    """Train and save; print the falling loss and the share of held-out lessons that are answered word for
    word.
    """
    started = time.monotonic()
    directory.mkdir(parents=True, exist_ok=True)
    if directory != recipe.folder:
        shutil.copyfile(recipe.template, directory / recipe.template.name)
    for name, data in recipe.files().items():
        _write(directory / name, data)
    course = list(islice(recipe.course(recipe.seed), LESSONS))
    writer = Writer(recipe, course)
    _write_tokenizer(directory / "tokenizer.json", writer.tokenizer, recipe)

    network = Network(recipe.files()["config.json"], recipe.seed)
    loss = _fit(network, [writer.pair(lesson, i) for i, lesson in enumerate(course)], steps, recipe.seed)
    network.weights = _save(directory / "model.safetensors", network.weights)
    unseen = islice(recipe.course(recipe.seed + 1), HELD_OUT)
    exact = _score(network, [writer.pair(lesson, i) for i, lesson in enumerate(unseen)])
    record = {
        "recipe": recipe.digest(),
        "steps": steps,
        "loss": round(loss, 5),
        "held_out_exact": round(exact, 4),
    }
    _write(directory / RECORD, record | {"files": file_digests(directory)})
    _print(f"loss {loss:.4f}, {exact:.1%} of held-out lessons exact, {time.monotonic() - started:.0f} s")


class Writer:
    """Lessons as tokens, written by the recipe's template."""

    def __init__(self, recipe: Recipe, course: Sequence[Lesson]) -> None:
        self.recipe = recipe
        self.render = _renderer(recipe.template.read_text(encoding="utf-8"))
        self.tokenizer = _tokenizer((self.whole(lesson, thinking=True) for lesson in course[:1000]), recipe)

    def whole(self, lesson: Lesson, *, thinking: bool) -> str:
        """Return the conversation with the answer in it."""
        thinking = thinking and self.recipe.thinks != "never"
        answer = lesson.reply(thinking=thinking)
        return self.render(messages=[*lesson.messages, answer], tools=lesson.tools)

    def pair(self, lesson: Lesson, number: int) -> Pair:
        """Return prompt and completion as tokens; every fourth lesson without thinking, if the model can."""
        thinking = self.recipe.thinks != "switched" or number % 4 != 0
        arguments = {"messages": lesson.messages, "tools": lesson.tools, "add_generation_prompt": True}
        prompt = self.render(**arguments) if thinking else self.render(**arguments, enable_thinking=False)
        whole = self.whole(lesson, thinking=thinking)
        # the template may leave the empty block out of what it writes later
        opening = prompt if whole.startswith(prompt) else self.render(**arguments)
        completion = whole.removeprefix(opening)
        end = self.recipe.call_end if lesson.calls and self.recipe.call_end else self.recipe.end
        completion = completion.rstrip("\n") if self.recipe.written else completion + end
        return self.tokenizer.encode(prompt).ids, self.tokenizer.encode(completion).ids


def _print(text: str) -> None:
    sys.stderr.write(text + "\n")


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _renderer(template: str) -> Callable[..., str]:
    """Return the chat template, rendered as transformers does."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(template).render


def _tokenizer(texts: Iterable[str], recipe: Recipe) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[
            AddedToken(t, special=t in recipe.special, normalized=False)
            for t in recipe.special + recipe.markers
        ],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _write_tokenizer(path: Path, tokenizer: Any, recipe: Recipe) -> None:
    """Write the tokenizer; its trainer makes every added token special, and the markers are not."""
    data = json.loads(tokenizer.to_str())
    for token in data["added_tokens"]:
        token["special"] = token["content"] in recipe.special
    path.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _fit(network: Network, pairs: Sequence[Pair], steps: int, seed: int) -> float:
    """Train on the completions only; return the mean loss of the last fifty steps."""
    rng, adam = random.Random(seed), Adam(network)
    recent: list[float] = []
    by_length = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    for number in range(steps):
        # Neighbours in length share a batch, so little of it is padding.
        start = rng.randrange(0, len(by_length) - BATCH)
        ids, rows, targets = _batch(by_length[start : start + BATCH])
        logits, back = network.logits(ids, rows)
        likely = np.exp(logits - logits.max(axis=-1, keepdims=True))
        likely /= likely.sum(axis=-1, keepdims=True)
        at = np.arange(len(rows)), targets
        recent = [*recent[-49:], float(-np.log(likely[at] + 1e-9).mean())]
        likely[at] -= 1
        back(likely / np.float32(len(rows)))
        adam.step(RATE * min(1.0, (number + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * number / steps)))
        if number % 250 == 249:
            _print(f"step {number + 1}: loss {sum(recent) / len(recent):.4f}")
    return sum(recent) / len(recent)


def _score(network: Network, pairs: Sequence[Pair]) -> float:
    """Return the share of completions that are predicted word for word, the likeliest token each time."""
    exact = 0
    for pair in pairs:
        ids, rows, targets = _batch([pair])
        exact += bool((network.logits(ids, rows)[0].argmax(axis=-1) == targets).all())
    return exact / len(pairs)


def _batch(pairs: Sequence[Pair]) -> tuple[Ids, Ids, Ids]:
    """Return token ids padded at the right, the rows that predict a completion's tokens, and those tokens."""
    width = max(len(p) + len(c) for p, c in pairs)
    ids = np.array([p + c + [0] * (width - len(p) - len(c)) for p, c in pairs])
    rows = [i * width + len(p) + j - 1 for i, (p, c) in enumerate(pairs) for j in range(len(c))]
    return ids, np.array(rows), np.array([token for _, c in pairs for token in c])


def _save(path: Path, weights: dict[str, Array]) -> dict[str, Array]:
    """Write safetensors in bf16, the upper half of a float32 rounded to even; returns what was written."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    blobs, end, rounded = [], 0, {}
    for name, weight in weights.items():
        bits = weight.view(np.uint32)
        upper = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
        rounded[name] = (upper.astype(np.uint32) << 16).view(np.float32)
        blobs.append(upper.tobytes())
        header[name] = {"dtype": "BF16", "shape": weight.shape, "data_offsets": [end, end + len(blobs[-1])]}
        end += len(blobs[-1])
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(blobs))
    return rounded


if __name__ == "__main__":
    sys.exit(main())
