"""Runs in mlx-lm's environment, as a file: what a sequence takes in the caches that mlx-lm makes.

The toy is run with random weights in 32 bits, the only ones in which mlx mixes experts on a processor.
"""

# mypy: ignore-errors
import json
import os
import sys
from pathlib import Path

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import mlx.core as mx  # noqa: E402
from mlx.utils import tree_map  # noqa: E402
from mlx_lm.models.cache import make_prompt_cache  # noqa: E402
from mlx_lm.utils import _get_classes  # noqa: E402


def widen(value):
    """The parameter in 32 bits, where it is a number with a point."""
    return value.astype(mx.float32) if mx.issubdtype(value.dtype, mx.floating) else value


def answer(question):
    """Bytes of all caches after a prompt and a few tokens of an answer."""
    config = json.loads(Path(question["model"], "config.json").read_text("utf-8"))
    model_class, arguments = _get_classes(config)
    model = model_class(arguments.from_dict(config))
    model.update(tree_map(widen, model.parameters()))
    caches = make_prompt_cache(model)
    sizes = [question["step"]] * (question["prompt"] // question["step"])
    sizes.append(question["prompt"] - sum(sizes))
    for size in [*filter(None, sizes), *[1] * question["written"]]:
        model(mx.zeros((1, size), dtype=mx.int32), cache=caches)
        mx.eval([cache.state for cache in caches if not cache.empty()])
    return {"cache": sum(cache.nbytes for cache in caches)}


for line in sys.stdin:
    asked = json.loads(line)
    try:
        told = answer(asked)
    except Exception as error:
        told = {"refused": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(told), file=answers, flush=True)
