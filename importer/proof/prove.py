"""Ask every parser of an engine to read what a template writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from importer.chat_template.find import Template
from importer.chat_template.samples import Sample, TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.decisions.decision import Target
from importer.engines.parsers import EngineParser, ParserQuestion, ParserWorker, Reading, Replay, Tokens
from importer.hub.snapshot import Snapshot
from importer.proof.judge import judge_reasoning, judge_tool
from importer.proof.result import NO_CALLS, NO_THINKING, ParserVerdict, Proof, ProofReason
from importer.reasons import Reason
from importer.signals.architecture import architectures, model_types
from importer.signals.evidence import Evidence, Rule

WHOLE = ("tokenizer.json", "tokenizer_config.json")


def tokens_of(snapshot: Snapshot, template: Template, vocabulary: Vocabulary) -> tuple[Tokens, bool]:
    """Return the tokenizer's description, and whether it is the repository's own word."""
    config = snapshot.json("tokenizer_config.json")
    folder = snapshot.directory  # the Hub client's cache may hold only some of the listed files
    here = folder if folder is not None and all((folder / f).is_file() for f in WHOLE) else None
    types = model_types(snapshot)
    tokens = Tokens(
        directory=here,
        tokens=tuple((t.content, t.special) for t in vocabulary.tokens),
        eos=vocabulary.named.get("eos_token"),
        bos=vocabulary.named.get("bos_token"),
        chat_template=template.text,
        model_type=types[0] if types else None,
        settings=config,
    )
    return tokens, here is not None or vocabulary.declared


# vLLM 0.32 ``config/model.py``: architecture to tokenizer mode, for modes that bring a renderer; and the tool
# parsers that belong to these renderers, by which a known family is recognised where no config is at hand.
MODES = {
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV4ForConditionalGeneration": "deepseek_v4",
    "DeepseekV41ForCausalLM": "deepseek_v41",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "InklingForCausalLM": "inkling",
    "InklingForConditionalGeneration": "inkling",
}

BY_FAMILY = (Rule.MODEL_TYPE, Rule.FAMILY_TABLE)


def own_renderer(snapshot: Snapshot, facts: Sequence[Evidence], target: Target) -> str | None:
    """Return the tokenizer mode in which the engine renders this model itself, or ``None``."""
    if target.backend != "vllm":
        return None
    told = next(
        (f.value for f in facts if f.key == "engine_args.tokenizer_mode" and f.value == "mistral"), None
    )
    by_type = told or next((MODES[a] for a in architectures(snapshot) if a in MODES), None)
    named = (f.value for f in facts if f.key == "tool_parser" and f.rule in BY_FAMILY)
    return by_type or next((v for v in named if v in MODES.values()), None)


def rendered_by(mode: str, target: Target) -> Reason:
    """Return why a template proves nothing for this model."""
    return Reason(ProofReason.OWN_RENDERER, engine=target.backend, mode=mode)


def unproved(reason: Reason, target: Target, template: str) -> Proof:
    """Return a proof that asked nobody, and says why."""
    unasked = dict.fromkeys(("tool_parser", "reasoning_parser"), reason)
    return Proof(target.backend, str(target.version), template, {}, {}, unasked)


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


def prove(study: TemplateAnalysis, tokens: Tokens, declared: bool, worker: ParserWorker) -> Proof:
    """Return all parsers on all samples, the passing ones in pieces too.

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
    """Return what the engine takes by itself; some take nothing that they are not told."""
    if worker.engine in TOLD:
        return {}
    chosen = worker.infer(tokens)
    return {"tool_parser": chosen.tool, "reasoning_parser": chosen.reasoning}


def _said(study: TemplateAnalysis) -> Iterator[Sample]:
    """Yield the answer without a thought again, the template's variable for it said in the request."""
    for sample in study.samples:
        if sample.case == UNSAID and study.thinking.off:
            yield replace(sample, case=SAID, kwargs={**sample.kwargs, **study.thinking.off})


def _without_reasoning(sample: Sample) -> Sample:
    """Return a tool parser reads what a reasoning parser leaves."""
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

    def ask(self, parser: str) -> ParserQuestion:
        return ParserQuestion(parser) if self.key == "tool_parser" else ParserQuestion(None, parser)


def _verdicts(
    question: _Question, ways: Sequence[Tokens], parsers: Sequence[EngineParser], worker: ParserWorker
) -> tuple[ParserVerdict, ...]:
    """Everybody is asked the needed cases; who reads those is asked all of them, whole and in pieces."""
    found: dict[str, tuple[ParserVerdict, Tokens]] = {}
    for tokens in ways:
        left = [p for p in parsers if p.name not in found or not found[p.name][0].reads]
        first = _read(question.only(question.needed), tokens, left, worker)
        passing = [p for p in left if first[p.name].reads]
        rest = _read(question, tokens, passing, worker) if passing else {}
        found |= {n: (v, tokens) for n, v in (first | rest).items() if n not in found or v.reads}
    streamed = _streamed(question, found, worker)
    return tuple(sorted(streamed, key=lambda v: (not v.reads, *(-m for m in v.merit))))


def _read(
    question: _Question, tokens: Tokens, parsers: Sequence[EngineParser], worker: ParserWorker
) -> dict[str, ParserVerdict]:
    asks = {question.ask(p.name): p for p in _one_per_class(parsers)}
    return {
        parser.name: _verdict(question, parser, readings)
        for ask, readings in worker.read(tokens, question.samples, asks).items()
        for parser in _class_of(asks[ask], parsers)
    }


def _verdict(question: _Question, parser: EngineParser, readings: Sequence[Reading]) -> ParserVerdict:
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
    )


def _streamed(
    question: _Question, found: Mapping[str, tuple[ParserVerdict, Tokens]], worker: ParserWorker
) -> list[ParserVerdict]:
    """Return the passing verdicts with what differs in pieces; streaming removes no parser that reads the
    whole.
    """
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


def _one_per_class(parsers: Sequence[EngineParser]) -> list[EngineParser]:
    """Aliases load one class, so one of them is asked."""
    seen: dict[tuple[str, str], EngineParser] = {}
    for parser in parsers:
        seen.setdefault((parser.module, parser.class_name), parser)
    return list(seen.values())


def _class_of(parser: EngineParser, parsers: Sequence[EngineParser]) -> list[EngineParser]:
    return [p for p in parsers if (p.module, p.class_name) == (parser.module, parser.class_name)]


def _assumed(samples: Sequence[Sample], tokens: Tokens) -> Tokens:
    """Return what looks like a marker in the rendered text is taken as a token, beside what is declared."""
    seen = {content for content, _ in tokens.tokens}
    texts = (text for s in samples for text in (s.prompt, s.completion))
    guessed = dict.fromkeys(m for text in texts for m in MARKER.findall(text) if m not in seen)
    return replace(tokens, tokens=(*tokens.tokens, *((m, False) for m in guessed)), assumed=True)
