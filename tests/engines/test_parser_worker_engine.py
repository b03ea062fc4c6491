"""The workers in the engines' environments: each engine's own parsers, asked without weights."""

import dataclasses
import json
from pathlib import Path

import pytest

import importer.demo
from importer.chat_template.samples import Sample
from importer.engines import registries
from importer.engines.parsers import ParserQuestion, ParserWorker
from importer.engines.tokens import Tokens
from importer.sentences import render
from tests.tiers import one_of_each

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("parsers")]

PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}}
TOOLS = ({"type": "function", "function": {"name": "weather", "parameters": {"properties": PROPERTIES}}},)
CALL = {"city": "Zürich \U0001f389", "days": 3}
HERMES = (
    '<tool_call>\n{"name": "weather", "arguments": '
    + json.dumps(CALL, ensure_ascii=False)
    + "}\n</tool_call>"
)
XML = (
    "<tool_call>\n<function=weather>\n<parameter=city>\nZürich \U0001f389\n</parameter>\n"
    "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
)
ASK = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
MARKERS = (
    ("<|im_start|>", True), ("<|im_end|>", True), ("<tool_call>", False), ("</tool_call>", False),
    ("<think>", False), ("</think>", False),
)  # fmt: skip
CHATML = Tokens(tokens=MARKERS, eos="<|im_end|>")
TALK = Sample("talk", ASK, "Nothing to call.", tools=TOOLS)
JSON = Sample("json", ASK, HERMES, tools=TOOLS)
TAGS = Sample("tags", ASK, XML, tools=TOOLS)
THOUGHT = Sample("thought", ASK, "<think>\nhm\n</think>\n\nYes.")
OPENED = Sample("opened", ASK + "<think>\n", "hm\n</think>\n\nYes.")


@pytest.fixture(scope="module")
def vllm(vllm_parsers):
    with ParserWorker("vllm", vllm_parsers.python) as worker:
        yield worker


@pytest.fixture(scope="module")
def mlx(mlx_engine):
    with ParserWorker("mlx", mlx_engine.python) as worker:
        yield worker


@pytest.fixture(scope="module")
def mlx_vlm(mlx_vlm_engine):
    with ParserWorker("mlx-vlm", mlx_vlm_engine.python) as worker:
        yield worker


def calls(reading):
    return [(call.name, json.loads(call.arguments)) for call in reading.calls]


def readers(worker, tokens, sample, kind="tool"):
    asks = [ParserQuestion(**{kind: parser.name}) for parser in worker.list() if parser.kind == kind]
    found = worker.read(tokens, [sample], asks)
    return {
        getattr(a, kind) for a, (r,) in found.items() if r.error is None and calls(r) == [("weather", CALL)]
    }


@pytest.mark.parametrize("engine", one_of_each(["mlx", "vllm", "mlx-vlm", "vllm-mlx"]))
def test_the_worker_lists_what_the_registry_says(engine, request, fresh_workers):
    """The one test of each engine's worker that no recording answers."""
    installed = request.getfixturevalue(f"{engine.replace('-', '_')}_engine")
    with ParserWorker(engine, installed.python) as worker:
        registry, listed = registries.load(engine, worker.version()), worker.list()
    for kind in ("tool", "reasoning"):
        found = {p.name: (p.class_name, p.module, p.aliases) for p in listed if p.kind == kind}
        known = {e.name: (e.class_name, e.module, e.aliases) for e in registry.entries[kind].values()}
        assert found == known


def test_every_parser_can_be_asked(vllm):
    """Harmony's two names answer for gpt_oss only, and ``hf`` wants a response template."""
    tokens = dataclasses.replace(CHATML, assumed=True)
    refusing = {"tool": {"hf", "openai"}, "reasoning": {"hf", "openai_gptoss"}}
    for kind, names in refusing.items():
        asks = [ParserQuestion(**{kind: parser.name}) for parser in vllm.list() if parser.kind == kind]
        answers = vllm.stream(tokens, [JSON, THOUGHT], asks)
        assert {
            getattr(ask, kind) for ask, rows in answers.items() if any(r.whole.error for r in rows)
        } == names


def test_the_engine_tells_what_it_would_not_let_the_model_write(vllm):
    pairs = "".join(
        f"<arg_key>{k}</arg_key>{{0}}<arg_value>{v}</arg_value>{{0}}"
        for k, v in (("city", "Rome"), ("days", 3))
    )
    plain = Sample("plain", ASK, "Yes.<tool_call>weather" + pairs.format("") + "</tool_call>", tools=TOOLS)
    broken = dataclasses.replace(plain, completion=plain.completion.replace("weather", "weather\n", 1))
    marked = [(m, False) for m in ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")]
    tokens = Tokens(tokens=(*MARKERS, *marked), eos="<|im_end|>")
    glm, ling = vllm.read(
        tokens, [plain, broken], [ParserQuestion("glm47"), ParserQuestion("ling3")]
    ).values()
    assert [r.calls[0].name for r in glm] == ["weather", "weather"]
    assert [r.forbidden for r in glm] == [None, r"'\n' after 'Yes.<tool_call>weather'"]
    assert [r.forbidden for r in ling] == [None, None]


def test_reasoning_and_calls_are_read_together(vllm):
    both = dataclasses.replace(THOUGHT, completion=f"<think>\nhm\n</think>\n\n{HERMES}", tools=TOOLS)
    ask = ParserQuestion("hermes", "qwen3")
    (reading,) = vllm.read(CHATML, [both], [ask])[ask]
    assert calls(reading) == [("weather", CALL)]
    assert reading.reasoning.strip() == "hm"
    (replay,) = vllm.stream(CHATML, [both], [ask])[ask]
    assert calls(replay.whole) == [("weather", CALL)]
    assert replay.count > 20


def test_a_parser_whose_marker_is_no_token_says_so_and_costs_nobody_else(vllm):
    plain = dataclasses.replace(CHATML, tokens=MARKERS[:2])
    found = vllm.read(
        plain, [THOUGHT, OPENED], [ParserQuestion(None, "deepseek_r1"), ParserQuestion(None, "granite")]
    )
    assert all(
        "could not locate think" in render(r.error) for r in found[ParserQuestion(None, "deepseek_r1")]
    )
    assert [r.error for r in found[ParserQuestion(None, "granite")]] == [None, None]


def test_where_the_vocabulary_is_assumed_so_is_the_marker_that_a_parser_needs(vllm):
    bare = Sample("bare", ASK, '{"name": "weather", "parameters": ' + json.dumps(CALL) + "}", tools=TOOLS)
    ask = ParserQuestion("llama3_json")
    (declared,) = vllm.read(CHATML, [bare], [ask])[ask]
    assert "<|python_tag|>" in render(declared.error)
    (assumed,) = vllm.read(dataclasses.replace(CHATML, assumed=True), [bare], [ask])[ask]
    assert calls(assumed) == [("weather", CALL)]


def test_a_suffix_of_the_markers_is_found_where_no_setting_names_it(vllm):
    parts = ("tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value")
    tokens = tuple((f"<{slash}{part}:x1>", False) for part in parts for slash in ("", "/"))
    text = (
        "<tool_calls:x1>\n<tool_call:x1>weather<tool_sep:x1>\n<arg_key:x1>city</arg_key:x1>\n"
        f"<arg_value:x1>{CALL['city']}</arg_value:x1>\n<arg_key:x1>days</arg_key:x1>\n"
        "<arg_value:x1>3</arg_value:x1>\n</tool_call:x1>\n</tool_calls:x1>"
    )
    sample = Sample("suffix", ASK, text, tools=TOOLS)
    for named in (
        Tokens(tokens=tokens, assumed=True),
        Tokens(tokens=tokens, settings={"token_suffix": ":x1"}),
    ):
        (reading,) = vllm.read(named, [sample], [ParserQuestion("hy_v3")])[ParserQuestion("hy_v3")]
        assert calls(reading) == [("weather", CALL)]


def test_a_model_of_harmony_accepts_no_parser_but_its_own(vllm):
    sample = Sample(
        "harmony",
        "<|start|>user<|message|>hi<|end|><|start|>assistant",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
        f" to=functions.weather<|channel|>commentary json<|message|>{json.dumps(CALL)}",
        tools=TOOLS,
    )
    names = ("start", "end", "message", "channel", "call", "return", "constrain")
    tokens = Tokens(tokens=tuple((f"<|{n}|>", True) for n in names), eos="<|return|>", model_type="gpt_oss")
    both, other = ParserQuestion("openai", "openai_gptoss"), ParserQuestion("hermes")
    found = vllm.read(tokens, [sample], [both, other])
    assert vllm.stream(tokens, [sample], [both])[both][0].different == 0
    assert calls(found[both][0]) == [("weather", CALL)]
    assert found[both][0].reasoning == "hm"
    assert "Harmony requires GptOssToolParser" in render(found[other][0].error)


def test_coheres_parsers_run_on_melody(vllm):
    text = (
        "<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n    "
        '{"tool_call_id": "0", "tool_name": "weather", "parameters": '
        + json.dumps(CALL)
        + "}\n]<|END_ACTION|>"
    )
    marks = ("START_THINKING", "END_THINKING", "START_ACTION", "END_ACTION", "CHATBOT_TOKEN")
    tokens = Tokens(tokens=tuple((f"<|{m}|>", True) for m in marks))
    ask = ParserQuestion("cohere_command3", "cohere_command3")
    (reading,) = vllm.read(tokens, [Sample("c", "<|CHATBOT_TOKEN|>", text, tools=TOOLS)], [ask])[ask]
    assert calls(reading) == [("weather", CALL)]
    assert reading.reasoning == "hm"


def test_the_response_template_of_the_settings_is_obeyed(vllm):
    fields = {"thinking": {"open": "<think>", "close": "</think>"}, "content": {}}
    template = {"start_anchor": "<|im_start|>assistant\n", "fields": fields}
    ask = ParserQuestion(None, "hf")
    (without,) = vllm.read(CHATML, [THOUGHT], [ask])[ask]
    assert "requires `response_template`" in render(without.error)
    settled = dataclasses.replace(CHATML, settings={"response_template": template})
    (reading,) = vllm.read(settled, [THOUGHT], [ask])[ask]
    assert reading.error is None
    assert reading.reasoning.strip() == "hm"


@pytest.mark.parametrize("engine", ["vllm", "mlx", "mlx-vlm"])
def test_the_repositorys_own_tokenizer_is_taken_where_it_lies(engine, request):
    worker = request.getfixturevalue(engine.replace("-", "_"))
    name = "hermes" if engine == "vllm" else "json_tools"
    own = Tokens(directory=Path(importer.demo.__file__).with_name("model"))
    (reading,) = worker.read(own, [JSON], [ParserQuestion(name)])[ParserQuestion(name)]
    assert calls(reading) == [("weather", CALL)]


def test_a_tokenizer_that_cannot_be_loaded_gives_way_to_the_declared_one(vllm, tmp_path):
    (tmp_path / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": "x.Own"}}'
    )
    (tmp_path / "x.py").write_text("raise SystemExit('code of the repository was run')")
    (reading,) = vllm.read(
        dataclasses.replace(CHATML, directory=tmp_path), [JSON], [ParserQuestion("hermes")]
    )[ParserQuestion("hermes")]
    assert calls(reading) == [("weather", CALL)]


def test_mlx_reads_as_its_server_does(mlx):
    assert readers(mlx, CHATML, JSON) >= {"json_tools"}
    assert readers(mlx, CHATML, TAGS) == {"qwen3_coder"}
    ask = ParserQuestion(None, "<think>")
    for replay in mlx.stream(CHATML, [THOUGHT, OPENED], [ask])[ask]:
        assert replay.whole.reasoning.strip() == "hm"
        assert replay.whole.content.strip() == "Yes."
        assert replay.different == 0


def test_mlx_infers_from_template_vocabulary_and_claim(mlx):
    told = dataclasses.replace(CHATML, chat_template="<tool_call> {{ tool_call.name }}")
    assert mlx.infer(told) == ParserQuestion("json_tools", "<think>")
    assert mlx.infer(dataclasses.replace(CHATML, chat_template="<tool_call>")) == ParserQuestion(
        None, "<think>"
    )
    assert mlx.infer(dataclasses.replace(told, settings={"tool_parser_type": "glm47"})).tool == "glm47"
    other = mlx.read(CHATML, [THOUGHT], [ParserQuestion(None, "<longcat_think>")])[
        ParserQuestion(None, "<longcat_think>")
    ][0]
    assert "the vocabulary gives the thinking marker '<think>'" in render(other.error)


def test_mlx_vlm_reads_as_its_server_does(mlx_vlm):
    assert readers(mlx_vlm, CHATML, JSON) == {"json_tools", "glm47"}
    assert readers(mlx_vlm, CHATML, TAGS) == {"qwen3_coder"}
    both = dataclasses.replace(THOUGHT, completion=f"<think>\nhm\n</think>\n\n{HERMES}", tools=TOOLS)
    ask = ParserQuestion("json_tools", "<think>")
    for replay in mlx_vlm.stream(CHATML, [THOUGHT, OPENED, both], [ask])[ask]:
        assert replay.whole.reasoning == "hm"
        assert (replay.count, replay.different) == (1, 0)
    assert calls(replay.whole) == [("weather", CALL)]


def test_mlx_vlm_splits_at_one_pair_of_markers_when_one_is_named(mlx_vlm):
    other, any_pair, unknown = (
        ParserQuestion(None, "<|channel>thought"),
        ParserQuestion(),
        ParserQuestion(None, "[THINK]"),
    )
    found = mlx_vlm.read(CHATML, [THOUGHT], [other, any_pair, unknown])
    assert (found[other][0].reasoning, found[any_pair][0].reasoning) == (None, "hm")
    assert "knows no thinking marker '[THINK]'" in render(found[unknown][0].error)


def test_mlx_vlm_infers_from_the_template_and_leaves_thinking_open(mlx_vlm):
    told = dataclasses.replace(CHATML, chat_template="<tool_call> {{ tool_call.name }}")
    assert mlx_vlm.infer(told) == ParserQuestion("json_tools")
    assert mlx_vlm.infer(dataclasses.replace(CHATML, chat_template="<tool_call>")) == ParserQuestion()


def test_mlx_vlm_streams_a_broken_call_as_the_error_that_a_client_would_get(mlx_vlm):
    """It has sent a part of the call by then, and cannot take it back."""
    broken = dataclasses.replace(JSON, completion=HERMES.replace("}}", "}").replace("\n</tool_call>", ""))
    ask = ParserQuestion("json_tools")
    (replay,) = mlx_vlm.stream(CHATML, [broken], [ask])[ask]
    assert replay.whole.calls == ()
    assert replay.different == 1
    assert "incomplete tool call" in render(replay.examples[0].reading.error)
