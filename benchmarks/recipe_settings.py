"""A command of ``vllm serve`` as settings of a document, and the words of an export to compare them with."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from gen_defaults.recipe_commands import PLACEHOLDER, Flags, flagged
from importer.document.engine_arguments import load as registry

# Flags of ``vllm serve`` with a place of their own in a document; all others are keys of ``engine_args``.
PLACES = {
    "tool-call-parser": "tool_parser",
    "reasoning-parser": "reasoning_parser",
    "default-chat-template-kwargs": "chat_template_kwargs",
    "max-model-len": "max_model_len",
    "tensor-parallel-size": "tensor_parallel_size",
    "gpu-memory-utilization": "gpu_memory_utilization",
    "limit-mm-per-prompt": "limit_mm_per_prompt",
    "trust-remote-code": "trust_remote_code",
    "enforce-eager": "enforce_eager",
    "dtype": "dtype",
    "load-format": "load_format",
}
IMPLIED = ("enable-auto-tool-choice",)  # a tool parser implies it
OURS = (
    "host", "port", "served-model-name", "revision", "tokenizer-revision", "code-revision", "node-rank",
    "headless",
)  # fmt: skip
DRAFTER = "speculative-config"  # may name a second repository, whose commit a document requires
PIN = "0" * 40
# Other names of one flag, as vLLM's parser has them.
ALIASES = {
    "spec-method": ("speculative-config", "method"),
    "spec-tokens": ("speculative-config", "num_speculative_tokens"),
    "spec-model": ("speculative-config", "model"),
}
HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG])")
SIZES = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
SAMPLE = "10.0.0.1"  # an address in place of the one that a person fills in
MODEL = "parameters.model"
SAMPLING = {"repetition_penalty": "repeat_penalty", "max_new_tokens": "max_tokens"}


def values_of(flags: Flags) -> dict[str, Any]:
    """Return the value of each flag by its name without hyphens in front.

    A flag alone is ``True`` and ``--no-NAME`` is ``False`` for NAME; dotted flags are joined into one object.
    """
    values: dict[str, Any] = {}
    for flag, text in flags:
        name, _, rest = flag.lstrip("-").partition(".")
        value: Any = True if text is None else value_of(text)
        if text is None and name.startswith("no-"):
            name, value = name.removeprefix("no-"), False
        name, value = _enabled(name, value)
        if name in ALIASES:
            name, rest = ALIASES[name]
        if rest:
            value = _joined(values.get(name), rest.split("."), value)
        elif isinstance(value, Mapping) and isinstance(values.get(name), Mapping):
            value = {**values[name], **value}
        values[name] = value
    return values


def _enabled(name: str, value: Any) -> tuple[str, Any]:
    """Return ``disable-NAME`` as the opposite of ``enable-NAME``, where the newest vLLM has only that one."""
    known = registry("vllm")
    opposite = name.replace("disable-", "enable-", 1) if name.startswith("disable-") else name
    if known is None or known.get(_key(name)) is not None or known.get(_key(opposite)) is None:
        return name, value
    return opposite, not value if isinstance(value, bool) else value


def _key(flag: str) -> str:
    return flag.replace("-", "_")


def value_of(text: str) -> Any:
    """Return the value of a word: an object, a number, a truth value, else the text."""
    if text.startswith(PLACEHOLDER):
        return SAMPLE
    if text in {"True", "False"}:
        return text == "True"
    if human := HUMAN.fullmatch(text):
        return int(float(human[1]) * SIZES[human[2]])
    try:
        return json.loads(text)
    except ValueError:
        return text


def _joined(value: Any, steps: list[str], inner: Any) -> dict[str, Any]:
    whole = dict(value) if isinstance(value, Mapping) else {}
    if len(steps) == 1:
        return {**whole, steps[0]: inner}
    return {**whole, steps[0]: _joined(whole.get(steps[0]), steps[1:], inner)}


def setting(name: str, value: Any) -> dict[str, Any]:
    """Return one flag as settings of a document."""
    if name in IMPLIED or name in OURS:
        return {}
    if name == "override-generation-config" and isinstance(value, Mapping):
        return {f"parameters.{SAMPLING.get(key, key)}": inner for key, inner in value.items()}
    place = PLACES.get(name)
    return {place or f"engine_args.{name.replace('-', '_')}": value}


def settings(values: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return flags and variables as settings of a document."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        pinned = name == DRAFTER and isinstance(value, Mapping) and "model" in value
        found |= setting(name, {"revision": PIN, **value} if pinned else value)
    return found | {
        f"env.{name}": str(value_of(value) if value.startswith("$") else value) for name, value in env.items()
    }


def read_script(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the flags and the variables of an exported script, whose last line is the command."""
    words = shlex.split(text.replace("\\\n", "").splitlines()[-1])
    start = next(at for at, word in enumerate(words) if word in ("vllm", "-m"))
    variables = dict(word.split("=", 1) for word in words[:start] if "=" in word)
    return values_of(flagged(words[start + 3 :])), variables


def same(left: Any, right: Any) -> bool:
    """Return whether two values are one to vLLM: numbers by value, objects by their members."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return float(left) == float(right)
    return str(left) == str(right)


def without(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the values without these names."""
    left_out = {*names}
    return {name: value for name, value in values.items() if name not in left_out}
