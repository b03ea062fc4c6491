"""Runs in the engine's environment: is the network of the demo model right? ``python -m tests.demo_script``.

It prints JSON: how far analytic gradients are from numeric ones, and our logits from those of mlx-lm's Qwen3.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from importer.demo import MODEL
from tools.demo_model.network import Network
from tools.demo_model.recipe import CONFIG

IDS = np.array([[3, 270, 40, 41, 300, 12, 7], [9, 8, 7, 6, 270, 4, 2]])
ROWS = np.array([0, 3, 6, 9, 13])


def gradients() -> float:
    """The largest relative difference over weights picked from each tensor, in double precision."""
    network = Network(CONFIG, seed=3)
    for holder in (network.weights, network.gradients):
        for name, array in holder.items():
            holder[name] = array.astype(np.float64)
    wanted = np.random.default_rng(0).normal(size=(len(ROWS), CONFIG["vocab_size"]))

    def loss() -> Any:
        return float((network.logits(IDS, ROWS)[0] * wanted).sum())

    network.logits(IDS, ROWS)[1](wanted)
    worst, rng, small = 0.0, np.random.default_rng(1), 1e-5
    for name, weight in network.weights.items():
        for _ in range(3):
            place = tuple(rng.integers(0, size) for size in weight.shape)
            if name == "model.embed_tokens.weight":
                place = (int(IDS[0, rng.integers(0, 7)]), place[1])
            kept = weight[place]
            weight[place] = kept + small
            above = loss()
            weight[place] = kept - small
            numeric = (above - loss()) / (2 * small)
            weight[place] = kept
            found = network.gradients[name][place]
            worst = max(worst, abs(numeric - found) / (abs(numeric) + abs(found) + 1e-4))
    return worst


def logits() -> float:
    """The largest difference to mlx-lm's own Qwen3 on the weights that ship, in single precision."""
    import mlx.core as mx
    from mlx_lm.models import qwen3

    weights = {k: v.astype(mx.float32) for k, v in mx.load(str(MODEL / "model.safetensors")).items()}
    theirs = qwen3.Model(qwen3.ModelArgs.from_dict(CONFIG))
    theirs.load_weights(list(weights.items()))
    ours = Network(CONFIG, seed=0)
    ours.weights = {k: np.array(v) for k, v in weights.items()}
    all_rows = np.arange(IDS.size)
    expected = np.array(theirs(mx.array(IDS))).reshape(IDS.size, -1)
    return float(np.abs(ours.logits(IDS, all_rows)[0] - expected).max())


if __name__ == "__main__":
    json.dump({"gradients": gradients(), "logits": logits()}, sys.stdout)
