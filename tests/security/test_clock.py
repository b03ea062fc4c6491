"""No reader of outside text takes time that grows faster than n log n, or memory without end."""

from __future__ import annotations

import ast
import math
import re
import sys
from pathlib import Path

import pytest

from tests.clock import measure, repositories
from tests.clock.readers import ELSEWHERE, READERS, Reader
from tests.clock.shapes import repeated, shapes
from tests.syntax import ROOT, nodes, written
from tests.tiers import one_of_each

# Whole runs of these have answers of every shape and size: ``test_hostile_server``.
RUNS = ("importer.validation.", "importer.reports.")
PARSES = ("re", "yaml", "json.loads", "json.load", "ast.literal_eval", "urllib.parse")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no clock of a process's own there")


def slow(reader: Reader, *, few: bool, limit: float = measure.LIMIT) -> dict[str, str]:
    """The shapes with which a reader's time or memory grows too fast."""
    found = {}
    size = reader.size // 4 if few else reader.size
    few = few or reader.of_data
    for name, shape in shapes(() if few else reader.patterns, few=few).items():
        try:
            grown = measure.growth(reader.read, lambda n, shape=shape: reader.given(shape(n)), size, limit)
        except MemoryError:
            found[name] = "more memory than the cap"
            continue
        if grown is not None:
            found[name] = str(grown)
    return found


def room(reader: Reader) -> str:
    return str(reader.modules).split(".")[1] if reader.modules else ""


# Whatever the text, one question takes a tenth of a second: these are asked in the slow part alone.
COSTLY = {"fit"}


@pytest.mark.parametrize(
    "reader", one_of_each([r for r in READERS if r.name not in COSTLY], room, "slow"), ids=lambda r: r.name
)
def test_a_reader_takes_time_by_the_length_of_its_text(reader: Reader) -> None:
    assert not slow(reader, few=True)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("reader", [pytest.param(reader, id=reader.name) for reader in READERS])
def test_whatever_the_shape_of_its_text(reader: Reader) -> None:
    assert not slow(reader, few=False)


@pytest.mark.slow
@pytest.mark.parametrize("key", repositories.LONGEST)
def test_what_is_read_outside_the_sandbox_is_soon_read(key: str) -> None:
    assert measure.clocked(repositories.fitted, repositories.at_limit(key), 10) < math.inf


@pytest.mark.slow
@pytest.mark.nightly
def test_the_clock_sees_what_grows_too_fast() -> None:
    build = repeated("<think")
    quadratic = re.compile(r"<[^>]*x").search
    assert measure.growth(quadratic, build, measure.noticed(quadratic, build), limit=1.0) is not None
    assert measure.growth(code_points, build, measure.noticed(code_points, build)) is None
    endless = Reader("endless", re.compile(r"(?:a|a)+b").search, (), 160)
    assert slow(endless, few=True, limit=0.5)["'a'"].endswith(f"{math.inf:.2f} s")
    greedy = Reader("greedy", lambda text: text * len(text), (), 120_000)
    assert "more memory than the cap" in slow(greedy, few=True).values()


def code_points(text: str) -> int:
    """In step with the length."""
    return sum(map(ord, text))


def test_near_misses_come_of_a_pattern_itself() -> None:
    shape = re.compile(r"ab(?:cd|e)+f\w*g")
    texts = {made(20) for name, made in shapes([shape]).items() if name.startswith("near")}
    assert any(text.startswith("abcdcdcd") for text in texts)
    assert any(text.startswith("abcdabcd") for text in texts)
    assert any(text.startswith("abcdfaaaa") for text in texts)


@pytest.mark.xdist_group("syntax")
def test_every_module_that_reads_is_on_the_clock() -> None:
    """A module with a pattern or a parser is one of a reader's, or is listed with the reason why not."""
    reading = {name for name, path in modules() if reads(path)}
    covered = {module for reader in READERS for module in reader.modules}
    covered |= {name for name in reading if name.startswith(RUNS)} - ELSEWHERE.keys()
    assert reading - covered - ELSEWHERE.keys() == set()
    assert ELSEWHERE.keys() - reading == set()
    assert ELSEWHERE.keys() & covered == set()


def modules() -> list[tuple[str, Path]]:
    found = [*(ROOT / "importer").rglob("*.py"), *(ROOT / "gen_defaults").rglob("*.py")]
    names = [(".".join(p.relative_to(ROOT).with_suffix("").parts), p) for p in found]
    return [(n.removesuffix(".__init__"), p) for n, p in names if not n.startswith("importer.demo.")]


def reads(path: Path) -> bool:
    """Whether it uses a regular expression, JSON or YAML to take a text apart."""
    used = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            used.add(node.module or "")
        elif isinstance(node, ast.Attribute):
            used.add(written(node))
    return not used.isdisjoint(PARSES)
