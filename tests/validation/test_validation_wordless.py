"""Whom a validation blames hangs on kinds and fields: with every sentence an "x" it blames the same."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from importer import sentences
from importer.engines import get, install
from importer.proof.result import ParserVerdict, Proof
from importer.reports.compare import compare
from importer.reports.report_model import of_receipt
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations
from importer.validation.outcome import Report
from importer.validation.probes import PROBES
from importer.validation.run import probe
from tests.facts import as_reason
from tests.faults.registry import FAULTS
from tests.faults.verdict import judge
from tests.judging import MODEL, rendering
from tests.reporting import receipt
from tests.scripted import Request, Say, serve
from tests.syntax import MODULES, nodes, written
from tests.tiers import one_of_each

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n</tool_call>'


def wordless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every sentence, of reasons, remedies and errors alike, an x."""
    monkeypatch.setattr(sentences, "sentence", lambda *_, **__: "x")


def structured(request: Request) -> list[dict[str, Any]]:
    function = {"name": "get_weather", "arguments": '{"location": "Paris"}'}
    return [{"id": "a", "type": "function", "function": function}] if request.get("tools") else []


ANSWERS = {
    "Count": "one, two, three, four, five, six, seven, eight, nine, ten",
    "my name": "Mira.",
    "two plus two": "Four.",
}


def answer(request: Request) -> str:
    asked = json.dumps((request.get("messages") or [request.get("prompt")])[-1])
    return next((text for words, text in ANSWERS.items() if words in asked), "Hello!")


def fine(request: Request) -> tuple[Mapping[str, Any], str]:
    calls = structured(request)
    if calls:
        return {"content": "", "tool_calls": calls}, "tool_calls"
    return {"content": answer(request)}, "stop"


def call_as_text(request: Request) -> tuple[Mapping[str, Any], str]:
    return {"content": CALL if request.get("tools") else answer(request)}, "stop"


def thoughts_in_content(request: Request) -> tuple[Mapping[str, Any], str]:
    return {"content": f"<think>\nHm.\n</think>\n\n{fine(request)[0]['content']}"}, "stop"


def goes_on(_request: Request) -> tuple[Mapping[str, Any], str]:
    return {"content": "Four.<|im_end|>\n<|im_start|>user\nWhat?"}, "length"


def noise(_request: Request) -> tuple[Mapping[str, Any], str]:
    return {"content": "blue blue blue"}, "stop"


def lost_when_streamed(request: Request) -> tuple[Mapping[str, Any], str]:
    return ({"content": ""}, "stop") if request.get("stream") else fine(request)


def breaks_over_tools(request: Request) -> tuple[Mapping[str, Any], str]:
    if request.get("tools"):
        raise RequestRefused(500, "it met an issue")
    return fine(request)


def refuses_a_variable(request: Request) -> tuple[Mapping[str, Any], str]:
    if request.get("tools"):
        raise RequestRefused(400, "top_p must be in (0, 1], got 0.0.")
    return fine(request)


def lacks_memory(request: Request) -> tuple[Mapping[str, Any], str]:
    if request.get("stream"):
        raise RequestRefused(500, "std::bad_alloc")
    return fine(request)


def hangs_up(request: Request) -> tuple[Mapping[str, Any], str]:
    if request.get("tools"):
        raise ConnectionResetError("reset")
    return fine(request)


def late(_request: Request) -> tuple[Mapping[str, Any], str]:
    raise TimeoutError


# Whom each is blamed on, whatever the parser.
ENGINES: dict[Say, set[str]] = {
    fine: {"model"},  # it calls where it should not
    call_as_text: {"configuration"},
    thoughts_in_content: {"configuration"},
    goes_on: {"configuration"},
    noise: {"model"},
    lost_when_streamed: {"model"},
    breaks_over_tools: {"engine"},
    refuses_a_variable: {"configuration"},
    lacks_memory: {"environment"},
    hangs_up: {"engine"},
    late: {"environment"},
}


def run(say: Say, parser: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The report of all probes; the calls of the demo model's template are read by hermes alone."""
    serve(monkeypatch, say)
    monkeypatch.setattr("importer.validation.probes.concurrency.APART", 0.0)
    with rendering(MODEL) as render:
        reads = ParserVerdict("hermes", "H", ("one-call",), {}, ("one-call",))
        wrong = ParserVerdict("deepseek", "D", (), {"one-call": as_reason("read no call")}, ("one-call",))
        proof = Proof("vllm", "1", render.digest, {"tool_parser": (reads, wrong)}, {})
        promise = Expectations(tool_parser=parser, reasoning_parser="qwen3", sampling={"top_p": 0.0})
        bench = Context(promise, "m", Client("http://127.0.0.1:1"), render=render, proof=proof)
        rows = probe(bench, PROBES, lambda _: None)
    return Report({"name": "vllm", "version": "1"}, "2026-01-02T03:04:05+00:00", {}, tuple(rows)).to_json()


def blamed(report: Mapping[str, Any]) -> list[list[object]]:
    """All of a report but its sentences, and what is drawn or timed anew in each run."""
    rows = (row for row in report["outcomes"] if row["outcome"] in ("fail", "inconclusive"))
    return [
        [row["probe"], row["outcome"], row["attribution"], row["remedy"], row["cause"]["kind"],
         row["cause"]["within"], [note["kind"] for note in row["cause"]["notes"]], row["cause"]["follows"]]
        for row in rows
    ]  # fmt: skip


@pytest.mark.parametrize("parser", one_of_each(["hermes", "deepseek"]))
@pytest.mark.parametrize("say", one_of_each(ENGINES, tier="slow"), ids=lambda say: say.__name__)
def test_sentences_decide_nothing(say: Say, parser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(say, parser, monkeypatch)
    with pytest.MonkeyPatch.context() as patched:
        wordless(patched)
        silent = run(say, parser, monkeypatch)
    assert blamed(silent) == blamed(told)
    assert (
        {row["remedy_message"] for row in silent["outcomes"]}
        <= {"", "x"}
        != {row["remedy_message"] for row in told["outcomes"]}
    )
    assert ENGINES[say] <= {str(row[2]) for row in blamed(told)}
    both = [of_receipt(receipt(report)) for report in (told, silent)]
    assert not [moved for moved in compare(*both).outcomes if moved.way != "other"]


# Names under which outcomes, errors and rows of receipts have them.
SENTENCES = {"reason", "remedy_message", "hint"}
RENDERERS = {"render", "sentence"}
READS = {
    "startswith", "endswith", "split", "rsplit", "partition", "rpartition", "find", "rfind", "index", "count",
    "replace", "strip", "removeprefix", "removesuffix", "splitlines", "casefold", "lower",
    "search", "match", "fullmatch", "findall", "finditer", "sub",
}  # fmt: skip
# Where sentences are made for a receipt, and for the traceback of an error.
WORDED = {"importer.validation.outcome", "importer.validation.client", "importer.validation.errors"}


def is_sentence(node: ast.AST) -> bool:
    """Whether an expression is, or holds, a sentence of ours."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr in SENTENCES:
            return True
        if isinstance(inner, ast.Call) and written(inner.func) in RENDERERS:
            return True
    return False


def reading(module: Path) -> list[str]:
    """Where a module compares, searches or takes apart a sentence."""
    found = []
    for node in nodes(module):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
            if not none and any(map(is_sentence, sides)):
                found.append(written(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            if any(map(is_sentence, (node.func.value, *node.args))):
                found.append(written(node))
        elif isinstance(node, ast.Subscript) and is_sentence(node.value):
            found.append(written(node))
    return found


JUDGES = sorted(m for m in MODULES if m.startswith(("importer.validation", "importer.reports")))


@pytest.mark.xdist_group("syntax")
def test_no_module_reads_a_sentence() -> None:
    assert not [f"{module}: {read}" for module in JUDGES for read in reading(MODULES[module])]
    renders = {
        module
        for module in JUDGES
        for node in nodes(MODULES[module])
        if isinstance(node, ast.ImportFrom)
        and node.module == "importer.sentences"
        and {alias.name for alias in node.names} & {"render", "sentence", "worded", "rendered"}
    }
    assert renders <= WORDED


@pytest.mark.parametrize(
    "line",
    [
        "if outcome.remedy_message.startswith('Declare'): pass",
        "seen = 'finish_reason' in outcome.reason",
        "broken = re.search(BROKEN, row.outcome.reason)",
        "key = render(outcome.remedy).partition(' ')",
        "same = (one.reason, 1) == (other.reason, 1)",
        "head = found.reason[:10]",
    ],
)
def test_the_search_for_readers_finds_them(line: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(line)
    assert reading(tmp_path / "module.py")


REPRESENTATIVE = (
    "streamed-call-as-text", "one-head-is-empty", "killed-in-the-middle", "wrong-served-name",
    "tokenizer-of-another-model",
)  # fmt: skip
MORE = (
    "template-without-tools", "stop-word-within-answers", "template-drops-results", "end-token-unknown",
    "weights-rounded-away", "answers-end-too-soon",
)  # fmt: skip


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*REPRESENTATIVE, *(pytest.param(name, marks=pytest.mark.nightly) for name in MORE)]
)
def test_a_planted_fault_is_blamed_alike_without_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install.need(get("mlx"))
    fault = next(fault for fault in FAULTS if fault.name == name)
    told, _ = judge(fault, "mlx")
    wordless(monkeypatch)
    silent, missed = judge(fault, "mlx")
    assert (silent.blamed, silent.remedies) == (told.blamed, told.remedies)
    assert silent.blamed == (fault.part,)
    assert {outcome["remedy_message"] for outcome in missed} <= {"", "x"} or told.detected == ("start",)
