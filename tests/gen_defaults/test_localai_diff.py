"""The diff for LocalAI's table: rows that it lacks and refuted ones, with the models that speak for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gen_defaults.__main__ import main
from gen_defaults.localai_diff import LocalTable

TABLE = """{
  "families": {
    "qwen3":         {"tool_parser": "hermes",     "reasoning_parser": "qwen3"},
    "minimax":       {"tool_parser": "hermes"}
  },
  "patterns": ["qwen3","minimax"]
}
"""
ROWS = """model_id,family,tool_parser,reasoning_parser,contested,source
Qwen/Qwen3-8B,qwen3,hermes,qwen3,,https://example.org/a
MiniMaxAI/MiniMax-M2,minimax,minimax_m2,minimax_m2,,https://example.org/b
mistralai/Mistral-Nemo-Instruct-2407,mistral,mistral,,,https://example.org/c
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    (tmp_path / "core" / "config").mkdir(parents=True)
    (tmp_path / "core" / "config" / "parser_defaults.json").write_text(TABLE)
    (tmp_path / "rows.csv").write_text(ROWS)
    return ["localai-diff", str(tmp_path), "--truth", str(tmp_path / "rows.csv")]


def test_a_row_that_makes_answers_right_is_proposed(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.err.endswith("right for 1 of 3 models before, 3 after\n")
    lines = told.out.splitlines()
    assert lines[:2] == ["--- a/core/config/parser_defaults.json", "+++ b/core/config/parser_defaults.json"]
    changed = [line for line in lines[2:] if line.startswith(("+", "-")) and "patterns" not in line]
    assert not [line for line in changed if '"qwen3"' in line]
    assert any('"minimax' in line and "minimax_m2" in line for line in changed)


def test_each_row_has_its_evidence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--evidence"]) == 0
    told = capsys.readouterr().out
    assert (
        "  - MiniMaxAI/MiniMax-M2: tool_parser minimax_m2; reasoning_parser minimax_m2 ([source](https://example.org/b))"
        in told.splitlines()
    )


def test_the_longer_pattern_stands_before_its_parts() -> None:
    table = LocalTable.of(TABLE, "x").with_row("qwen3.6", {"tool_parser": "qwen3_coder"})
    assert table.patterns == ["qwen3.6", "qwen3", "minimax"]
    assert table.find("Qwen/Qwen3.6_27B.gguf") == "qwen3.6"
    assert json.loads(table.text(TABLE))["families"]["qwen3.6"] == {"tool_parser": "qwen3_coder"}


def test_a_file_that_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("[]")
    assert main(["localai-diff", str(tmp_path / "x.json")]) == 1
    assert capsys.readouterr().err.startswith("localai-diff: ")
