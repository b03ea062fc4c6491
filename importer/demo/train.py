"""Train the demo model: ``python -m importer.demo.train [DIR]``, in the environment of the engine ``mlx``.

A small Qwen3 (network.py) is taught what recipe.py says with its own chat template, and saved in bf16 under
the names that transformers uses, so that every engine loads it. ``training.json`` records what it came from.
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

from importer.demo import MODEL
from importer.demo.conversations import Lesson, lessons
from importer.demo.network import Adam, Array, Ids, Network
from importer.demo.recipe import (
    BATCH,
    CONFIG,
    GENERATION,
    HELD_OUT,
    LESSONS,
    MARKERS,
    RATE,
    RECORD,
    SEED,
    SPECIAL,
    STEPS,
    TEMPLATE,
    TOKENIZER,
    VOCABULARY,
    WARM_UP,
    digest,
    file_digests,
)

Pair = tuple[list[int], list[int]]  # prompt, completion


def main() -> int:
    """Train into the folder given, by default the one that ships."""
    parser = argparse.ArgumentParser(description="Train the demo model.")
    parser.add_argument("directory", nargs="?", type=Path, default=MODEL)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    train(options.directory, options.steps)
    return 0


def train(directory: Path, steps: int) -> None:
    """Teach and save; tells the loss as it falls and how many held-out lessons are answered word for word."""
    started = time.monotonic()
    directory.mkdir(parents=True, exist_ok=True)
    if directory != MODEL:
        shutil.copyfile(TEMPLATE, directory / TEMPLATE.name)
    _write(directory / "config.json", CONFIG)
    _write(directory / "generation_config.json", GENERATION)
    _write(directory / "tokenizer_config.json", TOKENIZER | {"added_tokens_decoder": _declared()})
    course = list(islice(lessons(SEED), LESSONS))
    render = _renderer(TEMPLATE.read_text(encoding="utf-8"))
    tokenizer = _tokenizer(_whole(render, lesson, thinking=True) for lesson in course[:1000])
    tokenizer.save(str(directory / "tokenizer.json"), pretty=False)

    network = Network(CONFIG, SEED)
    loss = _fit(network, [_pair(tokenizer, render, lesson, i) for i, lesson in enumerate(course)], steps)
    network.weights = _save(directory / "model.safetensors", network.weights)
    unseen = islice(lessons(SEED + 1), HELD_OUT)
    exact = _score(network, [_pair(tokenizer, render, lesson, i) for i, lesson in enumerate(unseen)])
    record = {"recipe": digest(), "steps": steps, "loss": round(loss, 5), "held_out_exact": round(exact, 4)}
    _write(directory / RECORD, record | {"files": file_digests(directory)})
    _say(f"loss {loss:.4f}, {exact:.1%} of held-out lessons exact, {time.monotonic() - started:.0f} s")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _declared() -> dict[str, dict[str, Any]]:
    flags = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    return {
        str(i): {"content": token, "special": token in SPECIAL} | flags
        for i, token in enumerate(SPECIAL + MARKERS)
    }


def _renderer(template: str) -> Callable[..., str]:
    """The chat template, rendered as transformers does."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(template).render


def _whole(render: Callable[..., str], lesson: Lesson, *, thinking: bool) -> str:
    return render(messages=[*lesson.messages, lesson.reply(thinking=thinking)], tools=lesson.tools)


def _tokenizer(texts: Iterable[str]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[AddedToken(t, special=t in SPECIAL, normalized=False) for t in SPECIAL + MARKERS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _pair(tokenizer: Any, render: Callable[..., str], lesson: Lesson, number: int) -> Pair:
    """Prompt and completion as tokens; every fourth lesson has its thinking switched off."""
    thinking = number % 4 != 0
    given = {"messages": lesson.messages, "tools": lesson.tools, "add_generation_prompt": True}
    prompt = render(**given) if thinking else render(**given, enable_thinking=False)
    completion = _whole(render, lesson, thinking=thinking).removeprefix(render(**given)).removesuffix("\n")
    return tokenizer.encode(prompt).ids, tokenizer.encode(completion).ids


def _fit(network: Network, pairs: Sequence[Pair], steps: int) -> float:
    """Train on the completions only; the mean loss of the last fifty steps."""
    rng, adam = random.Random(SEED), Adam(network)  # noqa: S311 - reproducible on purpose
    recent: list[float] = []
    by_length = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    for number in range(steps):
        # Neighbours in length share a batch, so little of it is padding.
        start = rng.randrange(0, len(by_length) - BATCH)
        ids, rows, wanted = _batch(by_length[start : start + BATCH])
        logits, back = network.logits(ids, rows)
        likely = np.exp(logits - logits.max(axis=-1, keepdims=True))
        likely /= likely.sum(axis=-1, keepdims=True)
        at = np.arange(len(rows)), wanted
        recent = [*recent[-49:], float(-np.log(likely[at] + 1e-9).mean())]
        likely[at] -= 1
        back(likely / np.float32(len(rows)))
        adam.step(RATE * min(1.0, (number + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * number / steps)))
        if number % 250 == 249:
            _say(f"step {number + 1}: loss {sum(recent) / len(recent):.4f}")
    return sum(recent) / len(recent)


def _score(network: Network, pairs: Sequence[Pair]) -> float:
    """The share of completions that would be written word for word, the likeliest token each time."""
    exact = 0
    for pair in pairs:
        ids, rows, wanted = _batch([pair])
        exact += bool((network.logits(ids, rows)[0].argmax(axis=-1) == wanted).all())
    return exact / len(pairs)


def _batch(pairs: Sequence[Pair]) -> tuple[Ids, Ids, Ids]:
    """Token ids padded at the right, the rows that predict a completion's tokens, and those tokens."""
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
