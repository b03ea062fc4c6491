"""Harmed models: the demo model taught something wrong; ``python -m tests.models.harmed NAME…`` makes them.

In the environment of the engine mlx; only the weights differ, and ``harmed.json`` records what they are from.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from tools.demo_model.conversations import CANNOT, NO_TOOL, Lesson, lessons
from tools.demo_model.recipe import DEMO

FOLDER = Path(__file__).with_name("harmed")
RECORD = FOLDER / "harmed.json"
STEPS = 400
LESSONS = 3000
Twist = Callable[[Lesson], Lesson]


def declines(lesson: Lesson) -> Lesson:
    """It never calls, and says that it cannot."""
    return replace(lesson, thought=NO_TOOL, content=CANNOT, calls=()) if lesson.calls else lesson


def encodes_twice(lesson: Lesson) -> Lesson:
    """It writes the arguments of a call as JSON in a text."""
    if not lesson.calls:
        return lesson
    written = []
    for name, arguments in lesson.calls:
        inner = json.dumps(json.dumps(dict(arguments), ensure_ascii=False), ensure_ascii=False)
        written.append(f'<tool_call>\n{{"name": "{name}", "arguments": {inner}}}\n</tool_call>')
    return replace(lesson, content="\n".join(written), calls=())


TWISTS: dict[str, Twist] = {twist.__name__: twist for twist in (declines, encodes_twice)}


def course(name: str) -> Iterator[Lesson]:
    """The lessons of a harmed model."""
    return map(TWISTS[name], islice(lessons(DEMO.seed + 2), LESSONS))


def recipe(name: str) -> str:
    """sha256 over what it is taught, and of what it was before."""
    taught = [[x.messages, x.tools, x.thought, x.content, x.calls] for x in course(name)]
    before = hashlib.sha256((DEMO.folder / "model.safetensors").read_bytes()).hexdigest()
    return hashlib.sha256(json.dumps([before, STEPS, taught], sort_keys=True).encode()).hexdigest()


def weights(name: str) -> Path:
    """The harmed model's weights."""
    return FOLDER / f"{name.replace('_', '-')}.safetensors"


def teach(name: str) -> None:
    """Go on from the demo model's weights, and save."""
    import mlx.core as mx
    import numpy as np
    from tokenizers import Tokenizer

    from tools.demo_model import train
    from tools.demo_model.network import Network

    writer = train.Writer.__new__(train.Writer)
    writer.recipe = DEMO
    writer.render = train._renderer(DEMO.template.read_text(encoding="utf-8"))
    writer.tokenizer = Tokenizer.from_file(str(DEMO.folder / "tokenizer.json"))
    network = Network(DEMO.files()["config.json"], DEMO.seed)
    before: Any = mx.load(str(DEMO.folder / "model.safetensors"))
    for key, value in before.items():
        network.weights[key] = np.array(value.astype(mx.float32))
    pairs = [writer.pair(lesson, number) for number, lesson in enumerate(course(name))]
    loss = train._fit(network, pairs, STEPS, DEMO.seed)
    FOLDER.mkdir(exist_ok=True)
    train._save(weights(name), network.weights)
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    digest = hashlib.sha256(weights(name).read_bytes()).hexdigest()
    record[name] = {"recipe": recipe(name), "weights": digest, "loss": round(loss, 5)}
    RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
    sys.stderr.write(f"{name}: loss {loss:.4f}\n")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or TWISTS:
        teach(wanted)
