"""Ask every parser of an engine to read what a template writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from importer.engines.parsers import Ask, Parser, ParserWorker, Reading, Replay, Tokens
from importer.proof.judge import judge_reasoning, judge_tool
from importer.proof.reasons import ProofReason
from importer.proof.result import NO_CALLS, NO_THINKING, Proof, Verdict
from importer.reasons import Reason
from importer.template.study import Sample, Study

KINDS = {"tool_parser": "tool", "reasoning_parser": "reasoning"}
JUDGES = {"tool_parser": judge_tool, "reasoning_parser": judge_reasoning}
# Cases without which a parser does not read the template; the others rank those that do.
NEEDED = {
    "tool_parser": ("one-call",),
    "reasoning_parser": ("thinking-whole", "thinking-opened"),
}
# Where a model thinks only when told to, it mostly answers without a thought. A parser that reads such an
# answer only when the request says so needs the template's default said in the document.
UNSAID, SAID = "thinking-off", "thinking-off-said"
# Cases replayed in every split: one of each shape that parsers are known to lose in pieces.
STREAMED = {
    "one-call", "parallel", "nested", "narrated", "non-ascii", "no-call", "thinking-call",
    "thinking-whole", "thinking-opened", "thinking-off", "thinking-cut", "plain",
}  # fmt: skip
MARKER = re.compile(r"</?[^<>\s/][^<>\n]{0,60}>|\[/?[A-Z_]{3,24}\]|\]<\][a-z]+\[>\[")
TOLD = ("vllm", "vllm-mlx")  # engines that infer no parser


def prove(study: Study, tokens: Tokens, declared: bool, worker: ParserWorker) -> Proof:
    """All parsers on all samples, the passing ones in pieces too.

    ``declared`` says whether ``tokens`` are the repository's own list; where it has none, a marker is taken
    as one token and as plain text in turn, and what passes either way passes.
    Raises EngineError("worker-failed").
    """
    parsers = worker.list()
    version = worker.version()
    by_field = {
        "tool_parser": tuple(_without_reasoning(s) for s in study.samples if s.tools),
        "reasoning_parser": (*(s for s in study.samples if not s.tools), *_said(study)),
    }
    ways = [tokens] if declared else [_assumed(study.samples, tokens), tokens]
    off = (SAID, "plain") if study.thinking.default is False else ()
    verdicts = {}
    unasked = {}
    for key, samples in by_field.items():
        if not any(s.case in NEEDED[key] for s in samples):
            unasked[key] = NO_CALLS if key == "tool_parser" else NO_THINKING
            continue
        question = _Question(key, samples, NEEDED[key] + (off if key == "reasoning_parser" else ()))
        verdicts[key] = _verdicts(question, ways, [p for p in parsers if p.kind == KINDS[key]], worker)
    return Proof(
        engine=worker.engine,
        version=version,
        template=study.digest,
        verdicts=verdicts,
        written={s.case: s.completion for s in study.samples},
        unasked=unasked,
        assumed=not declared,
        inferred=_inferred(worker, ways[0]),
    )


def _inferred(worker: ParserWorker, tokens: Tokens) -> dict[str, str | None]:
    """What the engine takes by itself; some take nothing that they are not told."""
    if worker.engine in TOLD:
        return {}
    chosen = worker.infer(tokens)
    return {"tool_parser": chosen.tool, "reasoning_parser": chosen.reasoning}


def _said(study: Study) -> Iterator[Sample]:
    """The answer without a thought again, the template's variable for it said in the request."""
    for sample in study.samples:
        if sample.case == UNSAID and study.thinking.off:
            yield replace(sample, case=SAID, kwargs={**sample.kwargs, **study.thinking.off})


def _without_reasoning(sample: Sample) -> Sample:
    """A tool parser reads what a reasoning parser leaves."""
    lead = sample.completion[: sample.lead]
    return replace(sample, prompt=sample.prompt + lead, completion=sample.completion[sample.lead :], lead=0)


@dataclass(frozen=True, slots=True)
class _Question:
    """What one kind of parser is asked: all samples, and the cases it must read."""

    key: str
    samples: tuple[Sample, ...]
    needed: tuple[str, ...]

    def only(self, cases: Iterable[str]) -> _Question:
        kept = set(cases)
        return replace(self, samples=tuple(s for s in self.samples if s.case in kept))

    def ask(self, parser: str) -> Ask:
        return Ask(parser) if self.key == "tool_parser" else Ask(None, parser)


def _verdicts(
    question: _Question, ways: Sequence[Tokens], parsers: Sequence[Parser], worker: ParserWorker
) -> tuple[Verdict, ...]:
    """Everybody is asked the needed cases; who reads those is asked all of them, whole and in pieces."""
    found: dict[str, tuple[Verdict, Tokens]] = {}
    for tokens in ways:
        left = [p for p in parsers if p.name not in found or not found[p.name][0].reads]
        first = _read(question.only(question.needed), tokens, left, worker)
        passing = [p for p in left if first[p.name].reads]
        rest = _read(question, tokens, passing, worker) if passing else {}
        found |= {n: (v, tokens) for n, v in (first | rest).items() if n not in found or v.reads}
    streamed = _streamed(question, found, worker)
    return tuple(sorted(streamed, key=lambda v: (not v.reads, *(-m for m in v.merit))))


def _read(
    question: _Question, tokens: Tokens, parsers: Sequence[Parser], worker: ParserWorker
) -> dict[str, Verdict]:
    asks = {question.ask(p.name): p for p in _one_per_class(parsers)}
    return {
        parser.name: _verdict(question, parser, readings)
        for ask, readings in worker.read(tokens, question.samples, asks).items()
        for parser in _class_of(asks[ask], parsers)
    }


def _verdict(question: _Question, parser: Parser, readings: Sequence[Reading]) -> Verdict:
    judge = JUDGES[question.key]
    judged = {s.case: judge(s, r) for s, r in zip(question.samples, readings, strict=True)}
    needed = (r for s, r in zip(question.samples, readings, strict=True) if s.case in question.needed)
    return Verdict(
        parser=parser.name,
        class_name=parser.class_name,
        passed=tuple(case for case, reason in judged.items() if reason is None),
        failed={case: reason for case, reason in judged.items() if reason is not None},
        needed=tuple(case for case in question.needed if case in judged),
        forbidden=next((r.forbidden for r in needed if r.forbidden), None),
    )


def _streamed(
    question: _Question, found: Mapping[str, tuple[Verdict, Tokens]], worker: ParserWorker
) -> list[Verdict]:
    """The passing verdicts with what differs in pieces; streaming removes no parser that reads the whole."""
    findings: dict[str, Reason | None] = {}
    verdicts = []
    for verdict, tokens in found.values():
        if not verdict.reads:
            verdicts.append(verdict)
            continue
        if verdict.class_name not in findings:
            sound = question.only(STREAMED.intersection(verdict.passed)).samples
            ask = question.ask(verdict.parser)
            findings[verdict.class_name] = _finding(sound, worker.stream(tokens, sound, [ask])[ask])
        verdicts.append(replace(verdict, streaming=findings[verdict.class_name]))
    return verdicts


def _finding(samples: Sequence[Sample], replays: Iterable[Replay]) -> Reason | None:
    told = []
    for sample, replay in zip(samples, replays, strict=True):
        if replay.whole.error:
            told.append(Reason(ProofReason.NOT_REPLAYED, case=sample.case, words=replay.whole.error))
        elif replay.different:
            told.append(
                Reason(
                    ProofReason.SPLITS_DIFFER, case=sample.case, different=replay.different,
                    count=replay.count, split=replay.examples[0].split,
                )
            )  # fmt: skip
    return Reason(ProofReason.WHOLE_ONLY, cases=tuple(told)) if told else None


def _one_per_class(parsers: Sequence[Parser]) -> list[Parser]:
    """Aliases load one class, so one of them is asked."""
    seen: dict[tuple[str, str], Parser] = {}
    for parser in parsers:
        seen.setdefault((parser.module, parser.class_name), parser)
    return list(seen.values())


def _class_of(parser: Parser, parsers: Sequence[Parser]) -> list[Parser]:
    return [p for p in parsers if (p.module, p.class_name) == (parser.module, parser.class_name)]


def _assumed(samples: Sequence[Sample], tokens: Tokens) -> Tokens:
    """What looks like a marker in the rendered text is taken as a token, beside what is declared."""
    seen = {content for content, _ in tokens.tokens}
    texts = (text for s in samples for text in (s.prompt, s.completion))
    guessed = dict.fromkeys(m for text in texts for m in MARKER.findall(text) if m not in seen)
    return replace(tokens, tokens=(*tokens.tokens, *((m, False) for m in guessed)), assumed=True)
