"""The proof of a derived response template: transformers and the engine's ``hf`` parsers read with it.

A derived template is offered only where it is complete: each judged case reads back whole and in every
split, tools and reasoning apart and together. Cases of the proof are joined by variants that no chat template
writes: another function's name, brackets in a value, code in an answer. They find a template that has learnt
the sample in place of the format.

The parser ``hf`` with a derived response template, where no parser reads the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol, runtime_checkable

from importer.chat_template.cases import ANSWER, ONE
from importer.chat_template.samples import Sample, SampleCall, Tool
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.parsers import HF, HF_LIMITS
from importer.engines.parsers import EngineParser, ParserQuestion, ParserWorker, Reading, Replay, Tokens
from importer.frozen import frozen
from importer.proof import verdicts
from importer.proof.completeness import complete
from importer.proof.response_template import ResponseTemplate, derive
from importer.proof.result import DerivedTemplate, ParserVerdict, ProofReason
from importer.proof.verdicts import Question, ask_parsers, judge_reasoning, judge_tool
from importer.reasons import Fields, Reason, ReasonKind
from importer.signals.template_markers import KINDS

SETTING = "response_template"
RENAMED = "lookup_item_v2"
BRACKETS = "Rue (2), {a}: [b]; c=d"
CODE = 'Use f(x), g(y=1), {"name": "x"} or [1, 2];\nh(z) in <b>bold</b>'
# A broken call beside a good one: no delimiter can tell where a text without its end stops.
SPARED = ("broken-beside",)
STREAMED = frozenset({*verdicts.STREAMED, "code"})
TEMPLATE_PROOF_KINDS = {"tool_calls": "tool_parser", "thinking": "reasoning_parser"}


def _derived(fields: Fields) -> str:
    of = f"{fields['engine']} {fields['frontend'] or ''}".strip()
    return f"proved on {of} and transformers: {', '.join(fields['fields'])} hf, {fields['cases']} cases"


class TemplateReason(ReasonKind):
    """Results of a derivation, and what its parser lacks."""

    PROVED = "proved", _derived
    LIMITS = "limits", HF_LIMITS
    NOT_DERIVED = "not-derived", "its chat template shows no format that a response template could read"
    INCOMPLETE = "incomplete", "no derived response template reads every case; {case}: {problem}"


class ReadsTemplates(Protocol):
    """A worker with the parsers of one engine or of one of its frontends."""

    def read(
        self, tokens: Tokens, samples: Sequence[Sample], asks: Iterable[ParserQuestion]
    ) -> Mapping[ParserQuestion, tuple[Reading, ...]]: ...

    def stream(
        self, tokens: Tokens, samples: Sequence[Sample], asks: Iterable[ParserQuestion]
    ) -> Mapping[ParserQuestion, tuple[Replay, ...]]: ...


@runtime_checkable
class ReadsAsTransformers(Protocol):
    """A worker that has transformers' own reader as well, where ``parses`` is true."""

    parses: bool

    def parse_response(self, tokens: Tokens, samples: Sequence[Sample]) -> tuple[Reading, ...]: ...


@frozen
class TemplateProof:
    """A derived template with what failed: case to reason, empty for a complete one.

    ``fields``  the document's keys that it serves: ``tool_parser``, ``reasoning_parser``.
    ``passed``  the cases that were read back, by all readers.
    ``spared``  the reasons of cases that do not count.
    """

    template: ResponseTemplate
    fields: tuple[str, ...]
    passed: tuple[str, ...] = ()
    failed: Mapping[str, Reason] = field(default_factory=dict)
    spared: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return whether every case that counts was read back."""
        return bool(self.passed) and not self.failed

    def to_json(self) -> dict[str, object]:
        """Return the proof as receipts hold it."""
        return {
            "template": dict(self.template),
            "fields": list(self.fields),
            "passed": list(self.passed),
            "failed": {case: reason.to_json() for case, reason in self.failed.items()},
        }


def prove_template(
    analysis: TemplateAnalysis, tokens: Tokens, workers: Sequence[ReadsTemplates]
) -> TemplateProof | None:
    """Return the first complete template, else the one that fails least; ``None`` where none was derived.

    Each of ``workers`` reads with its ``hf`` parsers; one that can run transformers reads with that as well.
    Raises EngineError("worker-failed").
    """
    best: TemplateProof | None = None
    for template in derive(analysis, [text for text, _ in tokens.tokens]):
        proof = _proved(template, analysis, tokens, workers)
        if best is None or len(proof.failed) < len(best.failed):
            best = proof
        if proof.complete:
            break
    return best


def with_template(tokens: Tokens, template: Mapping[str, object] | None) -> Tokens:
    """Return the tokens with this template in the tokenizer's settings."""
    settings = {k: v for k, v in tokens.settings.items() if k != SETTING}
    return replace(tokens, settings=settings if template is None else {**settings, SETTING: template})


def _proved(
    template: ResponseTemplate, analysis: TemplateAnalysis, tokens: Tokens, workers: Sequence[ReadsTemplates]
) -> TemplateProof:
    fields = tuple(key for name, key in TEMPLATE_PROOF_KINDS.items() if name in template["fields"])
    templated = with_template(tokens, template)
    passed: dict[str, None] = {}
    failed: dict[str, Reason] = {}
    for worker in workers:
        if failed and not set(failed) <= set(SPARED):
            break  # one reader's failure refutes the candidate
        for question in _questions(fields, analysis):
            for case, reason in _judged(question, templated, worker):
                if reason is None:
                    passed[case] = None
                else:
                    failed.setdefault(case, reason)
    spared = {case: reason for case, reason in failed.items() if case in SPARED}
    counted = {case: reason for case, reason in failed.items() if case not in SPARED}
    return TemplateProof(template, fields, tuple(c for c in passed if c not in failed), counted, spared)


@frozen
class _Question:
    """Samples for one pair of parsers."""

    ask: ParserQuestion
    samples: tuple[Sample, ...]

    def judge(self, sample: Sample, reading: Reading) -> Reason | None:
        reason = judge_tool(sample, reading) if self.ask.tool else None
        return reason or (judge_reasoning(sample, reading) if self.ask.reasoning else None)


def _questions(fields: Sequence[str], analysis: TemplateAnalysis) -> Iterator[_Question]:
    """Yield the samples for each parser alone, and for both together."""
    tools, reasons = "tool_parser" in fields, "reasoning_parser" in fields
    if tools:
        samples = [_behind_reasoning(s) for s in analysis.samples if s.tools]
        yield _Question(ParserQuestion(HF), (*samples, *variants(samples)))
    if reasons:
        plain = tuple(s for s in analysis.samples if not s.tools)
        yield _Question(ParserQuestion(None, HF), plain)
    if tools and reasons:
        both = tuple(s for s in analysis.samples if s.case == "thinking-call")
        yield _Question(ParserQuestion(HF, HF), both)


def _behind_reasoning(sample: Sample) -> Sample:
    """Return the sample for the tool parser: reasoning belongs to the prompt."""
    lead = sample.completion[: sample.lead]
    return replace(
        sample,
        prompt=sample.prompt + lead,
        completion=sample.completion[sample.lead :],
        lead=0,
        reasoning=None,
    )


def variants(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yield outputs that no chat template was rendered for: see the module."""
    by_case = {s.case: s for s in samples}
    one, parallel, prose = (by_case.get(c) for c in ("one-call", "parallel", "no-call"))
    if one is not None:
        tools = tuple(_renamed(t) for t in one.tools)
        call = SampleCall(RENAMED, ONE.arguments)
        text = one.completion.replace(ONE.name, RENAMED)
        yield replace(one, case="renamed", completion=text, calls=(call,), tools=tools)
    for base in (one, parallel):
        if base is not None and "Paris" in base.completion:
            calls = tuple(
                SampleCall(c.name, {**c.arguments, "city": BRACKETS}) if c == ONE else c for c in base.calls
            )
            text = base.completion.replace("Paris", BRACKETS)
            yield replace(base, case=f"{base.case}-brackets", completion=text, calls=calls)
    if prose is not None and ANSWER in prose.completion:
        yield replace(prose, case="code", completion=prose.completion.replace(ANSWER, CODE), content=CODE)


def _renamed(tool: Tool) -> Tool:
    function = tool["function"]
    return {**tool, "function": {**function, "name": RENAMED}} if function["name"] == ONE.name else tool


def _judged(
    question: _Question, tokens: Tokens, worker: ReadsTemplates
) -> Iterator[tuple[str, Reason | None]]:
    """Yield each case with the reason of its failure: whole, in pieces, by transformers."""
    samples = question.samples
    if not samples:
        return
    sound = []
    for sample, reading in zip(
        samples, worker.read(tokens, samples, [question.ask])[question.ask], strict=True
    ):
        reason = question.judge(sample, reading)
        yield sample.case, reason
        sound += [sample] if reason is None else []
    if len(sound) < sum(s.case not in SPARED for s in samples):
        return  # refuted already
    cut = [s for s in sound if s.case in STREAMED]
    replays = worker.stream(tokens, cut, [question.ask])[question.ask]
    for sample, replay in zip(cut, replays, strict=True):
        yield sample.case, _in_pieces(sample, replay)
    if isinstance(worker, ReadsAsTransformers) and worker.parses:
        for sample, reading in zip(sound, worker.parse_response(tokens, sound), strict=True):
            yield sample.case, _by_transformers(question, sample, reading)


def _in_pieces(sample: Sample, replay: Replay) -> Reason | None:
    if replay.whole.error:
        return Reason(ProofReason.NOT_REPLAYED, case=sample.case, words=replay.whole.error)
    if replay.different:
        return Reason(
            ProofReason.SPLITS_DIFFER, case=sample.case, different=replay.different, count=replay.count,
            split=replay.examples[0].split,
        )  # fmt: skip
    return None


def _by_transformers(question: _Question, sample: Sample, reading: Reading) -> Reason | None:
    """Return the reason of a difference; transformers returns the prompt's own reasoning as well."""
    return question.judge(replace(sample, reasoning=sample.reasoning or None), reading)


def unread(verdicts: Mapping[str, Sequence[ParserVerdict]]) -> bool:
    """Return whether no parser reads the calls; without calls, whether none reads the reasoning.

    A liberal parser reads anything that looks like a call, so it does not count.
    """
    of_field = verdicts.get("tool_parser") or verdicts.get("reasoning_parser") or ()
    liberal = {v.parser for v in of_field if v.liberal}
    return bool(of_field) and not any(name not in liberal for name in complete(of_field))


def parser_as_data(
    analysis: TemplateAnalysis, tokens: Tokens, parsers: Sequence[EngineParser], worker: ParserWorker
) -> DerivedTemplate | None:
    """Return the template for the parser ``hf``; ``None`` without this parser, or without a complete one.

    Raises EngineError("worker-failed").
    """
    if not any(p.name == HF for p in parsers):
        return None
    proof = prove_template(analysis, tokens, [worker])
    if proof is None or not proof.complete:
        return None
    return DerivedTemplate(proof.template, proof.fields, proof.passed)


def judged_as_data(
    data: DerivedTemplate,
    questions: Sequence[Question],
    ways: Sequence[Tokens],
    verdicts: Sequence[ParserVerdict],
    parsers: Sequence[EngineParser],
    worker: ParserWorker,
) -> tuple[ParserVerdict, ...]:
    """Return the verdicts of one field, that on ``hf`` with the template in place of that without.

    It stands last among the parsers that read, for it rejects some requests.

    Raises EngineError("worker-failed").
    """
    of_kind = [p for p in parsers if p.kind == KINDS[questions[0].key] and p.name == HF]
    templated = [with_template(way, data.template) for way in ways]
    others = [v for v in verdicts if v.parser != HF]
    judged = [*others, *ask_parsers(questions, templated, of_kind, worker)]
    return tuple(sorted(judged, key=lambda verdict: not verdict.reads))
