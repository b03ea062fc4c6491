"""transformers' own reading of an output by a response template, in the engine's environment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from transformers.utils.chat_parsing import parse_response

from .replay import reading
from .wire import attempt


def parse_responses(request: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the readings of all samples by the template in the tokenizer's settings."""
    template = request["tokenizer"]["settings"]["response_template"]
    yield [attempt(request["limit"], lambda: _parsed(template, s)) for s in request["samples"]]  # noqa: B023


def _parsed(template: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    message = parse_response(
        sample["completion"], template, prefix=sample["prompt"], tools=[*sample["tools"]] or None
    )
    calls = message.get("tool_calls") or []
    listed = [call for group in calls for call in (group if isinstance(group, list) else [group])]
    functions = [call["function"] for call in listed]
    return reading(
        [(f["name"], _text(f["arguments"])) for f in functions],
        message.get("thinking"),
        message.get("content"),
    )


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
