"""Judges of a parser's reading: names and arguments of calls, reasoning and answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from importer.chat_template.samples import Sample, SampleCall
from importer.engines.deaths import Accident
from importer.hub.snapshot import mapping
from importer.proof.result import JudgeReason
from importer.reasons import Reason


class JudgedCall(Protocol):
    """A call from a parser; ``arguments`` is JSON text."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...


class JudgedReading(Protocol):
    """A parser's reading of one sample."""

    @property
    def calls(self) -> Sequence[JudgedCall]: ...
    @property
    def content(self) -> str | None: ...
    @property
    def reasoning(self) -> str | None: ...
    @property
    def error(self) -> Reason | None: ...


def judge_tool(sample: Sample, reading: JudgedReading) -> Reason | None:
    """Return the reason why the reading differs from the sample, or ``None``."""
    if reading.error:
        return _stopped(reading.error)
    got, want = reading.calls, sample.calls
    if sample.at_least:
        got = [read for read in got if any(_reads(read, written, sample) is None for written in want)]
    if len(got) != len(want):
        return Reason(JudgeReason.OTHER_COUNT, read=len(got), stood=len(want))
    for read, written in zip(got, want, strict=True):
        problem = _reads(read, written, sample)
        if problem:
            return problem
    if not want and sample.content is not None and _text(reading.content) != sample.content:
        return Reason(JudgeReason.NO_ANSWER)
    return None


def judge_reasoning(sample: Sample, reading: JudgedReading) -> Reason | None:
    """Return the reason why reasoning and answer differ from the sample, or ``None``."""
    if reading.error:
        return _stopped(reading.error)
    if sample.reasoning is not None and _text(reading.reasoning) != sample.reasoning:
        got = _text(reading.reasoning)
        if not got:
            return Reason(JudgeReason.NO_REASONING)
        return Reason(JudgeReason.OTHER_REASONING, got=_short(got), want=_short(sample.reasoning))
    if sample.content is not None and _text(reading.content) != sample.content:
        got = _text(reading.content)
        if not got:
            return Reason(JudgeReason.NO_CONTENT)
        return Reason(JudgeReason.OTHER_CONTENT, got=_short(got), want=_short(sample.content))
    return None


def _stopped(error: Reason) -> Reason:
    accident = isinstance(error.kind, Accident)
    return Reason(JudgeReason.ACCIDENT if accident else JudgeReason.ERROR, words=error)


def _reads(read: JudgedCall, written: SampleCall, sample: Sample) -> Reason | None:
    if read.name != written.name:
        return Reason(JudgeReason.OTHER_NAME, got=repr(read.name), want=repr(written.name))
    return _arguments(read.arguments, written, sample)


def _arguments(text: str, written: SampleCall, sample: Sample) -> Reason | None:
    try:
        got = json.loads(text)
    except (ValueError, RecursionError):
        return Reason(JudgeReason.NOT_JSON, got=_short(text))
    if not isinstance(got, dict):
        return Reason(JudgeReason.NOT_AN_OBJECT)
    schema = _schema(sample, written.name) if sample.text_arguments else {}
    for key, value in written.arguments.items():
        if key not in got:
            return Reason(JudgeReason.LOST_ARGUMENT, name=repr(key))
        if not same(got[key], value) and not (
            sample.text_arguments and _as_text(got[key], value, schema.get(key))
        ):
            return Reason(JudgeReason.OTHER_VALUE, name=key, got=_shown(got[key]), want=_shown(value))
    extra = set(got) - set(written.arguments)
    return Reason(JudgeReason.INVENTED_ARGUMENT, name=repr(min(extra))) if extra else None


def same(got: Any, want: Any) -> bool:
    """Return whether two values are equal as JSON; 1 and 1.0 are one number, true and 1 are not."""
    if isinstance(got, bool) or isinstance(want, bool):
        return got is want
    if isinstance(got, Mapping) and isinstance(want, Mapping):
        return got.keys() == want.keys() and all(same(got[k], want[k]) for k in want)
    if isinstance(got, list) and isinstance(want, list):
        return len(got) == len(want) and all(same(g, w) for g, w in zip(got, want, strict=True))
    return bool(got == want)


def _as_text(got: Any, want: Any, schema: Any) -> bool:
    """Return whether a string equals a typed argument as text, where the schema names no other type."""
    declared = schema.get("type") if isinstance(schema, Mapping) else None
    if isinstance(want, str) or not isinstance(got, str) or declared not in (None, "string"):
        return False
    try:
        return got == str(want) or same(json.loads(got), want)
    except (ValueError, RecursionError):
        return False


def _schema(sample: Sample, name: str) -> Mapping[str, object]:
    for tool in sample.tools:
        if tool["function"]["name"] == name:
            return mapping(tool["function"]["parameters"].get("properties"))
    return {}


def _text(value: str | None) -> str:
    return (value or "").strip()


def _shown(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else text[:57] + "…")
