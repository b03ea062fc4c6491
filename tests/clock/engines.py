"""Readers of what engines write: answers, streams, logs, and what their models say."""

from __future__ import annotations

import json
from types import SimpleNamespace

from gen_defaults.sources import outside, vllm_docs
from importer.app import start_log
from importer.backends import NAMES
from importer.chat_template.samples import Sample, SampleCall
from importer.engines import deaths, log_figures, logs, readiness
from importer.engines.deaths import causes
from importer.proof import verdicts
from importer.validation import (
    calls,
    evidence_sources,
    mutations,
    other_apis,
    proof_check,
    reply,
    tool_markup,
)
from importer.validation.prompts import SUM
from importer.validation.reply import Reply, ToolCall
from tests.clock.repositories import as_is, pieces

DEATHS = tuple(death for name in NAMES for death in deaths.of_backend(name))
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"properties": {"city": {}, "day": {}}}},
}


def signed(text: str) -> None:
    """Every question that is asked of a served text."""
    tool_markup.thinking_markup(text)
    tool_markup.closing_marker(text)
    tool_markup.thinks(text)
    tool_markup.call_markup(text)
    tool_markup.control_token(text, ("<a>",))
    tool_markup.untagged(text)
    tool_markup.undecoded(text)
    tool_markup.outside(text, text[:9])
    tool_markup.drafted(text, "a")
    tool_markup.next_turn(text)
    tool_markup.looks_like_call(text, [TOOL])
    tool_markup.looks_like_call("get_weather" + text, [TOOL])
    tool_markup.gives_argument(text, "city")


def logged(text: str) -> None:
    """Every question that is asked of a log."""
    lines = text.splitlines()
    evidence_sources.complaining(["Traceback (most recent call last)", *lines])
    evidence_sources.complaining(lines)
    [evidence_sources._RAISED.match(line) for line in lines]
    evidence_sources.hidden(text)
    log_figures.read_settings(text)
    log_figures.read_settings(f"non-default args: {{'a': 'b'}}{text}")
    log_figures.read_settings("", text.encode("utf-8", "replace"))


def died(text: str) -> None:
    """What an engine's end may mean."""
    list(causes(logs.bounded(text), DEATHS))
    logs._last_words(logs.bounded(text))
    readiness.RAISED.search(logs.bounded(text))


def streamed(text: str) -> None:
    """A stream cut into small pieces, each an event or a part of one."""
    events = [f"data: {json.dumps({'choices': [{'delta': {'content': p}}]})}\n\n" for p in pieces(text, 64)]
    reply.from_stream([*(e.encode() for e in events), b"data: [DONE]\n\n"])


def call_in_parts(text: str) -> None:
    """A call whose arguments come piece by piece."""
    parts = [{"index": 0, "function": {"arguments": p}} for p in pieces(text, 16)]
    events = [f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [p]}}]})}\n\n" for p in parts]
    reply.from_stream([*(e.encode() for e in events), b"data: [DONE]\n\n"])


def fed(text: str) -> None:
    """Raw bytes, whole and cut."""
    raw = text.encode("utf-8", "replace")
    for chunks in ([raw], [raw[i : i + 7] for i in range(0, len(raw), 7)]):
        list(reply.event_texts(chunks))


def judged(text: str) -> None:
    """What a parser returned for a call."""
    written = SampleCall("f", {"a": text[:50]})
    sample = Sample("one-call", "", "", calls=(written,))
    for arguments in (text, json.dumps({"a": text})):
        read = SimpleNamespace(name="f", arguments=arguments)
        verdicts.judge_tool(sample, SimpleNamespace(calls=[read], content=text, reasoning=text, error=None))


def compared(text: str) -> None:
    """What is held against the template's own rendering."""
    proof_check.as_rendered(text, text)
    proof_check.ENCODED.search(text)
    calls.plain(text)


def changed(text: str) -> None:
    """An answer beside the one that it should be, in each of its parts."""
    call = (ToolCall(0, "a", text, text),)
    own = Reply(text, text, call, "stop")
    for other in (text + text, text[:-9], text[: len(text) // 2] + text, text.swapcase()):
        mutations.told(own, Reply(other, other, call, "stop"))
        mutations.told(own, Reply(other + text, "", (), other))


READERS = (
    ("signs", signed, "validation.tool_markup", 4_000, as_is),
    ("log", logged, "validation.evidence_sources engines.logs engines.log_figures", 4_000, as_is),
    ("a version in a log", start_log.VERSION.search, "app.start_log", 20_000, as_is),
    ("deaths", died, "engines.logs engines.lacking engines.process_group engines.readiness", 4_000, as_is),
    ("stream", streamed, "validation.reply", 10_000, as_is),
    ("a call in parts", call_in_parts, "validation.reply", 5_000, as_is),
    ("events", fed, "validation.reply", 8_000, as_is),
    ("a whole answer", lambda t: reply.from_whole(t.encode("utf-8", "replace")), "validation.reply", 20_000, as_is),
    ("Anthropic's events", lambda t: other_apis.from_events(t.encode("utf-8", "replace")), "validation.other_apis", 8_000, as_is),
    ("what a parser returned", judged, "proof.verdicts proof.prove", 20_000, as_is),
    ("what is proved", compared, "validation.proof_check validation.calls", 8_000, as_is),
    ("an expected word", SUM.answered_by, "validation.prompts", 8_000, as_is),
    ("what is made of an answer", changed, "validation.mutations", 8_000, as_is),
    ("a page of vLLM's docs", lambda t: (list(vllm_docs.tools(t)), list(vllm_docs.reasoning(t))),
     "gen_defaults.sources.vllm_docs", 20_000, as_is),
    ("a file of an archive", lambda t: (outside.from_json(t, "p", "f"), outside.from_yaml(t, "p", "f")),
     "gen_defaults.sources.outside", 8_000, as_is),
)  # fmt: skip
