"""Wire formats by their markers: the format of a rendered call, and the parsers made for it.

A format is recognised in the *rendered* text of a known call, never in the template's source, so spelling
and spacing of the Jinja do not matter. Where an engine is installed, the proof runs its own parsers and
this list only chooses among those that read the template.

Source of the parsers and their formats: vLLM 0.32 ``vllm/tool_parsers`` and mlx-lm 0.32
``mlx_lm/tool_parsers``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from importer.chat_template.conventions import PYTHONIC


@dataclass(frozen=True, slots=True)
class WireFormat:
    """A wire format.

    ``marks``   all of them stand in a rendered call.
    ``parsers`` engine to the parsers made for it, the usual one first.
    ``starts``  the completion starts with one of these, for formats without markers.
    ``turns``   all of them stand in the prompt: role markers distinguish families with one format of calls.
    ``thinks``  vLLM's reasoning parser of the models with this format, if they think.
    """

    name: str
    marks: tuple[str, ...]
    parsers: Mapping[str, tuple[str, ...]]
    starts: tuple[str, ...] = ()
    thinks: str = ""
    turns: tuple[str, ...] = ()

    def fits(self, prompt: str, completion: str) -> bool:
        """Return whether a rendered call is in this format."""
        head = completion.lstrip()
        marked = all(m in completion for m in self.marks) and all(t in prompt for t in self.turns)
        return marked and (not self.starts or head.startswith(self.starts))


def _format(
    name: str,
    *marks: str,
    vllm: str,
    mlx: str = "",
    vlm: str | None = None,
    starts: tuple[str, ...] = (),
    thinks: str = "",
    turns: tuple[str, ...] = (),
) -> WireFormat:
    """Return a format; ``vlm`` is mlx-vlm's name where it differs from mlx-lm's, empty where it has none."""
    named = {engine: tuple(names.split()) for engine, names in _by_engine(vllm, mlx, vlm).items()}
    return WireFormat(name, marks, named, starts, thinks, turns)


def _by_engine(vllm: str, mlx: str, vlm: str | None) -> dict[str, str]:
    """Return the parser names by engine: mlx-vlm has mlx-lm's names by default, vllm-mlx has vLLM's."""
    names = {"vllm": vllm, "vllm-mlx": vllm, "mlx": mlx, "mlx-vlm": mlx if vlm is None else vlm}
    return {engine: name for engine, name in names.items() if name}


# The first that fits wins: a format stands before every format with fewer of its marks.
FORMATS = (
    _format("kimi-xtml", "<|open|>call tool=", vllm="kimi_k3", mlx="kimi_k3", vlm="", thinks="kimi_k3"),
    _format("dsml-spaced", "<｜DSML｜ calls>", vllm="deepseek_v41", thinks="deepseek_v41"),
    _format("dsml-tool-calls", "<｜DSML｜tool_calls>", vllm="deepseek_v4", thinks="deepseek_v4"),
    _format("dsml-function-calls", "<｜DSML｜function_calls>", vllm="deepseek_v32", thinks="deepseek_v3"),
    _format(
        "deepseek-fenced",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        vllm="deepseek_v3",
        thinks="deepseek_r1",
    ),
    _format(
        "deepseek-bare", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", vllm="deepseek_v31", thinks="deepseek_v3"
    ),
    _format("steptml", "<steptml:invoke", vllm="step3", thinks="step3"),
    _format(
        "kimi-sections",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        vllm="kimi_k2",
        mlx="kimi_k2",
        thinks="kimi_k2",
    ),
    _format("minimax-tagged", "]<]minimax[>[", vllm="minimax_m3", vlm="minimax_m3", thinks="minimax_m3"),
    _format(
        "minimax-invoke", "<minimax:tool_call>", vllm="minimax_m2", mlx="minimax_m2", thinks="minimax_m2"
    ),
    _format("seed-xml", "<seed:tool_call>", vllm="seed_oss", thinks="seed_oss"),
    _format("dots-invoke", "<dots_function_call>", vllm="dots", thinks="qwen3"),
    _format(
        "atem-invoke",
        "<atem:function_calls>",
        vllm="muse_glimmer",
        mlx="muse_spark",
        vlm="atem",
        thinks="muse_glimmer",
    ),
    _format("longcat-json", "<longcat_tool_call>", vllm="longcat", mlx="longcat"),
    _format("ifm-args", "<ifm|tool_call", vllm="k2_horizon", thinks="k2_horizon"),
    _format("plamo-requests", "<|plamo:begin_tool_request", vllm="plamo3", thinks="plamo3"),
    _format("inkling-invoke", "<|content_invoke_tool_json|>", vllm="inkling", thinks="inkling"),
    _format("harmony", "<|channel|>", "to=functions.", vllm="openai", vlm="harmony", thinks="openai_gptoss"),
    _format("gemma-call", "<|tool_call>call:", vllm="gemma4", mlx="gemma4", thinks="gemma4"),
    _format("function-gemma", "<start_function_call>", vllm="functiongemma", mlx="function_gemma", vlm=""),
    _format("lfm-pythonic", "<|tool_call_start|>", vllm="lfm2", mlx="pythonic"),
    _format("cohere-actions", "<|START_ACTION|>", vllm="cohere_command3 cohere_command4", vlm="cohere2_moe"),
    _format("apertus-prefix", "<|tools_prefix|>", vllm="apertus"),
    _format("internlm-action", "<|action_start|>", "<|plugin|>", vllm="internlm"),
    _format("gigachat-function", "<|function_call|>", vllm="gigachat3"),
    _format("gigachat-role", "function call<|role_sep|>", vllm="gigachat3"),
    _format("hunyuan-sep", "<tool_calls", "<tool_sep", "<arg_key", vllm="hy_v3", thinks="hy_v3"),
    _format("hunyuan-args", "<tool_calls", "<tool_call", "<arg_key", vllm="hy_v4", thinks="hy_v4"),
    _format(
        "ling-args", "<tool_call>", "<arg_key>", vllm="ling3", mlx="glm47", thinks="ling3", turns=("<role>",)
    ),
    _format(
        "laguna-args",
        "<tool_call>",
        "<arg_key>",
        vllm="poolside_v1",
        mlx="laguna",
        vlm="glm47",
        thinks="poolside_v1",
        turns=("<assistant>",),
    ),
    _format(
        "glm-args",
        "<tool_call>",
        "<arg_key>",
        vllm="glm47 glm45 poolside_v1 ling3",
        mlx="glm47",
        thinks="glm45",
    ),
    _format(
        "qwen-xml",
        "<tool_call>",
        "<function=",
        vllm="qwen3_coder qwen3_xml step3p5 mimo",
        mlx="qwen3_coder",
        thinks="qwen3",
    ),
    _format("minicpm-xml", "<function name=", "<param name=", vllm="minicpm5", mlx="minicpm5"),
    _format("granite-array", "<tool_call>[", vllm="granite"),
    _format("granite-bar", "<|tool_call|>", vllm="granite"),
    _format("hermes-json", "<tool_call>", '"name"', vllm="hermes qwen3_json granite4", mlx="json_tools"),
    _format("tool-calls-array", "<tool_calls>", '"name"', vllm="jamba hunyuan_a13b"),
    _format("function-calls-pythonic", "<function_calls>", vllm="olmo3", thinks="olmo3"),
    _format("function-call-json", "<function_call>", vllm="granite-20b-fc"),
    _format("mistral-calls", "[TOOL_CALLS]", vllm="mistral", mlx="mistral", thinks="mistral"),
    _format("functools", "functools[", vllm="phi4_mini_json"),
    _format("llama4-pythonic", "<|python_start|>", vllm="llama4_pythonic"),
    _format(
        "llama-json",
        '"parameters"',
        vllm="llama3_json llama4_json",
        starts=('{"name"', '<|python_tag|>{"name"', '{"type": "function"'),
    ),
    _format("bare-array", '"name"', '"arguments"', vllm="xlam", starts=("[{", "[ {")),
    _format("pythonic", "(", ")]", vllm="pythonic", starts=("[",)),
)


def format_of(prompt: str, completion: str) -> WireFormat | None:
    """Return the format of a rendered call, or ``None``."""
    return next((f for f in FORMATS if f.fits(prompt, completion)), None)


def instructed(text: str) -> WireFormat | None:
    """Return the format with its call markers in a prompt that instructs a model how to call."""
    for known in FORMATS:
        markers = [m for m in known.marks if m[0] in "<[]"]
        if markers and not (known.starts or known.turns) and all(m in text for m in markers):
            return known
    return None


def made_for(engine: str, parser: str) -> tuple[WireFormat, ...]:
    """Return the formats with this parser of ``engine``."""
    return tuple(f for f in FORMATS if parser in f.parsers.get(engine, ()))


def liberal(engine: str) -> frozenset[str]:
    """Return parsers made only for formats without markers."""
    plain = {p for f in FORMATS if f.starts for p in f.parsers.get(engine, ())}
    marked = {p for f in FORMATS if not f.starts for p in f.parsers.get(engine, ())}
    return frozenset((plain - marked) | {PYTHONIC})


def translate(
    key: str, parser: str, engine: str, other: str, known: Container[str] | None = None
) -> str | None:
    """Return the parser of ``other`` that reads the same formats as ``parser`` of ``engine``, or ``None``.

    ``known`` are the names that the version of ``other`` has. The first of them is returned, else the first
    of all, and its absence shows later.
    """
    if key == "reasoning_parser":
        names = [b.parsers[other] for b in BLOCKS if b.parsers.get(engine) == parser and other in b.parsers]
    else:
        names = [name for f in made_for(engine, parser) for name in f.parsers.get(other, ())]
        names.sort(key=parser.__ne__)  # the same name is the best match
    return next((name for name in names if known is None or name in known), names[0] if names else None)


@dataclass(frozen=True, slots=True)
class MarkerBlock:
    """A kind of reasoning block: its opening marker, and the parser made for it."""

    opening: str
    parsers: Mapping[str, str]


def _block(opening: str, *vllm: str, mlx: str = "", vlm: str | None = None) -> tuple[MarkerBlock, ...]:
    return tuple(MarkerBlock(opening, _by_engine(name, mlx, vlm)) for name in vllm)


# By the opening marker as a template renders it; the first of a marker's parsers is the usual one.
BLOCKS = (
    *_block(
        "<think>",
        "deepseek_r1",
        "qwen3",
        "deepseek_v3",
        "deepseek_v4",
        "glm45",
        "glm47",
        "nemotron_v3",
        "granite_thinking_parser",
        "kimi_k2",
        "minimax_m2",
        "mimo",
        "holo2",
        "ernie45",
        "olmo3",
        "step3",
        "step3p5",
        "ling3",
        "poolside_v1",
        "hunyuan_a13b",
        "minicpmv",
        "deepseek_v41",
        mlx="<think>",
    ),
    *_block("<longcat_think>", mlx="<longcat_think>"),
    *_block("<seed:think>", "seed_oss"),
    *_block("<mm:think>", "minimax_m3"),
    *_block("[THINK]", "mistral"),
    *_block("<|channel>thought", "gemma4", mlx="<|channel>thought"),
    *_block("<|START_THINKING|>", "cohere_command3", "cohere_command4", vlm="<|START_THINKING|>"),
    *_block("<|content_thinking|>", "inkling"),
    *_block("<|open|>think<|sep|>", "kimi_k3", mlx="<|open|>think<|sep|>", vlm=""),
    *_block("<|channel|>analysis<|message|>", "openai_gptoss"),
    *_block("<ifm|think>", "k2_horizon"),
    *_block("<|plamo:begin_think:plamo|>", "plamo3"),
    *_block("Here is my thought process:", "granite"),
)


def block_parser(opening: str, calls: WireFormat | None) -> str | None:
    """Return vLLM's parser for a block with this opening marker: the calls' own one, else the usual one."""
    fitting = [
        b.parsers["vllm"] for b in BLOCKS if "vllm" in b.parsers and opening.strip().startswith(b.opening)
    ]
    if calls is not None and calls.thinks and (calls.thinks in fitting or not fitting):
        return calls.thinks
    return fitting[0] if fitting else None


def has_own_block(calls: WireFormat) -> bool:
    """Return whether models with these calls think in a block of their own rather than in ``<think>``."""
    common = {b.parsers["vllm"] for b in BLOCKS if b.opening == "<think>" and "vllm" in b.parsers}
    return bool(calls.thinks) and calls.thinks not in common
