"""The benchmark of the field: rows, contestants on released sources, inputs by commit, new models."""

from __future__ import annotations

import csv
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.field import inputs, table
from benchmarks.field.__main__ import CONTESTANTS, HERE, main
from benchmarks.field.contestants import importer_unknown, llama_cpp, localai, majority, mlx_lm, sglang_auto
from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released
from gen_defaults.truth import CachedSession, Files, Truth, read
from importer.engines import registries
from importer.signals.tables import parser_table
from tests import template_texts as texts
from tests.hubserver import HubServer, isolate

HERMES, XML = "someone/hermes-1b", "someone/xml-1b"
FILES = {HERMES: texts.CHATML_JSON, XML: texts.XML_PARAMETERS}
RULES = """
from sglang.srt.arg_groups.overrides import declare_resolution

def detect_reasoning_pattern(template):
    return False, None

def detect_tool_call_parser(template, tokenizer, config, force):
    return "qwen25" if template and "<tool_call>" in tokenizer.get_vocab() else None

def detect_reasoning_parser(template, tokenizer, config, force):
    return None
"""
INFERENCE = """
import mlx.core

def _is_xtml_vocab(vocab):
    return False

def _infer_tool_parser(tokenizer):
    return "qwen3_coder" if "<function=" in tokenizer.chat_template else None
"""
CHOICE = """
std::optional<common_chat_params> common_chat_try_specialized_template(
        const std::string & src) {
    if (is_other(src)) {
        return common_chat_params_init_other(src);
    }
    if (src.find("<function=") != std::string::npos &&
        // but not a \\n
        src.find("<|channel|>") == std::string::npos) {
        return common_chat_params_init_qwen3_coder(src);
    }
    return std::nullopt;
}
"""


@pytest.fixture
def models(tmp_path: Path) -> list[Model]:
    for model_id, template in FILES.items():
        (folder := tmp_path / "files" / model_id.replace("/", "__")).mkdir(parents=True)
        (folder / "chat_template.jinja").write_text(template)
    return [Model(model_id, tmp_path / "files") for model_id in FILES]


@pytest.fixture
def released(tmp_path: Path) -> Released:
    parsers = {"families": {"hermes": {"tool_parser": "hermes"}}, "patterns": ["hermes"]}
    sampling = {"families": {"xml": {"temperature": 0.5}}, "patterns": ["xml"]}
    for path, text in {
        "LocalAI/core/config/parser_defaults.json": json.dumps(parsers),
        "LocalAI/core/config/inference_defaults.json": json.dumps(sampling),
        "sglang/sglang/srt/parser/template_detection.py": RULES,
        "mlx-lm/mlx_lm/tokenizer_utils.py": INFERENCE,
        "llama-cpp-python/vendor/llama.cpp/common/chat.cpp": CHOICE,
    }.items():
        (place := tmp_path / "sources" / path).parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return Released(tmp_path / "sources")


@pytest.mark.parametrize(
    ("contestant", "hermes", "xml"),
    [
        (localai, {"tool_parser": "hermes", "sampling": {}}, {"sampling": {"temperature": 0.5}}),
        (sglang_auto, {"tool_parser": "qwen25"}, {"tool_parser": "qwen25"}),
        (mlx_lm, {}, {"tool_parser": "qwen3_coder"}),
        (llama_cpp, None, {"tool_parser": "qwen3_coder"}),
        (majority, {"tool_parser": "hermes"}, {}),
    ],
)
def test_a_contestant_answers_by_its_own_released_code(
    models: list[Model], released: Released, contestant: Any, hermes: Any, xml: Any
) -> None:
    answers = contestant.answers(models, released).answers
    assert [answers.get(HERMES), answers.get(XML)] == [hermes, xml]


def test_right_is_one_definition_for_all() -> None:
    rows = [
        Truth("a/b", "b", {"tool_parser": ("hermes",), "reasoning_parser": (None,)}, {"top_p": 0.9}),
        Truth("a/c", "c", {"tool_parser": ("qwen3_coder",), "reasoning_parser": ("qwen3",)}),
        Truth("a/d", "d", {"tool_parser": (None,), "reasoning_parser": (None,)}),
    ]
    answers = {
        "a/b": {"tool_parser": "qwen25", "sampling": {"top_p": 0.8}},  # another name of the same format
        "a/c": {"tool_parser": "mistral", "reasoning_parser": "qwen3"},
        "a/d": {"tool_parser": None, "reasoning_parser": "qwen3-thinking"},
    }
    row = table.Line.of("one", Entry("1.0", answers, engine="sglang"), rows).row()
    assert row == {
        "contestant": "one", "version": "1.0", "both right": "1/3", "%": 33.3,
        "tool precision %": 50.0, "tool recall %": 50.0, "tool unanswered": 0,
        "reasoning precision %": 50.0, "reasoning recall %": 100.0, "reasoning unanswered": 1,
        "sampling": "0/1",
    }  # fmt: skip


def test_the_rows_are_facts_with_a_source() -> None:
    known = {kind: registries.load("vllm").names(kind) for kind in registries.KINDS.values()}
    assert len(read()) > 250
    with (HERE / "truth.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            assert row["source"].startswith("https://"), row
            assert bool(row["sampling"]) == row["sampling_source"].startswith("https://"), row
            for field, kind in registries.KINDS.items():
                assert {name for name in row[field].split("|") if name} <= {*known[kind]}, row
    with (HERE / "reports.csv").open(newline="") as file:
        reports = [*csv.DictReader(file)]
    assert len({row["id"] for row in reports}) == len(reports)
    assert all(
        re.match(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+$", r["source"]) for r in reports
    )


HEAD = "model_id,family,tool_parser,reasoning_parser,contested\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it has no column model_id and no family and no tool_parser"),
        (HEAD, "it lists no model"),
        (f"{HEAD}a/b,c\n", "line 2 has another number of cells than the first"),
        (f"{HEAD}a/b,c,hermes,,\na/b,c,,,\n", "it has a/b twice"),
        (f"{HEAD}../../etc,c,,,\n", "line 2: a model is named like org/name"),
        (f'{HEAD}a/b,c,"hermes\n', "unexpected end of data"),
        (f"{HEAD}a/\udcff,c,,,\n", "can't decode byte 0xff"),
    ],
)
def test_a_mistake_in_the_rows_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "truth.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=re.escape(says)):
        read(tmp_path / "truth.csv")


def test_a_family_without_its_rows_is_decided_by_its_files(tmp_path: Path, importer_home: Path) -> None:
    model_id = "Qwen/Qwen3-8B"
    (folder := tmp_path / "Qwen__Qwen3-8B").mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen3"}')
    (folder / "chat_template.jinja").write_text(texts.CHATML_JSON)
    rows, found = [truth for truth in read() if truth.model_id == model_id], {}
    with CachedSession(proves=False) as session:
        files = Files(tmp_path, session)
        found["known"] = files.predictor(parser_table())(model_id)
        ((_, found["unknown"]),) = importer_unknown.left_out(
            rows, parser_table(), files.predictor, files.deciding
        )
    assert {name: one["tool_parser"] for name, one in found.items()} == {
        "known": "hermes",
        "unknown": "hermes",
    }
    assert [one["reasoning_parser"] for one in found.values()] == ["qwen3", None]


def test_an_adapter_is_short() -> None:
    for name in CONTESTANTS:
        assert len((HERE / "contestants" / f"{name}.py").read_text().splitlines()) <= 60
    assert len(inspect.signature(localai.answers).parameters) == 2


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    files = {"chat_template.jinja": texts.CHATML_JSON, "config.json": {"model_type": "own"}}
    with HubServer({HERMES: files, "Qwen/Qwen3-8B": files}) as server:
        isolate(monkeypatch, tmp_path, server.url)
        yield server


def test_inputs_are_read_once_at_their_commit(
    hub: HubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rows := tmp_path / "rows.csv").write_text(f"model_id,commit\n{HERMES},\nlab/gone,\n")
    place = tmp_path / "files"
    words = ["fetch", "--truth", str(rows), "--repositories", str(place), "--pin"]
    assert main(words) == 1  # one is not there; the other is
    told = capsys.readouterr()
    assert told.out == f"1 of 2 models are in {place}\n"
    assert "field: lab/gone: " in told.err
    assert rows.read_text() == f"model_id,commit\n{HERMES},{hub.repos[HERMES].sha}\nlab/gone,\n"
    assert (place / "someone__hermes-1b" / "chat_template.jinja").read_text() == texts.CHATML_JSON
    hub.log.clear()
    main(words)
    assert not [path for path in hub.paths() if HERMES in path]
    assert inputs.described(place, [Truth(HERMES, "own", {})])["inputs"] == "1 models, 1 at known commits"


def test_new_models_that_no_table_knows_are_the_worklist(
    hub: HubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for repo in hub.repos.values():
        repo.info["pipeline_tag"] = "text-generation"
    assert main(["--newest", "5", "--history", str(tmp_path / "history.csv")]) == 0
    line, *_ = capsys.readouterr().out.splitlines()
    assert line == f"{HERMES}: tool_parser hermes, reasoning_parser none"
    assert re.fullmatch(r"[\d-]+,[\d.]+,1,1,0\n", (tmp_path / "history.csv").read_text())


@pytest.mark.parametrize(
    "words",
    [
        ["--truth", "/nowhere"], ["--truth", "README.md"], ["--repositories", "/nowhere"], ["--newest", "0"],
        ["--sources", "/nowhere"], ["--only", "nobody"], ["--history", "/nowhere/file"],
        ["--out", "README.md"], ["fetch", "--repositories", "README.md"], ["fetch", "--truth", "README.md"],
    ],
)  # fmt: skip
def test_wrong_words_end_with_the_usage(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE.parents[1])
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert capsys.readouterr().err.startswith("usage: python -m benchmarks.field")


def test_the_table_in_three_forms(
    models: list[Model], released: Released, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (rows := tmp_path / "rows.csv").write_text(
        "model_id,family,tool_parser,reasoning_parser,contested\n"
        f"{HERMES},a,hermes,,\n{XML},b,qwen3_coder,,\nlab/unread,c,mistral,,\n"
    )
    assert models
    words = ["--truth", str(rows), "--repositories", str(tmp_path / "files"), "--out", str(tmp_path / "out")]
    assert main([*words, "--sources", str(tmp_path / "sources"), "--contestants", "localai", "mlx_lm"]) == 0
    told = capsys.readouterr().out
    assert "**2 models, their files**" in told
    assert "**3 models, names alone**" in told
    assert told == (tmp_path / "out" / "results.md").read_text()
    made = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [line["contestant"] for line in made["tables"]["2 models, their files"]] == ["localai", "mlx_lm"]
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        assert [row["tool recall %"] for row in csv.DictReader(file)] == ["50.0", "50.0", "33.3"]
    monkeypatch.setattr(localai, "answers", lambda *_: 1 / len(""))
    assert main([*words, "--sources", str(tmp_path / "sources"), "--contestants", "localai", "mlx_lm"]) == 1
    out, err = capsys.readouterr()
    assert ("field: localai: ZeroDivisionError: " in err, "| mlx_lm |" in out) == (True, True)
    assert main([*words[:2], "--repositories", str(tmp_path), "--contestants", "mlx_lm"]) == 1
    assert "has no files of these models" in capsys.readouterr().err
