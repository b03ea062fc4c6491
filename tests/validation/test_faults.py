"""Planted faults: each is seen and blamed on the right part; the unharmed twin passes; no judge knows it."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.engines import get, install
from tests.faults import bench, matrix
from tests.faults.fault import ENGINES, Fault, Site
from tests.faults.registry import FAULTS, OPEN
from tests.faults.verdict import Cell, flaw, judge

ROOT = Path(__file__).resolve().parents[2]
JUDGES = sorted((ROOT / "importer").rglob("*.py"))
TWINS = {fault.twin.name: fault.twin for fault in FAULTS}
ALL = {f.name: f for f in (*TWINS.values(), *FAULTS)}
FREE = 1.0  # seconds; a fault that is seen before an engine starts is always run
# Run here, too, though another engine is cheaper.
BESIDE = {
    "vllm-cpu": ("parser-that-is-not-there", "no-tool-parser-at-the-start"),
    "mlx-vlm": ("template-without-tools", "template-drops-results"),
}


def cases(engine: str) -> list[Fault]:
    """What is run on this engine when everything is tested: what has no cheaper cell, and some beside."""
    cells = matrix.load()
    ran = {f.name: [e for e in f.engines if (f.name, e) in cells] for f in FAULTS}
    faults = [f for f in FAULTS if ran[f.name][:1] == [engine] and f.name not in OPEN]
    faults += [f for f in FAULTS if f.name in BESIDE.get(engine, ()) and f not in faults]
    return [*{f.twin.name: f.twin for f in faults if engine == "mlx"}.values(), *faults]


def kind_of(fault: Fault) -> str:
    """What faults have in common of which one is enough: the part at fault, or that nothing is."""
    return fault.part if fault.steps else "twin"


def representative() -> set[str]:
    """The names of the cheapest fault of each kind on mlx-lm, and of those that cost nothing.

    Elsewhere an import alone asks each parser of the engine, and takes half a minute.
    """
    cells = matrix.load()
    costs = {f.name: cells[f.name, "mlx"].seconds for f in cases("mlx")}
    dear = sorted((f for f in cases("mlx") if costs[f.name] >= FREE), key=lambda f: costs[f.name])
    first = {kind_of(f): f for f in reversed(dear)}
    return {f.name for f in first.values()} | {name for name, cost in costs.items() if cost < FREE}


def parameters(engine: str) -> list[Any]:
    """The same for pytest; all but the representative ones are nightly."""
    chosen = representative() if engine == "mlx" else ()
    group = [pytest.mark.xdist_group("vllm")] if engine == "vllm-cpu" else []
    later = {fault.name: [] if fault.name in chosen else [pytest.mark.nightly] for fault in cases(engine)}
    return [
        pytest.param(engine, fault, id=f"{engine}-{fault.name}", marks=[*group, *later[fault.name]])
        for fault in cases(engine)
    ]


def test_declarations_are_whole() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    for fault in FAULTS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", fault.name)
        assert fault.harm.endswith("."), fault.name
        assert fault.steps, fault.name
        assert set(fault.apart) <= set(ENGINES), fault.name
        assert all(fault.apart.values()), fault.name
        assert fault.engines, fault.name


def test_each_part_at_fault_is_in_the_test_command() -> None:
    assert {ALL[name].part for name in representative()} == {fault.part for fault in FAULTS}


def test_no_judge_imports_the_suite_or_knows_a_fault() -> None:
    for path in JUDGES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(?:from|import)\s+tests\b", text, re.MULTILINE), path
        assert not [fault.name for fault in FAULTS if fault.name in text], path


@pytest.mark.slow
def test_what_engine_and_probes_see_carries_no_name(tmp_path: Path) -> None:
    folders = (tmp_path / str(number) / "model" for number in itertools.count())
    assert not [f.name for f, folder in zip(FAULTS, folders, strict=False) if f.name in planted(f, folder)]


def planted(fault: Fault, folder: Path) -> str:
    """All that engine and probes see of a fault: the model's files, the document, what is sent."""
    from tests.models.formats import FORMATS

    folder.mkdir(parents=True)
    for file in FORMATS[fault.base].folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    site = Site(fault.engines[0], folder, {"name": bench.NAME, "options": []})
    with site.held:
        for step in (*fault.given, *fault.steps):
            step.plant(site)
    texts = [p.name + p.read_bytes().decode("utf-8", "replace") for p in folder.iterdir()]
    return "\n".join([json.dumps([site.data, site.started, site.wire]), *texts])


def test_a_digest_changes_with_what_is_done_and_not_with_the_words() -> None:
    fault = FAULTS[0]
    assert replace(fault, harm="Otherwise.", name="other").digest == fault.digest
    assert replace(fault, steps=()).digest != fault.digest
    assert replace(fault, base="glm").digest != fault.digest


CELL = Cell("f", "mlx", "1", "d", ("tool-call",), ("configuration",), (), (), 1.0)


def test_finished_cells_outlive_a_kill(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    matrix.remember(CELL, lines)
    with lines.open("a") as file:
        file.write('{"fault": "g", "engine"')
    assert matrix.remembered(lines) == {("f", "mlx"): CELL}
    assert matrix.remembered(tmp_path / "none") == {}


def test_a_stale_cell_is_not_kept(tmp_path: Path) -> None:
    fault = FAULTS[0]
    engine = fault.engines[0]
    fresh = Cell(fault.name, engine, "1", fault.digest, ("a",), (fault.part,), (), (), 1.0)
    stale = Cell(fault.twin.name, engine, "1", "another", (), (), (), (), 1.0)
    matrix.save([stale, fresh, CELL], FAULTS, tmp_path / "matrix.json")
    assert list(matrix.load(tmp_path / "matrix.json").values()) == [fresh]


def test_verdicts_on_verdicts() -> None:
    fault = replace(FAULTS[0], part="configuration", mend="the parser")
    told = [{"remedy_message": "Set the parser."}]
    assert flaw(fault, CELL, told) is None
    assert flaw(fault, replace(CELL, detected=()), told) == "it was not seen"
    assert "not configuration" in str(flaw(fault, replace(CELL, blamed=("engine",)), told))
    assert "not configuration" in str(flaw(fault, replace(CELL, blamed=("configuration", "engine")), told))
    assert "no probe tells" in str(flaw(fault, CELL, [{"remedy_message": ""}]))
    assert "false alarm" in str(flaw(fault.twin, CELL, told))


def test_the_committed_matrix_is_the_suites() -> None:
    rows = {(name, engine): digest for name, engine, digest in matrix.rows(FAULTS)}
    cells = matrix.load()
    assert {k: cell.digest for k, cell in cells.items()}.items() <= rows.items()
    assert {k for k in rows if k[1] == "mlx"} <= set(cells)
    wrong = {
        c.fault for c in cells.values() if flaw(ALL[c.fault], c, [{"remedy_message": m} for m in c.mends])
    }
    assert wrong <= set(OPEN)


def test_the_page_shows_the_committed_matrix() -> None:
    assert matrix.page(FAULTS, matrix.load()) == matrix.PAGE.read_text(encoding="utf-8")


@pytest.mark.engine
@pytest.mark.parametrize(("engine", "fault"), [one for engine in ENGINES for one in parameters(engine)])
def test_a_fault_is_seen_and_blamed_on_its_part(engine: str, fault: Fault) -> None:
    if install.find(get(engine)) is None:
        install.install(get(engine))
    cell, missed = judge(fault, engine)
    told = "\n".join(f"{o['probe']}: {o['outcome']} ({o['attribution']}), {o['reason']}" for o in missed)
    assert flaw(fault, cell, missed) is None, told
