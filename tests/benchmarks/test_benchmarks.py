"""Every benchmark runs for one tiny row, and each figure that a page quotes has one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import card, service
from benchmarks.__main__ import COMPARISONS, QUICK, SLOW, beside, committed, group, main, quoted, renewed

ROOT = Path(__file__).resolve().parents[2]
# What makes a group small: constants of its module.
TINY: dict[str, dict[str, Any]] = {
    "process": {"RUNS": 1},
    "overview": {"ENTRIES": 20, "TIMES": 1},
    "markdown": {"SIZE": 400},
    "hostile": {"TOKENS": 1, "THINKS": 1, "LISTED": 1},
    "service": {"ENTRIES": 5, "SECONDS": 0.5, "IMPORTS": 1},
    "service-bytes": {"NUMBER": 1},
    "service-idle": {"SECONDS": 0.1, "SETTLED": 0.0},
    "service-load": {"ENTRIES": 5, "SECONDS": 0.5, "IMPORTS": 1},
    "service-memory": {"SIZES": (5,)},
}


@pytest.mark.parametrize("name", QUICK + SLOW)
def test_a_benchmark_runs(name: str, monkeypatch: pytest.MonkeyPatch, importer_home: Path) -> None:
    module = group(name)
    for constant, value in TINY.get(name, {}).items():
        for one in (module, service):
            if hasattr(one, constant):
                monkeypatch.setattr(one, constant, value)
    rows = iter(module.rows())
    assert str(next(rows)).strip()
    rows.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: python -m benchmarks {name}")
    with pytest.raises(SystemExit, match="2"):
        main([name, *(["--log"] if name == "card" else []), "/nowhere"])


def test_a_figure_stands_beside_the_committed_one() -> None:
    kept = {"empty Python": "empty Python      20 ms"}
    assert beside("empty Python      25 ms", kept) == "empty Python      25 ms   committed: 20 ms"
    assert beside("another           25 ms", kept) == "another           25 ms"


def test_each_quoted_figure_is_on_its_page_and_measured() -> None:
    kept = committed()
    for page, quote, rows in quoted():
        assert quote in " ".join((ROOT / page).read_text(encoding="utf-8").split()), (page, quote)
        unknown = {row for row in rows if row not in kept and not (ROOT / row).is_file()}
        assert all(row.startswith(("make ", "python -m benchmarks ")) for row in unknown), (page, quote)


def test_a_run_replaces_its_own_groups_alone() -> None:
    before = "# old\n[a]\na: 1\n[b]\nb: 1\n[c]\nc: 1\n"
    assert renewed(before, ["# new", "[b]", "b: 2", "[a]", "a: 2"]) == (
        "# new\n[c]\nc: 1\n[b]\nb: 2\n[a]\na: 2\n"
    )


def test_figures_of_a_card_come_from_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = "start 60.0 s, probes 4.0 s, stop 1.0 s, first token 0.02 s, 300.5 tokens/s"
    (line,) = card.read(f"demo: validated on vllm-cuda ({times}).\n")
    assert line == (
        "demo (validated): start 60.0 s, probes 4.0 s, first 0.02 s, speed 300.5;"
        " in the docs: 65 s | 4.7 s | 0.016 s | 386 "
    )
    (tmp_path / "empty").write_text("")
    assert main(["card", "--log", str(tmp_path / "empty")]) == 1
    with pytest.raises(SystemExit, match="2"):
        main(["card"])
    assert "need a card" in capsys.readouterr().err
