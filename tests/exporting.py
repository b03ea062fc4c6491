"""Documents to export, plain ones and hostile ones of any shape the schema allows; how exports are read."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import yaml
from hypothesis import strategies as st

from importer.backends import NAMES
from importer.document import argument_check, schema
from importer.document.argument_check import arguments_of
from importer.document.receipt import Receipt
from importer.errors import DocumentError
from importer.exports import FORMATS
from importer.exports.base import Exported, Options

COMMIT = "0123456789abcdef0123456789abcdef01234567"
VLLM: dict[str, Any] = {
    "name": "tiny-8b",
    "description": "A model",
    "backend": "vllm",
    "known_usecases": ["chat"],
    "parameters": {
        "model": "acme/Tiny-8B", "temperature": 0, "top_p": 0.95, "top_k": 20, "repeat_penalty": 1.05,
        "presence_penalty": -0.5, "max_tokens": 4096, "seed": 7,
    },
    "template": {"use_tokenizer_template": True},
    "options": ["tool_parser:hermes", "reasoning_parser:qwen3"],
    "max_model_len": 32768,
    "dtype": "bfloat16",
    "gpu_memory_utilization": 0.85,
    "tensor_parallel_size": 2,
    "limit_mm_per_prompt": {"image": 2, "video": 0},
    "chat_template_kwargs": {"enable_thinking": False, "note": "it's ${HOME}, {{.Name}} and\n\"more\" 'ü'"},
    "engine_args": {
        "enable_prefix_caching": False, "enable_chunked_prefill": True, "kv_cache_dtype": "fp8",
        "max_num_seqs": 8, "cpu_offload_gb": 1.5, "tool_strict_level": "function",
        "chat_template_content_format": "string",
        "speculative_config": {"method": "mtp", "num_speculative_tokens": 1},
    },
    "artifacts": [
        {
            "name": "model",
            "target": "model",
            "source": {"type": "huggingface", "repo": "acme/Tiny-8B", "revision": COMMIT},
        }
    ],
    "importer": {
        "schema": 1, "reference": "acme/Tiny-8B", "model_id": "acme/Tiny-8B", "revision": COMMIT,
        "family": "tiny", "license": "apache-2.0", "engine": {"name": "vllm", "version": "0.32.0"},
    },
}  # fmt: skip
ON_MLX: dict[str, Any] = {
    **{k: VLLM[k] for k in ("name", "known_usecases", "template", "max_model_len", "artifacts")},
    "backend": "mlx",
    "parameters": VLLM["parameters"],
    "options": ["tool_parser:json_tools", "reasoning_parser:<think>"],
    "chat_template_kwargs": {"enable_thinking": False, "note": VLLM["chat_template_kwargs"]["note"]},
    "engine_args": {"kv_bits": 8, "prompt_cache_size": 4},
    "importer": {**VLLM["importer"], "engine": {"name": "mlx", "version": "0.32.2"}},
}
ON_MLX_VLM: dict[str, Any] = {
    **ON_MLX, "backend": "mlx-vlm", "chat_template_kwargs": {"enable_thinking": True},
    "engine_args": {"kv_bits": 3.5, "max_kv_size": 4096},
    "importer": {**VLLM["importer"], "engine": {"name": "mlx-vlm", "version": "0.7.10"}},
}  # fmt: skip
ON_SGLANG: dict[str, Any] = {
    **{key: VLLM[key] for key in VLLM if key not in {"gpu_memory_utilization", "options"}},
    "backend": "sglang",
    "options": ["tool_parser:qwen", "reasoning_parser:qwen3"],
    "engine_args": {"kv_cache_dtype": "fp8_e4m3", "max_running_requests": 8, "mem_fraction_static": 0.8},
    "importer": {**VLLM["importer"], "engine": {"name": "sglang", "version": "0.5.23"}},
}
ON_VLLM_MLX: dict[str, Any] = {
    **{key: ON_MLX[key] for key in ON_MLX if key not in {"options", "engine_args"}},
    "backend": "vllm-mlx",
    "options": ["tool_parser:hermes", "reasoning_parser:qwen3"],
    "importer": {**VLLM["importer"], "engine": {"name": "vllm-mlx", "version": "0.6.0"}},
}
DOCUMENTS = {
    "vllm-mlx": ON_VLLM_MLX, "vllm": VLLM, "mlx": ON_MLX, "mlx-vlm": ON_MLX_VLM, "sglang": ON_SGLANG,
}  # fmt: skip

NASTY = (
    "--trust-remote-code", "-x", "$HOME", "${HF_TOKEN}", "$$", "$(id)", "`id`", "'; id; '", 'a" b', "a\nb: c",
    "# x", "{{.Name}}", "%s", "\u2028", "\x1b[31m", "yes", "1e5", "0o7", "null", "~", "- a", "? a", "!!x",
    "&a", "*a", "\\", "../x", "\u202e", "", " ",
)  # fmt: skip
TEXTS = st.sampled_from(NASTY) | st.text(max_size=12)
NUMBERS = st.integers(-9, 2**40) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
MODELS = st.sampled_from(("acme/Tiny-8B", "other/x", "./here", "gpt2")) | TEXTS.filter(bool)
ENGINE_ARGS = sorted({name for engine in NAMES for name in arguments_of(engine)})
COUNTS = st.integers(1, 2**40)


def documents() -> st.SearchStrategy[dict[str, Any]]:
    """Any document that fits the schema: what a person, a repository or an enemy may have written."""
    unit = st.floats(0, 1)
    parameters = st.fixed_dictionaries(
        {"model": MODELS},
        optional={
            "temperature": st.just(0) | st.floats(0, 5), "top_p": unit, "top_k": st.integers(-1, 100),
            "repeat_penalty": st.floats(0, 10), "presence_penalty": st.floats(-2, 2), "max_tokens": COUNTS,
            "seed": st.integers(), "n": VALUES,
        },
    )  # fmt: skip
    source = st.fixed_dictionaries({"repo": MODELS, "revision": TEXTS | st.just(COMMIT)})
    block = st.fixed_dictionaries(
        {"schema": st.just(1), "reference": TEXTS, "engine": st.fixed_dictionaries({"name": TEXTS})},
        optional={
            "model_id": MODELS, "revision": st.just(COMMIT), "license": TEXTS, "family": TEXTS,
            "end_tokens": st.dictionaries(st.sampled_from(("1", "2")), st.sampled_from(NASTY), max_size=2),
            "unset": st.lists(st.sampled_from(("temperature", "top_k")) | TEXTS, max_size=2),
        },
    )  # fmt: skip
    words = dict.fromkeys(("description", "dtype", "load_format", "system_prompt", "type", "mmproj"), TEXTS)
    maps = {k: st.dictionaries(TEXTS, VALUES, max_size=2) for k in ("reasoning", "function")}
    made = st.fixed_dictionaries(
        {
            "name": st.from_regex(r"[a-z0-9](?:[a-z0-9._-]{0,8}[a-z0-9])?", fullmatch=True),
            "backend": st.sampled_from(sorted(DOCUMENTS)),
            "parameters": parameters,
        },
        optional={
            **words,
            **maps,
            "options": st.lists(st.sampled_from(("tool_parser:", "a:", "--x:")).flatmap(_ending), max_size=3),
            "stopwords": st.lists(st.sampled_from(NASTY) | TEXTS, max_size=2),
            "max_model_len": COUNTS,
            "tensor_parallel_size": st.integers(1, 16),
            "gpu_memory_utilization": st.floats(0.01, 1),
            "trust_remote_code": st.booleans(),
            "limit_mm_per_prompt": st.dictionaries(st.just("image") | TEXTS, st.integers(0, 9), max_size=2),
            "chat_template_kwargs": st.dictionaries(st.just("enable_thinking") | TEXTS, VALUES, max_size=2),
            "engine_args": st.dictionaries(st.sampled_from(ENGINE_ARGS), NUMBERS | st.booleans(), max_size=3)
            | st.dictionaries(st.sampled_from(ENGINE_ARGS) | TEXTS, VALUES, max_size=2),
            "artifacts": st.lists(st.fixed_dictionaries({"source": source}), max_size=1),
            "importer": block,
        },
    )
    return made.map(_without_faults).filter(_fits)


def _without_faults(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without the engine's arguments that its version refuses."""
    kept = dict(document.get("engine_args") or {})
    for path, _ in [*argument_check.faults(document["backend"], None, kept)]:
        kept.pop(path[0], None)
    options = [o for o in document.get("options") or () if not o.lstrip().startswith("-")]
    return {**document, "engine_args": kept, "options": options}


def _ending(start: str) -> st.SearchStrategy[str]:
    return (st.sampled_from(("hermes", "none")) | TEXTS).map(lambda end: start + end)


def _fits(document: dict[str, Any]) -> bool:
    try:
        schema.check("document", document, "a document")
        json.dumps(document).encode()
        return not re.search(r"\\ud[89a-f]", json.dumps(document))
    except DocumentError:
        return False


def export(
    name: str, document: dict[str, Any], receipt: Receipt | None = None, *, device: str | None = None
) -> Exported:
    """The export; raises where it is refused."""
    return FORMATS[name].export(document, receipt, Options(device))  # type: ignore[arg-type]


def text(name: str, document: dict[str, Any], **more: Any) -> str:
    """Its one file."""
    (found,) = export(name, document, **more).files.values()
    return found


# Reading back


def commands(script: str) -> list[list[str]]:
    """The commands of a script as a shell splits them, without folders that it makes and conditions."""
    told = re.sub(r"(?m)^#.*\n", "", script)  # a comment never goes on in the next line
    lines = [shlex.split(line, comments=True) for line in told.replace("\\\n", "").split("\n")]
    return [line for line in lines if line and line[0] not in ("set", "mkdir", "if")]


def fetched(repo: str, commit: str, link: str) -> list[list[str]]:
    """The commands that fetch a commit into the Hub's cache, and make a link to it."""
    fetch = ["weights=$(hf", "download", repo, "--revision", commit, "--quiet)"]
    return [fetch, ["ln", "-sfn", "$weights", link]]


def flattened(config: str) -> list[str]:
    """What vLLM makes of its configuration file: a flag for each key, its argument behind it."""
    words: list[str] = []
    for key, value in yaml.safe_load(config).items():
        assert value is not False, "vLLM would drop it"
        assert not isinstance(value, list), "vLLM would split it"
        words += (
            [f"--{key}"]
            if value is True
            else [f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)]
        )
    return words


def apart(words: list[str]) -> list[str]:
    """Flag and argument as two words."""
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]


def in_compose(value: str) -> str:
    """A string after Compose has put variables into it: there must be none."""
    assert re.fullmatch(r"(?:[^$]|\$\$)*", value, re.DOTALL), value
    return value.replace("$$", "$")


def in_a_pod(word: str) -> str:
    """An argument after KServe's Go template and Kubernetes' variables."""
    assert "{{" not in word
    return in_compose(word)


def unescaped(word: str) -> Any:
    """A word with its JSON read: braces may be written as escapes."""
    flag, _, value = word.partition("=")
    return (flag, json.loads(value) if value.startswith("{") else value)


def rebuilt(recipe: dict[str, Any]) -> list[str]:
    """Return the words of the server that a recipe's parts and its strategy stand for."""
    strategy = recipe["default_strategy"]
    change = recipe["strategy_overrides"].get(strategy, {})
    parts = [recipe["model"]["base_args"], change.get("extra_args", [])]
    parts += [feature["args"] for feature in recipe["features"].values()]
    overrides = recipe["variants"]["default"].get("hardware_overrides", {})
    parts += [override["extra_args"] for override in overrides.values()]
    words: list[str] = []
    for word in (word for part in parts for word in part):
        if words and not word.startswith("--") and "=" not in words[-1]:
            words[-1] += f"={word}"
        else:
            words.append(word)
    if strategy == "single_node_tp" and change["tp"] > 1:
        words.append(f"--tensor-parallel-size={change['tp']}")
    return words + (["--enable-expert-parallel"] if strategy.endswith(("tep", "dep")) else [])
