"""Records what engines answer, byte by byte, whole and streamed: ``python -m tests.record_streams ENGINE…``.

Each engine serves the demo model. The answers go to ``fixtures/streams/PACKAGE-VERSION``, those of OpenAI's
responses to ``fixtures/responses/PACKAGE-VERSION``, where the tests of the one reply type read them. Ids and
times are as they came; the served name is made ``model``.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from importer.demo import MODEL
from importer.engines import get, install
from importer.engines.process import serve
from importer.validation import other_apis
from importer.validation.prompts import GREETING, SUM, TWO_CITIES, WEATHER, Prompt
from tests.waiting import PATIENCE

FOLDER = Path(__file__).parent / "fixtures" / "streams"
TOKENS = {"logprobs": True, "top_logprobs": 1}
# What is asked, and what is told the server beyond it.
CASES: Mapping[str, tuple[Prompt, Mapping[str, Any]]] = {
    "greeting": (GREETING, {}), "weather": (WEATHER, {}), "two-cities": (TWO_CITIES, {}),
    "sum-with-tokens": (SUM, TOKENS), "call-cut": (WEATHER, {"max_tokens": 27}),
    "thought-cut": (SUM, {"max_tokens": 4}),
}  # fmt: skip
# Of these, what OpenAI's responses are asked where the engine offers them; the same tokens, other names.
RESPONSES = ("greeting", "weather", "thought-cut")
PARSERS = {
    "mlx": ("json_tools", "think"), "mlx-vlm": ("json_tools", "think"), "vllm-cpu": ("hermes", "qwen3"),
    "vllm-mlx": ("hermes", "qwen3"),
}  # fmt: skip


def record(name: str) -> None:
    """Start the engine, ask everything, stop it."""
    engine = get(name)
    installed = install.need(engine)
    tools, thoughts = PARSERS[name]
    document = {
        "name": "model", "backend": name, "parameters": {"model": "./model", "temperature": 0.0},
        "options": [f"tool_parser:{tools}", f"reasoning_parser:{thoughts}"], "max_model_len": 600,
    }  # fmt: skip
    package = name.removesuffix("-cpu") if name != "mlx" else "mlx-lm"
    folder = FOLDER / f"{package}-{installed.version}"
    with serve(engine, installed.python, document, MODEL) as served:
        for case, (prompt, extra) in CASES.items():
            body = {"model": served.model, "messages": prompt.messages, "max_tokens": 100, "temperature": 0}
            body |= {"tools": prompt.tools} if prompt.tools else {}
            streamed = {"stream": True, "stream_options": {"include_usage": True}}
            for ending, way in (("json", {}), ("sse", streamed)):
                answer = ask(served.port, {**body, **extra, **way})
                keep(folder / f"{case}.{ending}", answer, served.model)
        kept = folder.parents[1] / "responses" / folder.name
        for case in RESPONSES if "responses" in engine.offers else ():
            prompt, extra = CASES[case]
            limit = extra.get("max_tokens", 100)
            asked = {"model": served.model, "max_output_tokens": limit, "temperature": 0, "store": False}
            for ending, stream in (("json", False), ("sse", True)):
                body = {**asked, **other_apis.response_body(prompt), "stream": stream}
                answer = ask(served.port, body, other_apis.RESPONSES.path)
                keep(kept / f"{case}.{ending}", answer, served.model)


def keep(path: Path, answer: bytes, model: str) -> None:
    """Write an answer without the served name, the machine and times."""
    text = answer.replace(json.dumps(model).encode(), b'"model"')
    text = re.sub(rb'("system_fingerprint": "[\d.]+)[^"]*', rb"\1", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(re.sub(rb'"timings":\s*\{[^{}]*\}', b'"timings":{}', text))


def ask(port: int, body: Mapping[str, Any], path: str = "/v1/chat/completions") -> bytes:
    """The answer's bytes."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        return connection.getresponse().read()


if __name__ == "__main__":
    for engine_name in sys.argv[1:]:
        record(engine_name)
