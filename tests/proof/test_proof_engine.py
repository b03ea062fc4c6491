"""The proof on the real engines: templates of our own, read by their own parsers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.app.target import bind
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary, read_vocabulary
from importer.cli.main import run
from importer.decisions.decide import decide
from importer.decisions.decision import Preferences
from importer.engines import install
from importer.engines.install import Installed
from importer.engines.parsers import ParserWorker
from importer.engines.tokens import Tokens
from importer.hub.snapshot import Snapshot
from importer.proof import Proof
from importer.proof.prove import prove
from importer.sentences import render
from importer.signals.evidence import Evidence, Rule, is_warning
from tests import template_texts as texts
from tests.analysing import analysed
from tests.commandline import whole_receipt
from tests.facts import as_reason, whys

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("parsers")]

# The words of a vocabulary that are one token each; the first ends a turn.
CHATML = ("<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
LLAMA = ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|python_tag|>")
DEEPSEEK = ("<｜end▁of▁sentence｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜User｜>", "<｜Assistant｜>")  # fmt: skip
# Calls fenced as Markdown, in the style of the older DeepSeek templates.
FENCED = """{% if tools %}{{ tools | tojson }}{% endif %}
{%- for m in messages %}
{%- if m.role == 'assistant' %}{{- '<｜Assistant｜>' + (m.content or '') }}
{%- if m.tool_calls %}
{{- '<｜tool▁calls▁begin｜>' }}
{%- for c in m.tool_calls %}
{{- '<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + c.function.name + '\\n```json\\n'
    + (c.function.arguments | tojson) + '\\n```<｜tool▁call▁end｜>' + ('\\n' if not loop.last else '') }}
{%- endfor %}
{{- '<｜tool▁calls▁end｜>' }}
{%- endif %}
{{- '<｜end▁of▁sentence｜>' }}
{%- else %}{{- '<｜User｜>' + m.content }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<｜Assistant｜>' }}{% endif %}"""


@pytest.fixture(scope="module")
def vllm(vllm_parsers: Installed) -> Iterator[ParserWorker]:
    with ParserWorker("vllm", vllm_parsers.python) as worker:
        yield worker


def declares(words: tuple[str, ...]) -> dict[str, Any]:
    """``tokenizer_config.json`` with these words as tokens of their own."""
    table = {
        str(100 + i): {"content": word, "special": word.startswith("<|")} for i, word in enumerate(words)
    }
    return {"added_tokens_decoder": table, "eos_token": words[0]}


def study_of(text: str, words: tuple[str, ...] = ()) -> TemplateAnalysis:
    if not words:
        return analysed(text, Vocabulary())
    source = Snapshot("r", None, None, (), {"tokenizer_config.json": json.dumps(declares(words))})
    return analysed(text, read_vocabulary(source))


def tokens_of(words: tuple[str, ...]) -> Tokens:
    return Tokens(tokens=tuple((w, w.startswith("<|")) for w in words), eos=words[0] if words else None)


def ask(worker: ParserWorker, text: str, words: tuple[str, ...]) -> Proof:
    return prove(study_of(text, words), tokens_of(words), bool(words), worker)


def test_a_template_without_reasoning_finds_the_parsers_that_lose_its_plain_answer(
    vllm: ParserWorker,
) -> None:
    proof = ask(vllm, texts.CHATML_JSON, CHATML)
    assert "reasoning_parser" in proof.unasked
    assert {"qwen3", "deepseek_r1"} <= set(proof.plain)
    assert "deepseek_v3" not in proof.plain  # it reads reasoning where the request switches it on


@pytest.fixture
def lacking(vllm_engine: Installed, tmp_path: Path) -> Installed:
    """The engine's environment without pycountry, that eight in ten of its parsers import by the way."""
    own, (packages,) = tmp_path / "venv", {p.resolve() for p in install.places(vllm_engine.python)}
    bin_, here = own / "bin", own / "lib" / packages.parent.name / "site-packages"
    bin_.mkdir(parents=True)
    here.mkdir(parents=True)
    (bin_ / "python").symlink_to(vllm_engine.python.resolve())
    (own / "pyvenv.cfg").write_text((vllm_engine.python.parent.parent / "pyvenv.cfg").read_text())
    for each in packages.iterdir():
        if not each.name.startswith("pycountry"):
            (here / each.name).symlink_to(each)
    return replace(vllm_engine, python=bin_ / "python", root=None)


@pytest.mark.usefixtures("fresh_workers")
def test_a_parser_whose_module_does_not_import_is_not_judged(lacking: Installed) -> None:
    with ParserWorker("vllm", lacking.python) as worker:
        proof = ask(worker, texts.SWITCHED, CHATML)
    assert proof.accidents
    _, fact = proof.evidence()
    assert "pycountry" in render(fact.value.unjudged["qwen3"])
    assert not {"qwen3"} & {*fact.value.refuted, *fact.value.reads}
    named = Evidence(Rule.FAMILY_TABLE, "reasoning_parser", "qwen3", "table", as_reason("qwen3"))
    decision = decide([*proof.evidence(), named], Preferences({}), bind("vllm").target)["reasoning_parser"]
    assert (decision.value, decision.status) == ("qwen3", "table")
    assert any(is_warning(reason) and "pycountry" in render(reason) for reason in decision.why)


@pytest.mark.parametrize(
    ("text", "words", "right", "wrong"),
    [
        (texts.CHATML_JSON, CHATML, {"hermes", "qwen3_json"}, "qwen3_coder"),
        (texts.XML_PARAMETERS, CHATML, {"qwen3_coder", "qwen3_xml"}, "hermes"),
        (texts.HEADERS, LLAMA, {"llama3_json", "llama4_json"}, "hermes"),
        (FENCED, DEEPSEEK, {"deepseek_v3"}, "deepseek_v31"),
    ],
    ids=["json", "xml", "headers", "fenced"],
)
def test_vllm_reads_its_formats_and_refutes_the_others(
    vllm: ParserWorker, text: str, words: tuple[str, ...], right: set[str], wrong: str
) -> None:
    proof = ask(vllm, text, words)
    assert right <= set(proof.reads("tool_parser"))
    assert wrong not in proof.reads("tool_parser")
    tool = proof.evidence()[0]
    assert render(tool.value.refuted[wrong]).startswith("one-call: ")
    assert "vocabulary assumed" not in render(tool.reason)
    best = proof.verdicts["tool_parser"][0]
    assert best.reads
    assert len(best.passed) >= 10
    assert render(proof.unasked["reasoning_parser"]) == "the template renders no reasoning"


def test_a_call_that_nobody_reads_is_no_ground_for_a_parser(vllm: ParserWorker) -> None:
    proof = ask(vllm, texts.PYTHONIC, CHATML)
    assert proof.reads("tool_parser") == []
    target = replace(bind("vllm", proof.version, ask=False).target, proves=True)
    decision = decide(proof.evidence(), Preferences(), target)["tool_parser"]
    assert decision.status == "unknown"
    assert "no parser of vllm reads what the template writes" in whys(decision)


def test_a_vocabulary_that_nobody_declares_is_assumed_and_said(vllm: ParserWorker) -> None:
    proof = ask(vllm, texts.XML_PARAMETERS, ())
    assert proof.assumed
    assert {"qwen3_coder", "qwen3_xml"} <= set(proof.reads("tool_parser"))
    assert "vocabulary assumed" in render(proof.evidence()[0].reason)


def test_a_declared_vocabulary_without_the_marker_refutes(vllm: ParserWorker) -> None:
    study = study_of(texts.HEADERS, LLAMA[:-1])
    declared = prove(study, tokens_of(LLAMA[:-1]), True, vllm)
    assert "llama3_json" not in declared.reads("tool_parser")
    assert "<|python_tag|>" in render(declared.evidence()[0].value.refuted["llama3_json"])
    assert "llama3_json" in prove(study, tokens_of(LLAMA[:-1]), False, vllm).reads("tool_parser")


def test_a_parser_has_the_switches_that_it_listens_to(vllm: ParserWorker) -> None:
    heeds = ask(vllm, texts.OPENED, CHATML).heeds
    assert heeds["qwen3"] == ("enable_thinking",)
    assert heeds["deepseek_r1"] == ()


def test_a_request_that_says_nothing_is_read_or_the_document_says_it(vllm: ParserWorker) -> None:
    """As MiniCPM5: without its switch the prompt leaves a block and a plain answer open."""
    proof = ask(vllm, texts.UNSAID, CHATML)
    reads = [v for v in proof.verdicts["reasoning_parser"] if v.reads]
    assert reads
    lossless = [v for v in reads if v.setting is None and not v.lost and not v.stepwise]
    assert lossless == []
    target = bind("vllm", proof.version, ask=False).target
    decisions = decide(
        proof.evidence(), Preferences(), replace(target, proves=True), None, proof.setting
    )  # fmt: skip
    assert decisions["chat_template_kwargs"].value == {"enable_thinking": True}


def test_parsers_are_streamed_as_the_server_composes_them(vllm: ParserWorker) -> None:
    """Alone it streams each thought; beside hermes the stream of a call after a thought is another answer."""
    proof = ask(vllm, texts.SWITCHED, CHATML)
    alone = next(v for v in proof.verdicts["reasoning_parser"] if v.parser == "olmo3")
    assert "thinking-whole" in alone.passed
    assert "thinking-whole" not in alone.stepwise
    assert "thinking-call" in render(proof.pairs["olmo3"]["hermes"])
    assert "qwen3" not in proof.pairs
    assert Proof.from_json(json.loads(json.dumps(proof.to_json()))).pairs == proof.pairs


def test_a_parser_that_needs_the_default_of_thinking_gets_it_by_the_document(vllm: ParserWorker) -> None:
    """As a template of Laguna's that thinks unless it is switched off."""
    text = texts.OPENED_ON_DEMAND.replace("default(false)", "default(true)")
    proof = ask(vllm, text, CHATML)
    assert proof.setting("deepseek_v3") == {"enable_thinking": True}
    assert proof.setting("qwen3") is None
    fact = proof.evidence()[1]
    assert {"deepseek_v3", "qwen3"} <= set(fact.value.complete)


def test_a_parser_that_loses_plain_answers_is_incomplete(vllm: ParserWorker) -> None:
    """As on MiniCPM5-1B: with thinking off ``deepseek_r1`` returns no content."""
    fact = ask(vllm, texts.SWITCHED, CHATML).evidence()[1]
    assert "deepseek_r1" in fact.value.reads
    assert "thinking-off" in render(fact.value.incomplete["deepseek_r1"])
    assert "qwen3" in fact.value.complete
    assert "nemotron_v3" in fact.value.equal["qwen3"]


def test_a_format_that_no_list_has_is_learnt_and_read(vllm: ParserWorker) -> None:
    """Calls in JSON between markers of nobody: where that is asked for, a derived template reads them."""
    text = texts.CHATML_JSON.replace("<tool_call>", "<anvil>").replace("</tool_call>", "</anvil>")
    words = CHATML[:2]
    assert ask(vllm, text, words).derived is None
    fact = prove(study_of(text, words), tokens_of(words), True, vllm, derives=True).evidence()[0]
    assert {*fact.value.liberal, "hf"} == {*fact.value.reads}
    assert (fact.value.derived, "hermes" in fact.value.reads) == (["tool_parser"], False)


# The whole way


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all, so that a template is proved once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def model(tmp_path: Path, home: Path, vllm_engine: Installed, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository without weights."""
    monkeypatch.setenv("IMPORTER_HOME", str(home))
    monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_engine.python))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "own-model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "own", "max_position_embeddings": 4096}')
    (folder / "tokenizer_config.json").write_text(json.dumps(declares(CHATML)))
    (folder / "chat_template.jinja").write_text(texts.XML_PARAMETERS)
    return folder


def imported(model: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run([str(model), "--backend", "vllm", "--no-validate", "--json", *words]) == 0, (
        capsys.readouterr().err
    )
    line = json.loads(capsys.readouterr().out)
    assert isinstance(line, dict)
    return line


def test_a_name_that_says_nothing_is_proved_by_its_template(
    model: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = imported(model, capsys, "--yes")
    tool = line["decisions"]["tool_parser"]
    assert (tool["value"], tool["status"]) == ("qwen3_coder", "proved")
    assert any("read what the template writes" in why for why in tool["why"])
    assert "tool_parser:qwen3_coder" in line["document"]["options"]
    receipt = whole_receipt(Path("models/own-model.receipt.json"))
    proof = Proof.from_json(receipt["proof"])
    assert "qwen3_coder" in proof.reads("tool_parser")
    assert not proof.assumed
    kept = {p: p.stat().st_mtime_ns for p in (home / "cache" / "proofs").iterdir()}
    assert kept
    assert imported(model, capsys, "--dry-run")["decisions"]["tool_parser"] == tool
    assert {p: p.stat().st_mtime_ns for p in (home / "cache" / "proofs").iterdir()} == kept


def test_the_users_parser_is_written_with_the_proofs_warning(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = imported(model, capsys, "--set", "tool_parser=hermes", "--yes")["decisions"]["tool_parser"]
    assert (tool["value"], tool["status"]) == ("hermes", "user")
    assert any(why.startswith("warning: the proof refutes it: one-call: ") for why in tool["why"])
    agreed = imported(model, capsys, "--set", "tool_parser=qwen3_xml", "--dry-run")["decisions"][
        "tool_parser"
    ]
    assert agreed["why"] == ["set by the user", "the proof agrees"]


def test_the_templates_default_is_said_where_the_parser_needs_it(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model / "chat_template.jinja").write_text(texts.OPENED_ON_DEMAND)
    (model / "config.json").write_text('{"model_type": "qwen3"}')
    line = imported(model, capsys, "--dry-run")
    reasoning, pinned = (line["decisions"][k] for k in ("reasoning_parser", "chat_template_kwargs"))
    assert (reasoning["value"], reasoning["status"]) == ("qwen3", "proved")
    assert (pinned["value"], pinned["status"]) == ({"enable_thinking": False}, "proved")


def test_what_the_chosen_parser_loses_in_pieces_stands_in_the_document(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model / "chat_template.jinja").write_text(FENCED)
    (model / "tokenizer_config.json").write_text(json.dumps(declares(DEEPSEEK)))
    line = imported(model, capsys, "--dry-run")
    assert line["decisions"]["tool_parser"]["value"] == "deepseek_v3"
    assert line["document"]["importer"]["streaming"]["tool_parser"].startswith("whole-only (")


def test_the_same_repository_proved_on_mlx(
    model: Path, mlx_engine: Installed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    assert run([str(model), "--backend", "mlx", "--dry-run", "--json"]) == 0
    tool = json.loads(capsys.readouterr().out)["decisions"]["tool_parser"]
    assert (tool["value"], tool["status"]) == ("qwen3_coder", "proved")
