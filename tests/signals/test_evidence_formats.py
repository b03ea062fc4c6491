"""Wire formats: each recognised in a call of its own, none in another's, every name known to its engine."""

from __future__ import annotations

import pytest

from importer.engines import registries
from importer.signals.wire_formats import (
    BLOCKS,
    FORMATS,
    block_parser,
    format_of,
    has_own_block,
    instructed,
    liberal,
    made_for,
    translate,
)

JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
# A call of each format, written by hand; (prompt, completion) where the turns tell formats apart.
CALLS: dict[str, str | tuple[str, str]] = {
    "kimi-xtml": '<|open|>call tool="get_weather"<|sep|>{"city": "Paris"}<|close|>call<|sep|>',
    "dsml-spaced": '<｜DSML｜ calls>\n<｜DSML｜ invoke name="get_weather">…</｜DSML｜ calls>',
    "dsml-tool-calls": '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">…</｜DSML｜tool_calls>',
    "dsml-function-calls": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">…',
    "deepseek-fenced": "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
    '```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜>',
    "deepseek-bare": '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>',
    "steptml": '<steptml:invoke name="get_weather"><steptml:parameter name="city">Paris',
    "kimi-sections": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
    '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|>',
    "minimax-tagged": ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="get_weather">',
    "minimax-invoke": '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris',
    "seed-xml": "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>",
    "dots-invoke": '<dots_function_call><invoke name="get_weather"></invoke></dots_function_call>',
    "atem-invoke": '<atem:function_calls><atem:invoke name="get_weather"></atem:invoke>',
    "longcat-json": f"<longcat_tool_call>{JSON}</longcat_tool_call>",
    "ifm-args": "<ifm|tool_calls><ifm|tool_call>get_weather</ifm|tool_call></ifm|tool_calls>",
    "plamo-requests": "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|>",
    "inkling-invoke": f"<|content_invoke_tool_json|>{JSON}",
    "harmony": ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}',
    "gemma-call": '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>',
    "function-gemma": "<start_function_call>call:get_weather{city:<escape>Paris<escape>}<end_function_call>",
    "lfm-pythonic": '<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>',
    "cohere-actions": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {}}]',
    "apertus-prefix": '<|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|>',
    "internlm-action": '<|action_start|><|plugin|>\n{"name": "get_weather", "parameters": {}}<|action_end|>',
    "gigachat-function": '<|function_call|>{"name": "get_weather", "arguments": {"city": "Paris"}}',
    "gigachat-role": 'function call<|role_sep|>\n{"name": "get_weather", "arguments": {"city": "Paris"}}',
    "hunyuan-sep": "<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>",
    "hunyuan-args": "<tool_calls>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris",
    "ling-args": ("<role>HUMAN</role>", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris"),
    "laguna-args": ("<user>Hi</user><assistant>", "<tool_call>get_weather<arg_key>city</arg_key>"),
    "glm-args": (
        "<|user|>Hi<|assistant|>",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris",
    ),
    "qwen-xml": "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>",
    "minicpm-xml": '<function name="get_weather"><param name="city">Paris</param></function>',
    "granite-array": f"<tool_call>[{JSON}]",
    "granite-bar": f"<|tool_call|>[{JSON}]",
    "hermes-json": f"<tool_call>\n{JSON}\n</tool_call>",
    "tool-calls-array": f"<tool_calls>[{JSON}]</tool_calls>",
    "function-calls-pythonic": '<function_calls>\nget_weather(city="Paris")\n</function_calls>',
    "function-call-json": f"<function_call> {JSON}",
    "mistral-calls": f"[TOOL_CALLS][{JSON}]",
    "functools": f"functools[{JSON}]",
    "llama4-pythonic": '<|python_start|>[get_weather(city="Paris")]<|python_end|>',
    "llama-json": '{"name": "get_weather", "parameters": {"city": "Paris"}}',
    "bare-array": f"[{JSON}]",
    "pythonic": '[get_weather(city="Paris")]',
}
# Registered parsers that no format names, and why none is needed.
WITHOUT_FORMAT = {
    "hf": "reads whatever a response_template describes",
    "ernie45": "reads calls between <tool_call> markers as hermes does; its template is known by name only",
}


@pytest.mark.parametrize("known", FORMATS, ids=lambda f: f.name)
def test_a_call_of_its_own_is_recognised_and_no_earlier_format_takes_it(known: object) -> None:
    call = CALLS[known.name]  # type: ignore[attr-defined]
    prompt, completion = ("", call) if isinstance(call, str) else call
    assert format_of(prompt, completion) is known


def test_every_format_has_a_call_here() -> None:
    assert list(CALLS) == [f.name for f in FORMATS]


@pytest.mark.parametrize("engine", ["vllm", "mlx", "mlx-vlm"])
def test_every_parser_named_exists(engine: str) -> None:
    registry = registries.load(engine, registries.PINNED[engine])
    tools = {p for f in FORMATS for p in f.parsers.get(engine, ())}
    blocks = {b.parsers[engine] for b in BLOCKS if engine in b.parsers}
    thinks = {f.thinks for f in FORMATS if f.thinks} if engine == "vllm" else set()
    assert tools <= set(registry.names("tool"))
    assert blocks | thinks <= set(registry.names("reasoning"))


def test_every_registered_tool_parser_has_a_format_or_a_reason() -> None:
    for engine, reasons in (("vllm", WITHOUT_FORMAT), ("mlx", {}), ("mlx-vlm", {})):
        registered = set(registries.load(engine, registries.PINNED[engine]).names("tool"))
        named = {p for f in FORMATS for p in f.parsers.get(engine, ())}
        assert registered - named == set(reasons)


@pytest.mark.parametrize("text", ["It is sunny.", "", "<b>bold</b>", "see [1] (and [2])", '{"answer": 42}'])
def test_talk_is_in_no_format(text: str) -> None:
    assert format_of("", text) is None


def test_a_format_stands_before_those_whose_marks_are_part_of_its_own() -> None:
    """Otherwise the general one would take its calls."""
    for at, one in enumerate(FORMATS):
        for other in FORMATS[at + 1 :]:
            alike = one.starts == other.starts and one.turns == other.turns
            if alike and set(one.marks) <= set(other.marks):
                pytest.fail(f"{one.name} hides {other.name}")


def test_liberal_parsers_are_made_for_calls_without_markers_only() -> None:
    found = liberal("vllm")
    assert {"llama3_json", "pythonic", "xlam"} <= found
    assert not {"hermes", "qwen3_coder", "mistral"} & found
    assert all(f.starts for name in found for f in made_for("vllm", name))


@pytest.mark.parametrize(
    ("key", "name", "engine", "other", "found"),
    [
        ("tool_parser", "hermes", "vllm", "mlx", "json_tools"),
        ("tool_parser", "granite4", "vllm", "mlx", "json_tools"),
        ("tool_parser", "json_tools", "mlx", "vllm", "hermes"),
        ("tool_parser", "hermes", "vllm", "mlx-vlm", "json_tools"),
        ("tool_parser", "kimi_k2", "vllm", "mlx-vlm", "kimi_k2"),
        ("tool_parser", "kimi_k3", "vllm", "mlx-vlm", None),
        ("tool_parser", "openai", "vllm", "mlx-vlm", "harmony"),
        ("tool_parser", "laguna", "mlx", "mlx-vlm", "glm47"),
        ("tool_parser", "granite4", "vllm", "vllm-mlx", "granite4"),
        ("reasoning_parser", "cohere_command3", "vllm", "mlx-vlm", "<|START_THINKING|>"),
        ("reasoning_parser", "qwen3", "vllm", "vllm-mlx", "qwen3"),
        ("tool_parser", "deepseek_v3", "vllm", "mlx", None),
        ("tool_parser", "../x", "mlx", "vllm", None),
        ("reasoning_parser", "qwen3", "vllm", "mlx", "<think>"),
        ("reasoning_parser", "granite", "vllm", "mlx", None),
    ],
)
def test_a_parser_under_the_other_engines_name(
    key: str, name: str, engine: str, other: str, found: str | None
) -> None:
    assert translate(key, name, engine, other) == found


def test_of_the_names_of_a_format_one_that_the_version_has_is_taken() -> None:
    assert translate("tool_parser", "granite4", "vllm", "vllm-mlx", {"hermes", "qwen3"}) == "hermes"
    assert translate("tool_parser", "glm45", "vllm", "vllm-mlx", {"glm47", "glm45"}) == "glm45"
    assert translate("tool_parser", "granite4", "vllm", "vllm-mlx", set()) == "granite4"


def test_instructions_name_a_format_by_its_markers() -> None:
    found = instructed('Answer with <tool_call>{"name": …, "arguments": …}</tool_call>.')
    assert found is not None
    assert found.name == "hermes-json"
    assert instructed("Call a function if you must.") is None
    assert instructed('Write {"name": …, "parameters": …} and nothing else.') is None  # no marker, no format


def test_a_block_goes_with_the_calls_beside_it() -> None:
    xml = format_of("", str(CALLS["qwen-xml"]))
    seed = format_of("", str(CALLS["seed-xml"]))
    assert xml is not None
    assert seed is not None
    assert block_parser("<think>", xml) == "qwen3"
    assert block_parser("<think>\n", None) == "deepseek_r1"
    assert block_parser("<seed:think>", xml) == "seed_oss"
    assert block_parser("<ponder>", None) is None
    assert block_parser("<ponder>", seed) == "seed_oss"
    assert has_own_block(seed)
    assert not has_own_block(xml)
