"""A parser as data: a response template of transformers for calls in the marks that a model writes.

vLLM's parser ``hf`` reads model output by ``response_template`` of the tokenizer's configuration. A model
whose calls stand between marks of its own (``--template as-written``) may have no other parser.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.chat_template.cases import FOLLOW_UP, ONE, QUESTION, RESULT
from importer.chat_template.markers import SHAPE, Marks
from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.frontends import HF
from importer.engines.parsers import ParserWorker
from importer.engines.registries import EngineParser
from importer.engines.tokens import Tokens
from importer.proof.completeness import complete
from importer.proof.parser_verdict import ParserVerdict
from importer.proof.result import DerivedTemplate
from importer.proof.verdicts import Question, ask_parsers
from importer.signals.template_markers import KINDS

SETTING = "response_template"
FIELDS = {"tool_calls": "tool_parser", "thinking": "reasoning_parser"}
SPOKEN = (QUESTION, RESULT, FOLLOW_UP)  # the texts of others that a prompt can end with
SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")  # with a meaning in Python's and in Rust's expressions
MOST_OPENINGS = 32  # braces at which a call may begin; each is read to the text's end


def derive(analysis: TemplateAnalysis, declared: Sequence[str]) -> dict[str, Any] | None:
    """Return the response template for calls that are a JSON object between two marks; ``None`` for others.

    ``declared`` are the tokens of the repository.
    """
    one = next((s for s in analysis.samples if s.case == "one-call"), None)
    call = None if one is None else _call(one, analysis.end_of_turn)
    start = _start(analysis, Marks(declared))
    if call is None or not start:
        return None
    end, thinking = analysis.end_of_turn.strip(), analysis.thinking.markers
    opening, closing = ("", "") if thinking is None else (mark.strip() for mark in thinking)
    thoughts = {"thinking": {"open": opening, "close": closing}} if opening and closing else {}
    content = {"content": {"close": end} if end else {}}
    return {"start_anchor": start, "fields": {**thoughts, **content, "tool_calls": call}}


def _call(sample: Sample, end_of_turn: str) -> dict[str, Any] | None:
    """Return the field of calls, learnt from a call; ``None`` for one without marks around an object."""
    text = sample.behind
    for start, stop, value in _objects(text):
        before = text[:start].strip()
        behind = text[stop:].strip().removesuffix(end_of_turn.strip()).strip()
        key = next((k for k, v in value.items() if v == dict(ONE.arguments)), None)
        if value.get("name") == ONE.name and key is not None and before and behind:
            function = {"name": "{content.name}", "arguments": f"{{content.{key}}}"}
            return {
                "repeats": True,
                "open_pattern": rf"{_escaped(before)}\s*",
                "close_pattern": rf"{_escaped(behind)}\s*",
                "content": "json",
                "transform": {"type": "function", "function": function},
            }
    return None


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the JSON objects in a text with their places."""
    for opening in itertools.islice(re.finditer("{", text), MOST_OPENINGS):
        try:
            value, stop = json.JSONDecoder(strict=False).raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        yield opening.start(), stop, value


def _escaped(text: str) -> str:
    """Return the expression of a text with any white space where it has some; ``re.escape`` is not Rust's."""
    return r"\s*".join(SPECIAL.sub(lambda m: "\\" + m[0], word) for word in text.split())


def _start(analysis: TemplateAnalysis, marks: Marks) -> str:
    """Return the text directly before the model's own, from its last marker on."""
    opening = analysis.thinking.markers[0].strip() if analysis.thinking.markers else ""
    heads = dict.fromkeys(_head(sample.prompt, opening) for sample in analysis.samples)
    shared = functools.reduce(lambda a, b: a if a == b else marks.suffix(a, b), heads, next(iter(heads), ""))
    begins = [marker.start() for marker in SHAPE.finditer(shared)]
    return shared[begins[-1] :] if begins else shared.strip()


def _head(prompt: str, opening: str) -> str:
    """Return the text between the last turn of another and the model's own, or its reasoning."""
    head = prompt[max((at + len(t) for t in SPOKEN if (at := prompt.rfind(t)) >= 0), default=0) :]
    return head.partition(opening)[0].rstrip(" ") if opening else head


def with_template(tokens: Tokens, template: Mapping[str, object] | None) -> Tokens:
    """Return the tokens with this template in the tokenizer's settings."""
    settings = {k: v for k, v in tokens.settings.items() if k != SETTING}
    return replace(tokens, settings=settings if template is None else {**settings, SETTING: template})


def read_as_data(
    analysis: TemplateAnalysis,
    asked: Mapping[str, Sequence[Question]],
    ways: Sequence[Tokens],
    verdicts: Mapping[str, tuple[ParserVerdict, ...]],
    parsers: Sequence[EngineParser],
    worker: ParserWorker,
) -> tuple[DerivedTemplate | None, dict[str, tuple[ParserVerdict, ...]]]:
    """Return the template that makes ``hf`` read the calls, and the verdicts on it in place of those without.

    ``None`` and the same verdicts where another parser reads the calls, or ``hf`` reads none with it. It
    stands last among the parsers that read, for it rejects some requests.
    Raises EngineError("worker-failed").
    """
    named = [parser for parser in parsers if parser.name == HF]
    template = derive(analysis, [text for text, _ in ways[0].tokens]) if named and unread(verdicts) else None
    if template is None:
        return None, dict(verdicts)
    templated = [with_template(way, template) for way in ways]
    found = dict(verdicts)
    for key in (FIELDS[name] for name in template["fields"] if name in FIELDS):
        of_kind = [parser for parser in named if parser.kind == KINDS[key]]
        own = ask_parsers(asked[key], templated, of_kind, worker) if key in asked else []
        found[key] = (*(v for v in verdicts.get(key, ()) if v.parser != HF), *own)
        found[key] = tuple(sorted(found[key], key=lambda verdict: not verdict.reads))
    passed = next((v.passed for v in found["tool_parser"] if v.parser == HF and v.reads), None)
    if passed is None:
        return None, dict(verdicts)
    served = tuple(key for key in asked if key in {FIELDS.get(name) for name in template["fields"]})
    return DerivedTemplate(template, served, passed), found


def unread(verdicts: Mapping[str, Sequence[ParserVerdict]]) -> bool:
    """Return whether no parser reads the calls; a liberal one does not count, for it reads anything."""
    of_calls = verdicts.get("tool_parser", ())
    liberal = {v.parser for v in of_calls if v.liberal}
    return bool(of_calls) and not any(name not in liberal for name in complete(of_calls))
