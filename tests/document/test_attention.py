"""What needs attention: computed once, the same in the file, the receipt, --json and over REST."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import attention as benchmark
from importer.cli import messages
from importer.decisions.decision import Chosen, Decision, KnownNone, RejectedCandidate, Undecided, by_user
from importer.decisions.parsers import ParserReason
from importer.document.attention import Attention, AttentionReason, attention
from importer.document.merge import Conflict, of_conflicts
from importer.errors import ImporterError
from importer.memory.judgement import JudgementReason
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import warning
from importer.signals.reasons import CodeReason, LoadReason, ShownReason
from tests import template_texts as texts
from tests.commandline import BASE, CHAT, TEMPLATE, Desk, desk, edit, receipt
from tests.hubserver import Repo

__all__ = ["desk"]
NO_CALLS = Reason(ShownReason.NO_CALLS, problem=None, asked=None)
UNREAD = Undecided((Reason(ParserReason.NONE_READS, engine="mlx"),))
FIT = Reason(
    JudgementReason.TOO_LARGE, device="t4", parts=(), each=False, over="1 GiB", budget="2 GiB", ways=()
)
NO_TYPE = Reason(LoadReason.NO_MODEL_TYPE, engine="mlx", model_type="x")
NEEDED = Reason(CodeReason.NEEDED, engine="mlx")
FOREIGN = Reason(CodeReason.ELSEWHERE, repos=("a/b",))
REFUTED = Reason(ParserReason.USER_REFUTED, problem=Reason(ParserReason.PROOF_AGREES))


def kinds(tools: Decision | None = None, **more: Decision) -> list[tuple[str, str]]:
    usual: dict[str, Decision] = {"tool_parser": tools or Chosen("hermes", "proved", (NO_TYPE,))}
    return [(a.kind.value, a.key) for a in attention(usual | more)]


def test_each_kind_and_the_gravest_first() -> None:
    assert kinds() == []
    assert kinds(UNREAD) == [("no-tools", "tool_parser")]
    assert kinds(Undecided((NO_CALLS,))) == []  # nothing speaks for tools
    assert kinds(Undecided((NO_CALLS,), (RejectedCandidate("x", "a", NO_CALLS),))) == [
        ("no-tools", "tool_parser")
    ]
    assert kinds(KnownNone((NO_CALLS,)), kind=Chosen("base", "vendor", (NO_CALLS,))) == []
    assert kinds(by_user(None)) == []
    code = {"code": Chosen({}, "vendor", (NEEDED, warning(FOREIGN)))}
    assert kinds(**code) == [("needs-code", "code"), ("foreign-code", "code")]
    assert kinds(**code, trust_remote_code=by_user(value=True)) == [("foreign-code", "code")]
    found = kinds(
        by_user("x", (), (warning(REFUTED),)),
        backend=Chosen("mlx", "user", (NO_TYPE, warning(NO_TYPE))),
        quantization=Chosen("fp8", "vendor", (warning(NO_TYPE),)),
        max_model_len=Chosen(1, "vendor", (NO_TYPE, warning(FIT))),
    )
    names = ["does-not-fit max_model_len", "will-not-start backend", "parser tool_parser"]
    assert [" ".join(one) for one in found] == names


def test_a_warning_has_its_kind_its_fields_and_a_sentence() -> None:
    chosen = Chosen("mlx", "user", (warning(NO_TYPE),))
    (found,) = attention({"tool_parser": Chosen("x", "user", (NO_TYPE,)), "backend": chosen})
    reason = {"kind": "LoadReason.no-model-type", "engine": "mlx", "model_type": "x"}
    message = "mlx has no model type x; hits every start; choose another engine or version, or mend the files"
    told = {"kind": "will-not-start", "key": "backend", "message": message}
    assert found.to_json() == {**told, "reason": reason}
    (conflict,) = of_conflicts([Conflict(("parameters", "top_p"), 0.9, 0.5, 0.7)])
    assert (conflict.kind, conflict.key) == (AttentionReason.CONFLICT, "parameters.top_p")
    assert conflict.to_json()["reason"]["mine"] == "0.5"


SHOUTS = {**CHAT, "chat_template.jinja": TEMPLATE.replace("m.content", "m.content | upper")}


def test_it_is_the_same_everywhere(desk: Desk) -> None:
    desk.hub.repos["acme/chat"].commit(SHOUTS)
    ran = desk("acme/chat", "--json", "--no-validate")
    (found,) = ran.line["warnings"]
    assert (found["kind"], found["key"]) == ("request-coverage", "request_coverage")
    assert receipt(desk, "chat")["warnings"] == [found]
    line = ran.err.splitlines()[0]  # what, whom it hits, what to type
    assert line.startswith("Needs attention: chat template: in the chat template ")
    assert "; hits requests that need it; --template FILE" in line
    text = (desk.folder / "models" / "chat.yaml").read_text()
    assert text.splitlines()[1] == "# attention: the chat template loses parts of requests"
    desk.hub.repos["acme/chat"].commit({**CHAT, "generation_config.json": {"temperature": 0.1, "top_p": 0.9}})
    edit_file = desk.folder / "models" / "chat.yaml"
    edit_file.write_text(text.replace("top_p: 0.9", "top_p: 0.5"))
    assert desk("acme/chat", "--no-validate").code == 0
    assert "# attention" not in edit_file.read_text()
    assert "edited in this file" in edit_file.read_text()
    assert receipt(desk, "chat")["warnings"] == []


def test_each_kind_has_what_whom_it_hits_and_what_to_type() -> None:
    for kind in AttentionReason:
        one = Attention(kind, "max_model_len", NO_TYPE).reason
        here, typed = render(one), messages.text(one)
        assert f"hits {kind.hits}; {kind.step.text.format(key='max_model_len')}" in here
        assert typed != here, kind  # the command line names what to type
        assert re.search(r"--[a-z]|'importer ", typed), kind


def test_what_nearly_every_template_ignores_is_a_note(desk: Desk) -> None:
    ran = desk("acme/chat", "--dry-run", "--explain", "--json")
    assert ran.line["warnings"] == []
    assert "Needs attention" not in ran.err
    assert "tool_parser" in ran.err
    assert "the template renders no tool calls" in " ".join(ran.err.split())


def test_a_conflict_that_was_decided_is_told(desk: Desk) -> None:
    desk("acme/base", "--no-validate")
    edit(desk, "temperature: 0.6", "temperature: 0.5")
    desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.7, "top_p": 0.9}})
    refused = desk("acme/base", "--no-validate")
    assert (refused.code, "parameters.temperature" in refused.err) == (5, True)
    ran = desk("acme/base", "--no-validate", "--json", "--on-conflict", "mine")
    assert [(w["kind"], w["key"]) for w in ran.line["warnings"]] == [("conflict", "parameters.temperature")]


def test_what_an_ordinary_import_prints_fits_a_terminal(desk: Desk) -> None:
    config: dict[str, Any] = {**BASE["config.json"], "model_type": "qwen3"}  # type: ignore[dict-item]
    config["architectures"] = ["Qwen3ForCausalLM"]
    desk.hub.repos["Qwen/Qwen3-8B"] = Repo({**CHAT, "config.json": config})
    ran = desk("Qwen/Qwen3-8B", "--no-validate", "--device", "rtx4090")
    lines = ran.out.splitlines()
    assert len(lines) + len(ran.err.splitlines()) <= 25, ran.out + ran.err
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.startswith("parameters.temperature"))
    assert row.split() == ["parameters.temperature", "0.6", "vendor:", "generation_config.json"]
    assert "overruled" not in ran.out
    explained = desk("Qwen/Qwen3-8B", "--dry-run", "--explain")
    assert "overruled" in explained.err
    assert "unknown: " in explained.err


@pytest.mark.parametrize(
    ("template", "kind", "says"),
    [
        (
            [{"name": "a", "template": "{{ messages }}"}, 7],
            "will-not-start",
            "no engine loads this tokenizer",
        ),
        (5, "request-coverage", "the chat template in tokenizer_config.json is not text"),
    ],
)
def test_a_template_that_no_engine_can_use_is_one_sentence(
    desk: Desk, template: object, kind: str, says: str
) -> None:
    desk.hub.repos["acme/odd"] = Repo({**BASE, "tokenizer_config.json": {"chat_template": template}})
    ran = desk("acme/odd", "--dry-run", "--json", "--set", "backend=vllm")
    found = [w for w in ran.line["warnings"] if says in w["message"]]
    assert [(w["kind"], w["key"]) for w in found] == [(kind, "backend")], ran.line["warnings"]


def test_an_empty_template_beside_a_sound_one_is_told(desk: Desk) -> None:
    """Engines read the file, and import and engine would differ in silence."""
    desk.hub.repos["acme/odd"] = Repo(
        {**CHAT, "chat_template.jinja": "", "tokenizer_config.json": {"chat_template": "{{ messages }}"}}
    )
    ran = desk("acme/odd", "--dry-run", "--json")
    (found,) = (w for w in ran.line["warnings"] if "is empty" in w["message"])
    assert (found["kind"], found["key"]) == ("request-coverage", "backend")
    assert "chat_template.jinja is empty" in found["message"]


@pytest.mark.parametrize(("backend", "warned"), [("mlx", True), ("vllm", False)])
def test_a_stop_word_that_an_engine_cannot_take_names_the_end_token_that_lacks(
    desk: Desk, backend: str, warned: bool
) -> None:
    """vLLM gets the token in a generation config of ours; mlx-lm heeds the files alone."""
    tokens = {
        str(i): {"content": text, "special": True} for i, text in enumerate(("<|endoftext|>", "<|im_end|>"))
    }
    tokenizer = {"eos_token": "<|endoftext|>", "added_tokens_decoder": tokens}
    files = {**CHAT, "generation_config.json": {"eos_token_id": 0}, "tokenizer_config.json": tokenizer}
    ran = desk(desk.directory("ends", files), "--name", "ends", "--backend", backend, "--dry-run")
    lines = [line for line in ran.err.splitlines() if line.startswith("Needs attention: stopwords: ")]
    assert len(lines) == warned, ran.err
    named = "<|im_end|> stands in for an end token that the files lack"
    assert not warned or named in lines[0]
    assert not warned or "eos_token_id in generation_config.json" in lines[0]


ORDINARY = {
    "calls-as-json": texts.CHATML_JSON, "tags": texts.XML_PARAMETERS,
    "no-tools": texts.CHATML, "alternating": texts.ALTERNATING, "refuses-tools": texts.REFUSES_TOOLS,
    "no-system": texts.CHATML.replace("in messages", "in messages if m.role != 'system'"),
}  # fmt: skip
RINGING = {
    "no-parser-reads-it": texts.KIMI_IDS, "no-template-but-a-tokenizer": None,
    "shouts": texts.CHATML.replace("m.content", "m.content | upper"),
}  # fmt: skip


def test_ordinary_templates_ring_no_alarm_and_broken_ones_do(tmp_path: Path) -> None:
    """The measure of ``python -m benchmarks attention``, over templates that ship with the tests."""
    for name, text in {**ORDINARY, **RINGING}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(BASE["config.json"]))
        (tmp_path / name / "tokenizer_config.json").write_text("{}")
        if text is not None:
            (tmp_path / name / "chat_template.jinja").write_text(text)
    found = dict(benchmark.warned(sorted(tmp_path.iterdir()), "vllm"))
    rings = {name for name, one in found.items() if isinstance(one, ImporterError) or one}
    assert rings == {*RINGING}, [render(w.reason) for one in ORDINARY for w in found[one]]  # type: ignore[union-attr]
    assert benchmark.quiet(found) == len(ORDINARY) / len(found)
    lines = [*benchmark.table(found)]
    assert lines[:2] == ["9 models: 9 documents; refused: {}", "without a warning: 66.7% (budget 80%)"]
    assert "     2  request-coverage" in lines
