"""What each adapter says that its server offers, tried on the server itself with the model that ships."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get, log_figures
from importer.engines.base import OFFERS
from importer.engines.install import Installed
from importer.engines.process import EngineServer, serve
from importer.validation.client import Client
from importer.validation.errors import ExchangeError, ReplyError
from importer.validation.other_apis import RESPONSES, from_response_events
from importer.validation.outcome import Pass
from importer.validation.probes.ends import TAIL, judge_truncated_call
from importer.validation.probes.requests import NAMED, REQUIRED
from importer.validation.prompts import COUNT, GREETING, NUMBER, SUM_SILENT, WEATHER, Prompt
from tests.waiting import PATIENCE

pytestmark = pytest.mark.engine
UNTRIED = {"images", "random-weights"}  # no model that sees is at hand; test_fit_engine starts the other
GROUPS = {"mlx": "mlx", "mlx-vlm": "mlx-vlm", "vllm-mlx": "vllm-mlx", "vllm-cpu": "vllm"}
PARSERS = {"mlx": ("json_tools", "<think>"), "mlx-vlm": ("json_tools", "<think>")}
PENALTIES = {"repetition_penalty": 1.6, "presence_penalty": 2.0, "frequency_penalty": 2.0}
# Nothing that the model has learnt: what it writes is unsure, and a penalty changes it.
ODD = tuple(
    Prompt("odd", ({"role": "user", "content": text},))
    for text in ("the cat " * 12, "zz qq 7 7 7 7 7 7 ?", "hello " * 20)
)
# No place for white space, which this model may go on with for ever.
VIOLET: dict[str, Any] = {"type": "string", "enum": ["violet"]}
ONE_WORD = {"type": "json_schema", "json_schema": {"name": "colour", "schema": VIOLET, "strict": True}}


@dataclass(frozen=True)
class Server:
    """A running server, asked greedily unless told otherwise."""

    served: EngineServer

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=PATIENCE)
        with closing(connection):
            sent = None if body is None else json.dumps({"model": self.served.model, **body})
            method = "GET" if sent is None else "POST"
            connection.request(method, path, sent, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode()

    def chat(self, prompt: Prompt, **extra: Any) -> tuple[int, Any]:
        body = {"messages": prompt.messages, "max_tokens": 120, "temperature": 0, **prompt.extra}
        body |= {"tools": prompt.tools} if prompt.tools else {}
        return self.post("/v1/chat/completions", {**body, **extra})

    def message(self, prompt: Prompt, **extra: Any) -> dict[str, Any]:
        status, answer = self.chat(prompt, **extra)
        return answer["choices"][0]["message"] if status == 200 else {}

    def content(self, prompt: Prompt, **extra: Any) -> str:
        return (self.message(prompt, **extra).get("content") or "").strip()

    def written(self, prompt: Prompt, **extra: Any) -> str:
        message = self.message(prompt, **extra)
        return f"{message.get('reasoning') or message.get('reasoning_content')} {message.get('content')}"

    def streamed(self, prompt: Prompt, **extra: Any) -> list[dict[str, Any]]:
        told = {"stream": True, "stream_options": {"include_usage": True}, **extra}
        _, text = self.chat(prompt, **told)
        return [json.loads(line[6:]) for line in str(text).splitlines() if line.startswith("data: {")]


def completions(server: Server) -> bool:
    status, answer = server.post("/v1/completions", {"prompt": "One, two", "max_tokens": 4})
    return status == 200 and bool(answer["choices"][0]["text"])


def tool_choice(server: Server) -> bool:
    forbidding = replace(WEATHER, name="forbidden", extra={"tool_choice": "none"})
    required, named, forbidden = (
        [c["function"]["name"] for c in server.message(p).get("tool_calls") or ()]
        for p in (REQUIRED, NAMED, forbidding)
    )
    return (required, named, forbidden) == (["get_weather"], ["get_time"], [])


def structured(server: Server) -> bool:
    return server.content(GREETING, response_format=ONE_WORD) == '"violet"'


def tokens(server: Server, **extra: Any) -> list[dict[str, Any]]:
    status, answer = server.chat(NUMBER, logprobs=True, top_logprobs=3, **extra)
    return ((answer["choices"][0].get("logprobs") or {}).get("content") or []) if status == 200 else []


def logprobs(server: Server) -> bool:
    found = tokens(server)
    return bool(found) and all(token["logprob"] <= 0 for token in found)


def drawn(server: Server) -> bool:
    """At a high temperature some token is not the likeliest; the text is made of those that were drawn."""
    for _ in range(4):
        status, answer = server.chat(NUMBER, logprobs=True, top_logprobs=3, temperature=1.5)
        choice = answer["choices"][0] if status == 200 else {}
        found = "".join(t["token"] for t in (choice.get("logprobs") or {}).get("content") or ())
        if not found or (choice["message"].get("content") or "").strip() not in found:
            return False
    return True


def usage(server: Server) -> bool:
    whole = server.chat(GREETING)[1].get("usage") or {}
    streamed = next((e["usage"] for e in reversed(server.streamed(GREETING)) if e.get("usage")), {})
    counts = ("prompt_tokens", "completion_tokens")
    return bool(whole) and [whole.get(c) for c in counts] == [streamed.get(c) for c in counts]


def stop(server: Server) -> bool:
    whole = server.content(COUNT, stop=["four"])
    deltas = [c["delta"] for e in server.streamed(COUNT, stop=["four"]) for c in e.get("choices") or ()]
    streamed = "".join(delta.get("content") or "" for delta in deltas).strip()
    return whole == streamed == "One, two, three,"


def bias(server: Server) -> bool:
    """A word of the vocabulary, over and over."""
    number = json.loads((MODEL / "tokenizer.json").read_text())["model"]["vocab"]["weather"]
    written = server.written(GREETING, logit_bias={str(number): 100}, max_tokens=5)
    return written.replace("None", "").replace(" ", "") == "weather" * 5


def seed(server: Server) -> bool:
    """Draws with one seed are alike, and those with several are not."""
    free = {"temperature": 2, "top_k": 0, "top_p": 1}  # whatever the model's own defaults are
    drawn = [server.written(ODD[1], seed=n, **free) for n in (1, 1, 2, 3, 4)]
    return drawn[0] == drawn[1] and len({*drawn}) > 1


def top_k(server: Server) -> bool:
    written = {server.written(NUMBER, temperature=1.5, top_k=1) for _ in range(8)}
    return len(written) == 1


def penalties(server: Server) -> bool:
    plain = [server.written(odd) for odd in ODD]
    return all(
        [server.written(odd, **{name: value}) for odd in ODD] != plain for name, value in PENALTIES.items()
    )


def cut_calls(server: Server) -> bool:
    client, asked = Client(server.served.base_url), {"messages": WEATHER.messages, "tools": WEATHER.tools}
    body = {"model": server.served.model, "temperature": 0, **asked}
    tokens = client.chat(body, []).usage.completion or 0
    for stream in (False, True):
        try:
            cut = client.chat({**body, "max_tokens": tokens - TAIL, "stream": stream}, [])
        except ExchangeError:
            return False
        if not isinstance(judge_truncated_call(cut), Pass):
            return False
    return True


def tools_as_sent(server: Server) -> bool:
    """Keys in another order are other tokens, and as it happens not as many."""
    turned = json.loads(json.dumps(WEATHER.tools, sort_keys=True))
    counts = [
        server.chat(replace(WEATHER, tools=tools), max_tokens=1)[1]["usage"]
        for tools in (WEATHER.tools, turned)
    ]
    one, other = (c.get("prompt_tokens") or c.get("input_tokens") for c in counts)
    return bool(one != other)


def counts(server: Server) -> bool:
    asked = {"messages": GREETING.messages, "max_tokens": 60}
    (one, answer), (other, count) = (
        server.post(path, asked) for path in ("/v1/messages", "/v1/messages/count_tokens")
    )
    return one == other == 200 and count["input_tokens"] == answer["usage"]["input_tokens"]


def tokenize(server: Server) -> bool:
    status, made = server.post("/tokenize", {"prompt": "One, two", "add_special_tokens": False})
    if status != 200:
        return False
    _, back = server.post("/detokenize", {"tokens": made["tokens"]})
    return bool(back["prompt"] == "One, two")


def cached(server: Server) -> bool:
    """The second time; caches keep whole blocks, so the prompt is a long one."""
    asked = replace(ODD[0], messages=({"role": "user", "content": "hello there " * 300},))
    counts = [(server.chat(asked)[1].get("usage") or {}).get("prompt_tokens_details") for _ in range(2)]
    return ((counts[1] or {}).get("cached_tokens") or 0) > 0


def renamed_limit(server: Server) -> bool:
    status, answer = server.chat(COUNT, max_tokens=None, max_completion_tokens=3)
    return status == 200 and answer["choices"][0]["finish_reason"] == "length"


def messages(server: Server) -> bool:
    status, answer = server.post("/v1/messages", {"messages": GREETING.messages, "max_tokens": 60})
    return status == 200 and bool(answer["content"])


def responses(server: Server) -> bool:
    asked = {**RESPONSES.body(GREETING), "max_output_tokens": 60}
    status, answer = server.post(RESPONSES.path, asked)
    _, streamed = server.post(RESPONSES.path, {**asked, "stream": True})
    return (
        status == 200
        and bool(answer["output"])
        and bool(from_response_events(str(streamed).encode()).content)
    )


def call_pieces(server: Server) -> bool:
    _, streamed = server.post(
        RESPONSES.path, {**RESPONSES.body(WEATHER), "max_output_tokens": 120, "stream": True}
    )
    try:
        return bool(from_response_events(str(streamed).encode()).tool_calls)
    except ReplyError:
        return False


def switches(server: Server) -> bool:
    thoughts = (
        server.message(SUM_SILENT, chat_template_kwargs={"enable_thinking": thinks})
        for thinks in (True, False)
    )
    loud, silent = (m.get("reasoning") or m.get("reasoning_content") for m in thoughts)
    return bool(loud) and not silent


def limit(server: Server) -> bool:
    """Longer than the document's context, and shorter than the model's."""
    far = Prompt("far", ({"role": "user", "content": "hello " * 1700},))
    return 400 <= server.chat(far, max_tokens=1)[0] < 500


def metrics(server: Server) -> bool:
    told = log_figures.read_memory(server.served.log)
    return None not in (told.cache, told.tokens)


TRIALS: dict[str, Callable[[Server], bool]] = {
    "completions": completions, "tool-choice": tool_choice, "structured": structured,
    "logprobs": logprobs, "drawn": drawn, "usage": usage, "renamed-limit": renamed_limit, "stop": stop,
    "bias": bias, "seed": seed, "top-k": top_k, "penalties": penalties, "cut-calls": cut_calls,
    "tools-as-sent": tools_as_sent, "tokenize": tokenize, "cached": cached, "messages": messages,
    "counts": counts, "responses": responses, "call-pieces": call_pieces, "switches": switches,
    "limit": limit, "metrics": metrics,
}  # fmt: skip


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    name = request.param
    installed: Installed = request.getfixturevalue(f"{name.removesuffix('-cpu').replace('-', '_')}_engine")
    tools, thoughts = PARSERS.get(name, ("hermes", "qwen3"))
    document = {
        "name": "demo",
        "options": [f"tool_parser:{tools}", f"reasoning_parser:{thoughts}"],
        "max_model_len": 1500,
    }
    with serve(get(name), installed.python, document, MODEL, log_path=tmp_path / "log") as served:
        yield Server(served)


def test_everything_that_may_be_offered_is_tried() -> None:
    assert {*TRIALS} | UNTRIED == {*OFFERS}


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(
            name,
            marks=[pytest.mark.xdist_group(group), *([] if name == "mlx" else [pytest.mark.nightly])],
        )
        for name, group in GROUPS.items()
    ],
    indirect=True,
)  # fmt: skip
def test_an_engine_offers_what_its_adapter_says(server: Server, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["server"]
    found = {offer for offer, tried in TRIALS.items() if tried(server)}
    assert found == get(name).offers - UNTRIED
