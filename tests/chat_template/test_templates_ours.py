"""Templates of ours: tools folded into the turns of a model's own template, which stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.chat_template import cases
from importer.chat_template.conventions import CONVENTIONS, FILE
from importer.chat_template.conventions.wrap import Traits, compose, wrap
from importer.chat_template.find import Template
from importer.chat_template.override import TemplateOverride, by_name, read, template_of
from importer.chat_template.render import Rendered, RenderJob
from importer.errors import UsageError
from tests import template_texts as texts
from tests.analysing import RENDERER, VOCABULARY, analysed

OWN = {
    "strict": texts.ALTERNATING, "images": texts.IMAGES, "chatml": texts.CHATML,
    "user-last": texts.ENDS_WITH_USER, "parts": texts.PARTS_ONLY, "thinking": texts.STRIPS_AND_OPENS,
    "has tools": texts.CHATML_JSON, "refuses tools": texts.REFUSES_TOOLS,
}  # fmt: skip
CALLS_AND_ANSWERS = {*cases.CALLS, "narrated", "narrated-parallel", "call-after-result", "no-call"}
# What stands between two results cannot be cut out where each conversation has to end with one.
OUT_OF_REACH = {texts.ENDS_WITH_USER: {"call-after-result", "answer-after-result"}}
TURN = re.compile(r"<start_of_turn>(user|model)\n(.*?)<end_of_turn>\n", re.DOTALL)


@cache
def dressed(own: str, convention: str = "json") -> str:
    return wrap(Template(own, "own"), convention, VOCABULARY, RENDERER)


def rendered(template: str, messages: Sequence[Mapping[str, Any]], tools: Any = None) -> str:
    [result] = RENDERER.render(template, [RenderJob(messages, tools, True)], VOCABULARY.variables).results
    assert isinstance(result, Rendered), result
    return result.text


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def call(name: str, arguments: Any, number: str = "c4ll00000") -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.slow
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_every_case_is_written(own: str, convention: str) -> None:
    study = analysed(dressed(own, convention))
    assert study.tools_rendered
    assert set(study.problems) <= {"thinking-call", *OUT_OF_REACH.get(own, set())}
    assert {s.case for s in study.samples} >= CALLS_AND_ANSWERS - OUT_OF_REACH.get(own, set())
    one = next(s for s in study.samples if s.case == "one-call").completion
    assert one.endswith('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>')


@pytest.mark.parametrize(
    ("own", "traits"),
    [
        ("strict", Traits("never", strict=True, parts=False)),
        ("images", Traits("first", strict=True, parts=False)),
        ("chatml", Traits("anywhere", strict=False, parts=False)),
        ("parts", Traits("anywhere", strict=False, parts=True)),
    ],
)
def test_what_a_template_takes_is_found_by_rendering(own: str, traits: Traits) -> None:
    assert dressed(OWN[own]) == compose(OWN[own], "json", traits)


# Without tools the model's own words come out, whatever they begin with.

PLAIN = st.integers(0, 6).flatmap(
    lambda n: st.tuples(
        st.booleans(), st.lists(st.sampled_from(["a b", " x\n", "{{ y }}"]), min_size=n, max_size=n)
    )
)


@pytest.mark.slow
@given(
    PLAIN, st.sampled_from(["images", "chatml", "thinking", "refuses tools"]), st.sampled_from([*CONVENTIONS])
)
def test_a_plain_conversation_is_the_models_own(
    plain: tuple[bool, list[str]], own: str, convention: str
) -> None:
    system, words = plain
    turns = [said("assistant" if n % 2 else "user", word) for n, word in enumerate(words)]
    turns = [said("system", "Keep it short.")] * (system and own != "refuses tools") + turns
    jobs = [RenderJob(turns, None, True)]
    other = RENDERER.render(dressed(OWN[own], convention), jobs, VOCABULARY.variables).results[0]
    first = RENDERER.render(OWN[own], jobs, VOCABULARY.variables).results[0]
    if isinstance(first, Rendered):
        assert other == first


@pytest.mark.parametrize("start", ["", "\n", "  \n", "\n\n", " ", "{#- note -#}\n", "{{- '' }}\n", "text\n"])
def test_what_the_template_begins_with_is_kept(start: str) -> None:
    own = start + "  {% if true %}\n" + texts.CHATML + "\n  {% endif %}"
    text = dressed(own)
    assert text.endswith(own)
    assert rendered(text, [said("user", "x")]) == rendered(own, [said("user", "x")])


# Whatever a conversation looks like, it becomes turns that alternate.

ANY = st.lists(
    st.sampled_from(["system", "developer", "user", "assistant", "tool", "call", "empty", "parts"]),
    max_size=9,
)


@pytest.mark.slow
@given(ANY, st.booleans(), st.sampled_from(["strict", "images"]), st.sampled_from([*CONVENTIONS]))
def test_any_order_of_roles_becomes_alternating_turns(
    roles: list[str], tools: bool, own: str, convention: str
) -> None:
    messages = []
    for n, role in enumerate(roles):
        if role == "call":
            messages.append(said("assistant", None, tool_calls=[call("f", {"word": f"w{n}"}, f"id{n}")]))
        elif role == "empty":
            messages.append(said("assistant", ""))
        elif role == "parts" and own == "images":
            messages.append(said("user", [{"type": "text", "text": f"w{n}"}]))
        elif role != "parts":
            messages.append(said(role, f"w{n}", **({"tool_call_id": f"id{n - 1}"} if role == "tool" else {})))
    offer = list(cases.TOOLS) if tools else None
    if own == "images" and not {m["role"] for m in messages} - {"system", "developer"}:
        return  # a template that looks at the first message, and writes a system turn with the next one only
    text = rendered(dressed(OWN[own], convention), messages, offer)
    turns = TURN.findall(text)
    assert text.endswith("<start_of_turn>model\n")
    assert [role for role, _ in turns] == (["user", "model"] * len(turns))[: len(turns)]
    told = [
        f"w{n}"
        for n, role in enumerate(roles)
        if role not in ("empty", *([] if own == "images" else ["parts"]))
    ]
    assert re.findall(r"\bw\d\b", text) == told
    assert all((tool["function"]["description"] in text) == tools for tool in cases.TOOLS)


def test_a_round_with_a_tool() -> None:
    messages = [
        said("system", "Keep it short."),
        said("user", "How is it there?"),
        said("assistant", "Let me see.",
             tool_calls=[call("get_weather", {"city": "Zürich"}, "a"), call("now", {}, "b")]),
        said("tool", "rain", tool_call_id="a"),
        said("tool", [{"type": "text", "text": "noon"}], tool_call_id="b"),
        said("user", "And then?"),
    ]  # fmt: skip
    tool = {"type": "function", "function": {"name": "now", "description": "Say the time."}}
    text = rendered(dressed(texts.IMAGES, "json"), messages, [tool])
    assert text.startswith("<s><start_of_turn>user\nKeep it short.\n\nYou can call the functions below. ")
    assert text.partition(" plain words.\n\n")[2] == (
        '{"name": "now", "description": "Say the time."}\n\n'
        "How is it there?<end_of_turn>\n<start_of_turn>model\nLet me see.\n"
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call><end_of_turn>\n<start_of_turn>user\n'
        "<tool_response>\nget_weather: rain\n</tool_response>\n\n"
        "<tool_response>\nnow: noon\n</tool_response>\n\nAnd then?<end_of_turn>\n<start_of_turn>model\n"
    )


def test_images_keep_their_places() -> None:
    picture = {"type": "image"}
    messages = [
        said("system", "Keep it short."),
        said("user", [picture, {"type": "text", "text": "What is it?"}]),
        said("user", "And this?"),
        said("user", [picture, picture]),
        said("assistant", None, tool_calls=[call("look", {})]),
        said("tool", [picture], tool_call_id="c4ll00000"),
    ]
    text = rendered(dressed(texts.IMAGES, "json"), messages, list(cases.TOOLS))
    first, answer, result = (said for _, said in TURN.findall(text))
    assert first.endswith("<start_of_image>What is it?\n\nAnd this?<start_of_image><start_of_image>")
    assert first.index("plan_trip") < first.index("What is it?")
    assert "<start_of_image>" not in answer
    assert result == "<tool_response>\nlook:<start_of_image></tool_response>"  # this template trims each part


def test_reasoning_goes_with_its_turn() -> None:
    own = texts.THINKING.replace("PROMPT", "")
    messages = [said("user", "x"), said("assistant", "", reasoning_content="Hm.", tool_calls=[call("f", {})])]
    text = rendered(dressed(own, "json"), messages)
    assert '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>' in text


def test_developers_are_systems_and_a_system_turn_is_kept() -> None:
    messages = [
        said("developer", "d"),
        said("user", "x"),
        said("assistant", "y"),
        said("system", "s"),
        said("user", "z"),
    ]
    assert rendered(dressed(texts.CHATML), messages) == (
        "<|im_start|>system\nd<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\ny<|im_end|>\n"
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nz<|im_end|>\n<|im_start|>assistant\n"
    )


# What cannot be dressed is refused in a sentence.


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ("{{ messages[-1].content }}", "does not show all that it is given"),
        ("{{ nothing.here }}", "does not go with it: 'nothing' is undefined"),
        pytest.param("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                     "took more than", marks=pytest.mark.slow),
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{% if %}", "does not go with it"),
        ("{{ messages | length }}", "does not show all"),
        ("{% for m in messages %}{{ m.content | e }}{% endfor %}", "does not show all"),
    ],
)  # fmt: skip
def test_a_template_that_shows_less_is_refused(own: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        dressed(own, "json")
    assert caught.value.kind == "bad-value"
    assert words in caught.value.message


def test_names_and_files(tmp_path: Any) -> None:
    assert read(None) is None
    assert read("none") == by_name("none")
    assert read("json") == TemplateOverride("json", "the convention json")
    file = tmp_path / "mine.jinja"
    file.write_text(texts.CHATML)
    mine = read(str(file))
    assert mine is not None
    assert (mine.name, mine.text, mine.word) == (FILE, texts.CHATML, str(file))
    assert template_of(mine, None, VOCABULARY, RENDERER).text == texts.CHATML
    assert read(mine.word) == mine


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "file not found; known names: json, own-calls, as-written, none"),
        (b"", "1 to 1,000,000"),
        (b" \n", "1 to 1,000,000"),
        (b"\xff\xfe", "no file of text"),
        (b"x" * 1_000_001, "1 to 1,000,000 characters"),
    ],
)
def test_a_file_that_is_no_template(tmp_path: Any, content: bytes | None, words: str) -> None:
    file = tmp_path / "mine.jinja"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read(str(file))
    with pytest.raises(UsageError, match="file not found"):
        read(str(tmp_path))
    with pytest.raises(UsageError):
        read("/dev/zero")


@pytest.mark.parametrize("char", ["\0", "\ud800"])
def test_what_no_file_can_hold_is_refused(char: str) -> None:
    own = Template(texts.CHATML + "{# " + char + " #}", "own")
    with pytest.raises(UsageError, match="characters that no file of text has"):
        template_of(by_name("json"), own, VOCABULARY, RENDERER)
    with pytest.raises(UsageError, match="characters that no file of text has"):
        template_of(TemplateOverride(FILE, "/x", own.text), None, VOCABULARY, RENDERER)


def test_mlx_finds_its_parser_in_the_text() -> None:
    """mlx-lm and mlx-vlm look for these two texts, and for others before them."""
    prelude = compose("", "json", Traits("first", strict=True, parts=False))
    assert "<tool_call>" in prelude
    assert "tool_call.name" in prelude
    others = (
        "<|tool_call", "<arg_key>", "[TOOL_CALLS]", "<function", "<minimax", "<start_function", "<mm:",
        "<longcat",
    )  # fmt: skip
    assert not [mark for mark in others if mark in prelude]
