"""Verdicts: parsers read samples whole and in pieces, without and under settings of the document.

Judges of a parser's reading: names and arguments of calls, reasoning and answer.

The effect of a parser: a digest of everything that the proof observes of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.chat_template.learnt_format import unmarked
from importer.chat_template.samples import BLOCKLESS, Sample, SampleCall
from importer.engines.deaths import Accident
from importer.engines.parsers import ParserQuestion, ParserWorker, ReadCall, Reading, Replay
from importer.engines.registries import EngineParser
from importer.engines.tokens import Tokens
from importer.frozen import frozen
from importer.hub.snapshot import mapping
from importer.proof.completeness import attainable, shortfall
from importer.proof.parser_verdict import JudgeReason, ParserVerdict, ProofReason
from importer.reasons import Reason


def judge_tool(sample: Sample, reading: Reading) -> Reason | None:
    """Return the reason why the reading differs from the sample, or ``None``."""
    if reading.error:
        return _stopped(reading.error)
    got: Sequence[ReadCall] = reading.calls
    want = sample.calls
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


def judge_reasoning(sample: Sample, reading: Reading) -> Reason | None:
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


def _reads(read: ReadCall, written: SampleCall, sample: Sample) -> Reason | None:
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


def effect_of(
    samples: Sequence[Sample],
    readings: Iterable[Reading],
    replays: Mapping[str, Replay],
    setting: Mapping[str, object] | None,
) -> str:
    """Return the digest of all that the proof observes of a parser: whole, in pieces, and its grammar."""
    seen: list[Any] = [dict(setting or {})]
    for sample, reading in zip(samples, readings, strict=True):
        seen.append([sample.case, _observed(reading), reading.forbidden is not None])
    for case, replay in sorted(replays.items()):
        examples = [[e.split, _observed(e.reading)] for e in replay.examples]
        seen.append([case, replay.different, replay.count, examples])
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _observed(reading: Reading) -> Any:
    """Return a reading as a client sees it: white space around texts and inside of JSON does not count."""
    if reading.error is not None:
        return "error"
    calls = [[call.name, canonical_arguments(call.arguments)] for call in reading.calls]
    return [calls, (reading.reasoning or "").strip(), (reading.content or "").strip()]


def canonical_arguments(text: str) -> str:
    """Return a call's JSON in one spelling, and any other text as it is."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text


JUDGES = {"tool_parser": judge_tool, "reasoning_parser": judge_reasoning}
# Cases that are streamed in every split: one of each shape that parsers are known to lose in pieces.
STREAMED = {
    "one-call", "parallel", "nested", "narrated", "non-ascii", "no-call", "thinking-call",
    "thinking-whole", "thinking-opened", "thinking-off", "thinking-cut", "plain", "unsaid-thinking",
    "unsaid-plain",
}  # fmt: skip


@frozen
class Question:
    """The samples for one kind of parser, the required cases, and the document's setting for them."""

    key: str
    samples: tuple[Sample, ...]
    needed: tuple[str, ...]
    setting: Mapping[str, object] | None = None

    def only(self, cases: Iterable[str]) -> Question:
        chosen = set(cases)
        return replace(self, samples=tuple(s for s in self.samples if s.case in chosen))

    def ask(self, parser: str) -> ParserQuestion:
        return ParserQuestion(parser) if self.key == "tool_parser" else ParserQuestion(None, parser)


@frozen
class _Read:
    """A verdict with its question, its vocabulary and its readings."""

    verdict: ParserVerdict
    question: Question
    tokens: Tokens
    readings: tuple[Reading, ...] = ()


def ask_parsers(
    questions: Sequence[Question],
    ways: Sequence[Tokens],
    parsers: Sequence[EngineParser],
    worker: ParserWorker,
) -> list[ParserVerdict]:
    """Return the verdicts: all parsers on the required cases, passing ones on all, whole and in pieces.

    The first question is without a setting of the document; a setting counts for parsers that read more
    under it.
    """
    found: dict[str, _Read] = {}
    for tokens in ways:
        left = [p for p in parsers if p.name not in found or not found[p.name].verdict.reads]
        more = _asked(questions[0], tokens, left, worker)
        found |= {name: r for name, r in more.items() if name not in found or r.verdict.reads}
    attained = attainable([r.verdict for r in found.values()])
    for question in questions[1:]:
        lacking = [p for p in parsers if _lacks(found[p.name].verdict, attained)]
        for tokens in ways:
            for name, read in _asked(question, tokens, lacking, worker).items():
                before = found[name].verdict
                if read.verdict.reads and (
                    not before.reads
                    or len(shortfall(read.verdict, attained)) < len(shortfall(before, attained))
                ):
                    found[name] = read
    found = _guessed(found, ways, worker)
    return _streamed(_liberal(found, ways, worker), worker)


def ask_whole(
    question: Question, ways: Sequence[Tokens], parsers: Sequence[EngineParser], worker: ParserWorker
) -> dict[str, ParserVerdict]:
    """Return each parser's verdict on the samples as whole texts; one way of tokens is enough to pass."""
    found: dict[str, ParserVerdict] = {}
    for tokens in ways:
        left = [p for p in parsers if p.name not in found or not found[p.name].reads]
        if left:
            found |= {name: read.verdict for name, read in _read(question, tokens, left, worker).items()}
    return found


def _lacks(verdict: ParserVerdict, attained: frozenset[str]) -> bool:
    return not verdict.reads or bool(shortfall(verdict, attained))


def _asked(
    question: Question, tokens: Tokens, parsers: Sequence[EngineParser], worker: ParserWorker
) -> dict[str, _Read]:
    """Return each parser's reading of the required cases, and where these pass of all."""
    if not parsers:
        return {}
    first = _read(question.only(question.needed), tokens, parsers, worker)
    passing = [p for p in parsers if first[p.name].verdict.reads]
    return first | (_read(question, tokens, passing, worker) if passing else {})


def _read(
    question: Question, tokens: Tokens, parsers: Sequence[EngineParser], worker: ParserWorker
) -> dict[str, _Read]:
    asks = {question.ask(p.name): p for p in _one_per_class(parsers)}
    return {
        parser.name: _Read(_verdict(question, parser, readings), question, tokens, readings)
        for ask, readings in worker.read(tokens, question.samples, asks).items()
        for parser in _class_of(asks[ask], parsers)
    }


def _verdict(question: Question, parser: EngineParser, readings: Sequence[Reading]) -> ParserVerdict:
    judge = JUDGES[question.key]
    judged = {s.case: judge(s, r) for s, r in zip(question.samples, readings, strict=True)}
    needed = (r for s, r in zip(question.samples, readings, strict=True) if s.case in question.needed)
    return ParserVerdict(
        parser=parser.name,
        class_name=parser.class_name,
        passed=tuple(case for case, reason in judged.items() if reason is None),
        failed={case: reason for case, reason in judged.items() if reason is not None},
        needed=tuple(case for case in question.needed if case in judged),
        forbidden=next((r.forbidden for r in needed if r.forbidden), None),
        setting=question.setting,
        default=tuple(s.case for s in question.samples if s.kwargs == (question.setting or {})),
    )


def _guessed(found: Mapping[str, _Read], ways: Sequence[Tokens], worker: ParserWorker) -> dict[str, _Read]:
    """Return the readings, those marked that pass only with markers that are taken for tokens."""
    marked = dict(found)
    for question, names in _by_question(found):
        asks = {question.ask(name): name for name in names}
        needed = question.only(question.needed).samples
        for ask, readings in worker.read(ways[-1], needed, asks).items():
            judged = zip(needed, readings, strict=True)
            if any(JUDGES[question.key](sample, reading) is not None for sample, reading in judged):
                read = marked[asks[ask]]
                marked[asks[ask]] = replace(read, verdict=replace(read.verdict, guessed=True))
    return marked


def _by_question(found: Mapping[str, _Read]) -> Iterator[tuple[Question, list[str]]]:
    """Yield each question with the parsers that pass it under an assumed vocabulary."""
    assumed = [(n, r) for n, r in found.items() if r.tokens.assumed and r.verdict.reads]
    questions = {id(r.question): r.question for _, r in assumed}
    for question in questions.values():
        yield question, [name for name, read in assumed if read.question is question]


def _liberal(found: Mapping[str, _Read], ways: Sequence[Tokens], worker: ParserWorker) -> list[_Read]:
    """Return the readings, those of tool parsers marked that read a call without its markers too."""
    reads = list(found.values())
    one = next((s for r in reads[:1] for s in r.question.samples if s.case == "one-call"), None)
    bare = None if one is None else unmarked(one)
    if bare is None:
        return reads
    liberal: set[str] = set()
    for tokens in ways:
        asks = {r.question.ask(r.verdict.parser): r for r in reads if r.verdict.reads and r.tokens is tokens}
        for ask, (reading,) in worker.read(tokens, [bare], asks).items():
            if judge_tool(bare, reading) is None:
                liberal.add(asks[ask].verdict.parser)
    return [replace(r, verdict=replace(r.verdict, liberal=r.verdict.parser in liberal)) for r in reads]


def _streamed(reads: Sequence[_Read], worker: ParserWorker) -> list[ParserVerdict]:
    """Return the verdicts, the passing ones with differences in pieces; these remove no parser."""
    replays = _replays([read for read in reads if read.verdict.reads], worker)
    verdicts = []
    for read in reads:
        verdict = read.verdict
        if verdict.reads:
            of_class = replays[_place(verdict)]
            verdict = replace(
                verdict,
                streaming=_finding(_sound(read), of_class.values()),
                stepwise=tuple(case for case, replay in of_class.items() if _differs_stepwise(replay)),
                effect=effect_of(read.question.samples, read.readings, of_class, verdict.setting),
            )
        verdicts.append(verdict)
    return verdicts


def _replays(reads: Iterable[_Read], worker: ParserWorker) -> dict[tuple[str, bool], Mapping[str, Replay]]:
    """Return for each class the replays by case; classes that pass the same cases are asked together."""
    first = {_place(read.verdict): read for read in reversed([*reads])}
    together: dict[tuple[object, ...], list[_Read]] = {}
    for read in reversed(first.values()):
        cases = tuple(sample.case for sample in _sound(read))
        together.setdefault((id(read.question), id(read.tokens), cases), []).append(read)
    found: dict[tuple[str, bool], Mapping[str, Replay]] = {}
    for group in together.values():
        asks = {read.question.ask(read.verdict.parser): _place(read.verdict) for read in group}
        sound = _sound(group[0])
        for ask, answer in worker.stream(group[0].tokens, sound, asks).items():
            found[asks[ask]] = {s.case: r for s, r in zip(sound, answer, strict=True)}
    return found


def _place(verdict: ParserVerdict) -> tuple[str, bool]:
    return verdict.class_name, verdict.setting is None


def _sound(read: _Read) -> tuple[Sample, ...]:
    return read.question.only(STREAMED.intersection(read.verdict.passed)).samples


def _differs_stepwise(replay: Replay) -> bool:
    if replay.whole.error is not None:
        return replay.whole.accident is None
    return any(e.split == 0 and e.reading.accident is None for e in replay.examples)


def _finding(samples: Sequence[Sample], replays: Iterable[Replay]) -> Reason | None:
    differences = []
    for sample, replay in zip(samples, replays, strict=True):
        if replay.whole.accident is not None:
            continue
        if replay.whole.error:
            differences.append(Reason(ProofReason.NOT_REPLAYED, case=sample.case, words=replay.whole.error))
        elif replay.different:
            differences.append(
                Reason(
                    ProofReason.SPLITS_DIFFER, case=sample.case, different=replay.different,
                    count=replay.count, split=replay.examples[0].split,
                )
            )  # fmt: skip
    return Reason(ProofReason.WHOLE_ONLY, cases=tuple(differences)) if differences else None


# The cases of a pair: with each of its parts the kind of case that a parser of reasoning alone reads.
PAIRED = {"one-call": BLOCKLESS, "thinking-call": frozenset({"thinking-whole", "thinking-opened"})}


def ask_pairs(
    samples: Mapping[str, Sequence[Sample]],
    tools: Sequence[ParserVerdict],
    thoughts: Sequence[ParserVerdict],
    tokens: Tokens,
    worker: ParserWorker,
) -> dict[str, dict[str, Reason]]:
    """Return for each reasoning parser the tool parsers beside which the server loses a case, and how.

    A case that one of them loses alone is not the pair's. ``samples`` are by the setting of the document,
    reasoning and calls in one text, as the server's composed parser reads them.
    """
    found: dict[str, dict[str, Reason]] = {}
    for setting, written in samples.items():
        alike = [v for v in thoughts if str(v.setting or {}) == setting]
        asks = {
            ParserQuestion(tool.parser, thought.parser): (tool, thought)
            for tool in _first_of_class(tools)
            for thought in _first_of_class(alike)
        }
        paired = [s for s in written if s.case in PAIRED]
        answers = worker.stream(tokens, paired, asks, stepwise=True) if paired and asks else {}
        for ask, replays in answers.items():
            tool, thought = asks[ask]
            problems = (_lost_by_pair(s, r, tool, thought) for s, r in zip(paired, replays, strict=True))
            if problem := next((p for p in problems if p is not None), None):
                for name in (v.parser for v in alike if v.class_name == thought.class_name):
                    mine = found.setdefault(name, {})
                    mine |= {v.parser: problem for v in tools if v.class_name == tool.class_name}
    return found


def _lost_by_pair(
    sample: Sample, replay: Replay, tool: ParserVerdict, thought: ParserVerdict
) -> Reason | None:
    alone = sample.case in (*tool.failed, *tool.stepwise)
    if alone or PAIRED[sample.case].intersection((*thought.failed, *thought.stepwise)):
        return None
    if replay.whole.accident is not None:
        return None
    problem = judge_tool(sample, replay.whole) or judge_reasoning(sample, replay.whole)
    if problem is not None:
        return Reason(ProofReason.CASE, case=sample.case, problem=problem)
    return Reason(ProofReason.STREAMED, case=sample.case) if _differs_stepwise(replay) else None


def _first_of_class(verdicts: Sequence[ParserVerdict]) -> list[ParserVerdict]:
    return [*{v.class_name: v for v in reversed(verdicts)}.values()][::-1]


def _one_per_class(parsers: Sequence[EngineParser]) -> list[EngineParser]:
    """Return one parser for each class; aliases load the same class."""
    seen: dict[tuple[str, str], EngineParser] = {}
    for parser in parsers:
        seen.setdefault((parser.module, parser.class_name), parser)
    return list(seen.values())


def _class_of(parser: EngineParser, parsers: Sequence[EngineParser]) -> list[EngineParser]:
    return [p for p in parsers if (p.module, p.class_name) == (parser.module, parser.class_name)]
