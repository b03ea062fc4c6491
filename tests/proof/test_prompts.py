"""Prompts of an engine beside ours: planted differences get their kind and place, sound ones get none."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from importer.chat_template.cases import CaseStyle
from importer.chat_template.find import Template
from importer.chat_template.render import Rendered, RenderJob, date_at, now
from importer.chat_template.vocabulary import Vocabulary
from importer.decisions.decide import decide
from importer.decisions.decision import Chosen, Preferences, PromptVerdict, Target
from importer.document.attention import AttentionReason, attention
from importer.engines.deaths import Accident, ParserFailure
from importer.engines.parsers import FORMATS, Answer, Conversation, EnginePrompt
from importer.engines.tokens import Tokens
from importer.errors import EngineError
from importer.proof.cache import cached_prompts
from importer.proof.conversations import CONVERSATIONS, leaves, shaped
from importer.proof.prompt_difference import difference, moved
from importer.proof.prompts import Ours, compare
from importer.proof.result import (
    FORMAT,
    KEY,
    FormatOutcome,
    FrontendPrompts,
    PromptCase,
    PromptDifference,
    as_json,
    downgraded,
    evidence_of,
    from_json,
)
from importer.reasons import Reason
from importer.sentences import render
from tests import template_texts as texts
from tests.analysing import RENDERER, analysed
from tests.tiers import one_of_each

TARGET = Target("vllm", "0.32.0")
WORDS = Vocabulary(sources=("tokenizer_config.json",))
PARTS = """
{%- for m in messages %}
{{- '<' + m.role + '>' }}{% for part in m.content %}{{ part.text }}{% endfor %}
{%- endfor %}"""
REPR = texts.OFFER + texts.TURNS.replace("CALL", "{{ c.function.name }}({{ c.function.arguments }})")
Change = Callable[[Conversation, str], str]


class Scripted:
    """A frontend that renders as transformers does, with a difference of the test's in some forms."""

    name = "vllm"

    def __init__(self, text: str, changes: Mapping[str, Any]) -> None:
        self._text, self._changes = text, changes

    def version(self) -> str:
        return "0.32.0"

    def render(self, _: Tokens, conversations: Sequence[Conversation]) -> dict[str, list[Answer]]:
        plain = self._answers(conversations, None)
        changes = {form: self._changes.get(form) for form in FORMATS}
        return {form: self._answers(conversations, c) if c else [*plain] for form, c in changes.items()}

    def _answers(self, conversations: Sequence[Conversation], change: Any) -> list[Answer]:
        shape = change if isinstance(change, CaseStyle) else CaseStyle()
        jobs = [RenderJob(shaped(c, shape), [*c.tools] or None, True) for c in conversations]
        results = RENDERER.render(self._text, jobs, {}).results
        return [self._answer(*one, change) for one in zip(conversations, results, strict=True)]

    def _answer(self, conversation: Conversation, result: Any, change: Any) -> Answer:
        if not isinstance(result, Rendered):
            return result.reason
        return EnginePrompt(change(conversation, result.text) if callable(change) else result.text, "string")


def ours(text: str = texts.CHATML_JSON) -> Ours:
    return Ours(Template(text, "chat_template.jinja"), WORDS, RENDERER, analysed(text, WORDS))


def compared(text: str, **changes: Any) -> FrontendPrompts:
    return compare(ours(text), Tokens(chat_template=text), Scripted(text, changes))


def found(prompts: FrontendPrompts, form: str = "auto") -> dict[str, tuple[str, Any]]:
    return {str(f.fields["case"]): (f.kind.value, f.fields["place"]) for f in prompts.outcomes[form].findings}


@pytest.mark.parametrize(
    "text",
    one_of_each([texts.CHATML_JSON, texts.XML_PARAMETERS, PARTS.replace("part.text", "part")], tier="slow"),
)
def test_an_engine_that_renders_as_transformers_has_no_finding(text: str) -> None:
    prompts = compared(text)
    assert prompts.outcomes["auto"].equal == prompts.outcomes["auto"].of > 10
    assert prompts.best == "auto"
    assert evidence_of([prompts], TARGET) == []


def test_a_date_is_that_of_the_engines_rendering() -> None:
    """A prompt of any moment of the engine's rendering is meant: a day may end between two of them."""
    text = texts.CHATML_JSON + "{{ strftime_now('%d %B %Y') }}"
    day = 86_400.0
    found = ours(text).references([PromptCase.PLAIN], moments=(0.0, day))[PromptCase.PLAIN]
    assert [one[-15:] for one in found] == ["15 January 2026", "16 January 2026"]
    assert date_at(now()) == datetime.now(UTC).astimezone().date().isoformat()


def parts_printed(conversation: Conversation, text: str) -> str:
    """What vLLM's Rust frontend does to a tool's result in parts."""
    for leaf in leaves(conversation):
        if leaf.role == "tool" and leaf.field == "content":
            text = text.replace(leaf.value, json.dumps({"type": "text", "text": leaf.value}))
    return text


def without_result(conversation: Conversation, text: str) -> str:
    for leaf in leaves(conversation):
        text = text.replace(leaf.value, "") if leaf.role == "tool" and leaf.field == "content" else text
    return text


def name_behind(_: Conversation, text: str) -> str:
    described = 'level, e.g. \\"Zürich\\".", '
    moved = text.replace('"name": "read_gauge", "desc', '"desc')
    return moved.replace(described, f'{described}"name": "read_gauge", ')


RESULTS = {
    case.value for case in PromptCase if any(m["role"] == "tool" for m in CONVERSATIONS[case].messages)
}


@pytest.mark.parametrize(
    ("change", "kind", "place", "cases"),
    one_of_each([
        (parts_printed, "parts-printed", "tool.content", RESULTS),
        (without_result, "dropped", "tool.content", RESULTS),
        (lambda _, text: text.replace("null", "None"), "form", None, {"nested", "tools"}),
        (lambda _, text: text.replace("user\n", "user: "), "other", None, {"plain", "system", "turns"}),
        (name_behind, "form", "tools", {"tools"}),
    ], tier="slow"),
)  # fmt: skip
def test_a_planted_difference_is_found(change: Change, kind: str, place: str | None, cases: set[str]) -> None:
    prompts = compared(texts.CHATML_JSON, auto=change)
    differing = found(prompts)
    assert cases <= differing.keys()
    assert {differing[case][0] for case in cases} == {kind}
    if place is not None:
        assert {differing[case][1] for case in cases} == {place}
    if kind in ("parts-printed", "dropped"):
        assert differing.keys() == RESULTS
    assert all(render(finding) for finding in prompts.outcomes["auto"].findings)


def test_arguments_that_an_engine_passes_as_an_object_are_a_value_in_another_form() -> None:
    """The template needs JSON text; every engine passes an object, and Python prints its own form."""
    prompts = compared(REPR)
    assert found(prompts)["nested"] == ("form", "assistant.arguments")


def test_a_template_of_parts_gets_the_form_that_keeps_its_text() -> None:
    openai = CaseStyle(parts=True)
    prompts = compared(PARTS, auto=CaseStyle(), openai=openai)
    assert found(prompts)["plain"] == ("dropped", "user.content")
    assert prompts.best == "openai"
    (fact, *_) = evidence_of([prompts], TARGET)
    assert (fact.key, fact.value, fact.rule.status) == (FORMAT, "openai", "proved")
    decided = decide([fact], Preferences(), TARGET)[FORMAT]
    assert isinstance(decided, Chosen)
    assert (decided.value, decided.status) == ("openai", "proved")
    assert decide([fact], Preferences({FORMAT: "string"}), TARGET)[FORMAT].value == "string"


@pytest.mark.parametrize(
    ("theirs", "elsewhere"), [("noon <image> boat", False), ("<image> noon\nboat", True)]
)
def test_an_image_that_left_its_place_is_found(theirs: str, elsewhere: bool) -> None:
    assert moved("noon [IMG] boat", theirs, "noon", "boat") is elsewhere


def test_a_form_is_not_changed_where_images_were_not_rendered() -> None:
    prompts = compared(PARTS, auto=CaseStyle(), openai=CaseStyle(parts=True))
    unseen = FrontendPrompts("vllm-rust", "0.33.0", prompts.outcomes, unseen=True)
    assert unseen.best == "auto"


def test_refusals_are_losses_unless_transformers_refuses_too() -> None:
    strict = "{% if tools %}{{ raise_exception('no tools') }}{% endif %}" + texts.TURNS.replace(
        "CALL", "call"
    )
    assert compared(strict).outcomes["auto"].findings == ()
    prompts = compared(texts.CHATML_JSON)
    refusal = Reason(ParserFailure.RAISED, words="ValueError: no")
    scripted = Scripted(texts.CHATML_JSON, {})
    scripted._answer = lambda *_: refusal  # type: ignore[method-assign]
    prompts = compare(ours(), Tokens(), scripted)
    assert {f.kind for f in prompts.outcomes["auto"].findings} == {PromptDifference.REFUSED}
    assert "ValueError: no" in render(prompts.outcomes["auto"].findings[0])


def test_a_switch_that_the_engine_sets_is_named() -> None:
    text = texts.OFFER + texts.SWITCHED

    def off(conversation: Conversation, _: str) -> str:
        job = RenderJob(
            shaped(conversation, CaseStyle()), [*conversation.tools] or None, add_generation_prompt=True,
            kwargs={"enable_thinking": False},
        )  # fmt: skip
        (result,) = RENDERER.render(text, [job], {}).results
        assert isinstance(result, Rendered)
        return result.text

    prompts = compared(text, auto=off)
    finding = prompts.outcomes["auto"].findings[0]
    assert finding.kind is PromptDifference.SWITCHED
    assert (finding.fields["variable"], finding.fields["value"]) == ("enable_thinking", False)


def test_a_frontend_that_does_not_start_gives_its_reason() -> None:
    class Broken(Scripted):
        def render(self, _: Tokens, __: Sequence[Conversation]) -> dict[str, list[Answer]]:
            raise EngineError("worker-failed", name="vllm-rs", problem="expected a string")

    prompts = compare(ours(), Tokens(), Broken(texts.CHATML_JSON, {}))
    assert prompts.failed is not None
    (fact,) = evidence_of([prompts], TARGET)
    assert fact.key == KEY
    assert "expected a string" in render(fact.reason)


@pytest.mark.parametrize(("times", "known"), [(1, True), (9, False)])
def test_an_accident_is_no_refusal(times: int, known: bool) -> None:
    """A busy machine stops a rendering in time; the engine refused nothing."""

    class Busy(Scripted):
        left = times

        def render(self, tokens: Tokens, asked: Sequence[Conversation]) -> dict[str, list[Answer]]:
            answers = super().render(tokens, asked)
            if self.left:
                self.left -= 1
                answers["auto"][0] = Reason(Accident.OVERRUN, seconds=5)
            return answers

    prompts = compare(ours(), Tokens(), Busy(texts.CHATML_JSON, {}))
    assert (prompts.failed is None) is known
    assert prompts.best == "auto"
    assert all(outcome.findings == () for outcome in prompts.outcomes.values())


LOST = Reason(PromptDifference.DROPPED, case="call", place="tool.content", ours="a", theirs="b")
OUTCOME = FormatOutcome(11, (LOST,), "string")
PROMPTS = FrontendPrompts("vllm", "0.32.0", {"auto": OUTCOME})
PROVED = Chosen("hermes", "proved", (Reason(PromptVerdict.NOT_STARTED, problem="x"),))


def test_a_loss_needs_attention_and_weakens_the_proof_behind_it() -> None:
    (fact,) = evidence_of([PROMPTS], TARGET)
    decisions = decide([fact], Preferences({"tool_parser": "hermes"}), TARGET)
    assert attention(decisions) == ()
    warned = attention(downgraded(decisions, [PROMPTS], TARGET))
    assert [a.kind for a in warned] == [AttentionReason.PROMPTS]
    without = decide([fact], Preferences({"tool_parser": None}), TARGET)
    assert attention(downgraded(without, [PROMPTS], TARGET)) == ()  # nobody sends calls
    changed = downgraded({"tool_parser": PROVED, "reasoning_parser": PROVED}, [PROMPTS], TARGET)
    assert changed["tool_parser"].status == "declared"
    assert changed["tool_parser"].why[0].kind is PromptVerdict.OTHER_PROMPT
    assert changed["reasoning_parser"].status == "proved"  # its prompt holds no call
    other = Target("mlx", "0.32.2")
    assert downgraded({"tool_parser": PROVED}, [PROMPTS], other)["tool_parser"].status == "proved"


def test_a_receipt_keeps_the_findings() -> None:
    kept = json.loads(json.dumps(as_json(PROMPTS)))
    assert from_json(FrontendPrompts, kept) == PROMPTS
    assert "10 of 11 equal" in "\n".join(PROMPTS.explain())
    assert kept["outcomes"]["auto"]["findings"][0]["message"] == render(LOST)


def test_equal_texts_have_no_difference_and_every_leaf_is_unique() -> None:
    for conversation in CONVERSATIONS.values():
        values = [json.dumps(x.value) for x in leaves(conversation) if x.field != "name" and x.message]
        assert len(values) == len(set(values))
    assert difference("plain", "a", "a", ()) is None


def test_prompts_are_kept_unless_a_frontend_did_not_start(importer_home: Path) -> None:
    analysis = ours().analysis
    program = importer_home.parent / "vllm-rs"
    program.write_text("1")
    broken = FrontendPrompts("vllm", "0.32.0", failed=Reason(PromptVerdict.NOT_STARTED, problem="no"))
    for made, count in ((broken, 2), (PROMPTS, 1)):
        asked: list[int] = []

        python = Path(sys.executable)

        def ask(made: FrontendPrompts = made, asked: list[int] = asked) -> tuple[FrontendPrompts, ...]:
            asked.append(1)
            return (made,)

        for _ in range(2):
            assert cached_prompts(analysis, Tokens(), TARGET, python, [program], False, ask) == (made,)
        assert len(asked) == count
    program.write_text("another")
    assert cached_prompts(analysis, Tokens(), TARGET, python, [program], False, lambda: ()) == ()
