"""A Qwen3 in numpy, forward and backward: so small a model trains in a minute on a processor.

Each layer function returns its value and a function that takes the gradient back; gradients of weights add up
in ``self.gradients`` under the names that transformers gives the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Ids = NDArray[np.int64]
Back = Callable[[Array], Array]
EMBEDDING = "model.embed_tokens.weight"


class Network:
    """The weights, and the way through them; ``config`` has the keys of a Qwen3 ``config.json``."""

    def __init__(self, config: Mapping[str, Any], seed: int) -> None:
        self.config = config
        self.weights = _initial(config, np.random.default_rng(seed))
        self.gradients = {name: np.zeros_like(w) for name, w in self.weights.items()}

    def logits(self, ids: Ids, rows: Ids) -> tuple[Array, Callable[[Array], None]]:
        """Return the logits at ``rows`` (positions in the flattened batch ``ids``, one sequence per line)."""
        flat, backs = ids.reshape(-1), []
        embedding = self.weights[EMBEDDING]
        h: Array = embedding[flat]
        for layer in range(self.config["num_hidden_layers"]):
            prefix = f"model.layers.{layer}."
            for name, block in (("input", self._attention), ("post_attention", self._mlp)):
                inner, back_norm = self._norm(h, f"{prefix}{name}_layernorm")
                out, back_block = block(inner, prefix, ids.shape)
                h = h + out
                backs.append((back_norm, back_block))
        normed, back_final = self._norm(h, "model.norm")
        chosen = normed[rows]

        def back(d_logits: Array) -> None:
            self.gradients[EMBEDDING] += d_logits.T @ chosen
            d_normed = np.zeros_like(normed)
            d_normed[rows] = d_logits @ embedding
            d = back_final(d_normed)
            for back_norm, back_block in reversed(backs):
                d = d + back_norm(back_block(d))
            np.add.at(self.gradients[EMBEDDING], flat, d)

        return chosen @ embedding.T, back

    def _linear(self, x: Array, name: str) -> tuple[Array, Back]:
        weight = self.weights[name + ".weight"]

        def back(d: Array) -> Array:
            self.gradients[name + ".weight"] += d.T @ x
            return d @ weight

        return x @ weight.T, back

    def _norm(self, x: Array, name: str) -> tuple[Array, Back]:
        gain = self.weights[name + ".weight"]
        scale = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(self.config["rms_norm_eps"]))
        unit = x * scale

        def back(d: Array) -> Array:
            self.gradients[name + ".weight"] += (d * unit).reshape(-1, gain.size).sum(axis=0)
            d_unit = d * gain
            return np.asarray(scale * (d_unit - unit * np.mean(d_unit * unit, axis=-1, keepdims=True)))

        return unit * gain, back

    def _mlp(self, x: Array, prefix: str, _shape: tuple[int, ...]) -> tuple[Array, Back]:
        gate, back_gate = self._linear(x, prefix + "mlp.gate_proj")
        up, back_up = self._linear(x, prefix + "mlp.up_proj")
        sigmoid = np.asarray(1 / (1 + np.exp(-gate)), gate.dtype)
        out, back_down = self._linear(gate * sigmoid * up, prefix + "mlp.down_proj")

        def back(d: Array) -> Array:
            d_inner = back_down(d)
            d_gate = d_inner * up * sigmoid * (1 + gate * (1 - sigmoid))
            return back_gate(d_gate) + back_up(d_inner * gate * sigmoid)

        return out, back

    def _attention(self, x: Array, prefix: str, shape: tuple[int, ...]) -> tuple[Array, Back]:
        (batch, length), size = shape, self.config["head_dim"]
        groups = self.config["num_key_value_heads"]
        prefix += "self_attn."
        cos, sin = _angles(length, size, self.config["rope_theta"])

        def heads(name: str) -> tuple[Array, Back]:
            flat, back_linear = self._linear(x, f"{prefix}{name}_proj")
            split = flat.reshape(batch, length, -1, size)
            if name == "v":
                return split, lambda d: back_linear(d.reshape(flat.shape))
            unit, back_norm = self._norm(split, f"{prefix}{name}_norm")
            # Turning back is turning by the negative angle.
            turned = _turn(unit, cos, sin)
            return turned, lambda d: back_linear(back_norm(_turn(d, cos, -sin)).reshape(flat.shape))

        def fold(a: Array) -> Array:  # query heads of one group stand below each other
            a = a.reshape(batch, length, groups, -1, size).transpose(0, 2, 3, 1, 4)
            return np.ascontiguousarray(a).reshape(batch, groups, -1, size)

        def unfold(a: Array) -> Array:
            a = a.reshape(batch, groups, -1, length, size).transpose(0, 3, 1, 2, 4)
            return np.ascontiguousarray(a).reshape(batch, length, -1, size)

        (q, back_q), (k, back_k), (v, back_v) = heads("q"), heads("k"), heads("v")
        fq, fk, fv = fold(q), fold(k), fold(v)
        scale = np.float32(size**-0.5)
        future = np.triu(np.full((length, length), -1e9, np.float32), 1)
        scores = fq @ fk.swapaxes(-1, -2) * scale + np.tile(future, (fq.shape[2] // length, 1))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        share = scores / scores.sum(axis=-1, keepdims=True)
        out, back_out = self._linear(unfold(share @ fv).reshape(batch * length, -1), prefix + "o_proj")

        def back(d: Array) -> Array:
            d_mixed = fold(back_out(d))
            d_share = d_mixed @ fv.swapaxes(-1, -2)
            d_scores = share * (d_share - (d_share * share).sum(axis=-1, keepdims=True)) * scale
            d_v = back_v(unfold(share.swapaxes(-1, -2) @ d_mixed))
            return d_v + back_q(unfold(d_scores @ fk)) + back_k(unfold(d_scores.swapaxes(-1, -2) @ fq))

        return out, back


class Adam:
    """AdamW with the gradient's length cut to one."""

    def __init__(self, network: Network, decay: float = 0.01) -> None:
        self.network, self.decay, self.steps = network, decay, 0
        self.mean = {name: np.zeros_like(w) for name, w in network.weights.items()}
        self.square = {name: np.zeros_like(w) for name, w in network.weights.items()}

    def step(self, rate: float) -> None:
        """Use the gradients and clear them."""
        self.steps += 1
        length = np.sqrt(sum(float((g * g).sum()) for g in self.network.gradients.values()))
        shrink = np.float32(1 / max(1.0, length))
        for name, whole in self.network.gradients.items():
            gradient = whole * shrink
            mean, square, weight = self.mean[name], self.square[name], self.network.weights[name]
            mean += np.float32(0.1) * (gradient - mean)
            square += np.float32(0.02) * (gradient * gradient - square)
            step = (mean / (1 - 0.9**self.steps)) / (np.sqrt(square / (1 - 0.98**self.steps)) + 1e-8)
            weight -= np.float32(rate) * (step + (self.decay * weight if weight.ndim > 1 else 0))
            whole[...] = 0


def _initial(config: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Array]:
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (config["vocab_size"], hidden)}
    for layer in range(config["num_hidden_layers"]):
        own = {
            "self_attn.q_proj": (queries, hidden), "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden), "self_attn.o_proj": (hidden, queries),
            "self_attn.q_norm": (size,), "self_attn.k_norm": (size,),
            "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner), "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
        }  # fmt: skip
        shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in own.items()}
    shapes["model.norm.weight"] = (hidden,)
    return {
        name: np.ones(shape, np.float32) if len(shape) == 1
        else rng.normal(0, shape[1] ** -0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
    }  # fmt: skip


def _angles(length: int, size: int, base: float) -> tuple[Array, Array]:
    """Return cosine and sine per position, shaped to meet (batch, length, heads, size / 2)."""
    turns = np.arange(length)[:, None] * base ** (-np.arange(0, size, 2) / size)
    return np.cos(turns).astype(np.float32)[:, None, :], np.sin(turns).astype(np.float32)[:, None, :]


def _turn(x: Array, cos: Array, sin: Array) -> Array:
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
