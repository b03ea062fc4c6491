"""Proofs: every parser of an engine reads the samples of a template."""

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
# vLLM 0.32 ``config/model.py``: architecture to tokenizer mode, for modes with a renderer. The values are
# also the tool parsers of these renderers; a known family is recognised by them without a config.
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
KINDS = {"tool_parser": "tool", "reasoning_parser": "reasoning"}
JUDGES = {"tool_parser": judge_tool, "reasoning_parser": judge_reasoning}
# Required cases: a parser that reads the template reads these; the others rank the parsers.
NEEDED = {
    "tool_parser": ("one-call",),
    "reasoning_parser": ("thinking-whole", "thinking-opened"),
}
# A model with reasoning off by default mostly answers without reasoning. Where a parser reads such an answer
# only if the request switches reasoning off, the document must set the template's variable.
OFF_BY_DEFAULT, OFF_BY_REQUEST = "thinking-off", "thinking-off-said"
# Cases that are streamed in every split: one of each shape that parsers are known to lose in pieces.
STREAMED = {
    "one-call", "parallel", "nested", "narrated", "non-ascii", "no-call", "thinking-call",
    "thinking-whole", "thinking-opened", "thinking-off", "thinking-cut", "plain",
}  # fmt: skip
MARKER = re.compile(r"</?[^<>\s/][^<>\n]{0,60}>|\[/?[A-Z_]{3,24}\]|\]<\][a-z]+\[>\[")
CONFIGURED = ("vllm", "vllm-mlx", "sglang")  # engines that are started with the names of their parsers


def tokens_of(snapshot: Snapshot, template: Template, vocabulary: Vocabulary) -> tuple[Tokens, bool]:
    """Return the tokenizer's description, and whether the repository declares it."""
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


def own_renderer(snapshot: Snapshot, facts: Sequence[Evidence], target: Target) -> str | None:
    """Return the tokenizer mode of the engine's own renderer for this model, or ``None``."""
    if target.backend != "vllm":
        return None
    mistral = next(
        (f.value for f in facts if f.key == "engine_args.tokenizer_mode" and f.value == "mistral"), None
    )
    by_type = mistral or next((MODES[a] for a in architectures(snapshot) if a in MODES), None)
    named = (f.value for f in facts if f.key == "tool_parser" and f.rule in BY_FAMILY)
    return by_type or next((v for v in named if v in MODES.values()), None)


def rendered_by(mode: str, target: Target) -> Reason:
    """Return the reason why a template proves nothing for a model with the engine's own renderer."""
    return Reason(ProofReason.OWN_RENDERER, engine=target.backend, mode=mode)


def unproved(reason: Reason, target: Target, template: str) -> Proof:
    """Return a proof without verdicts, with its reason."""
    unasked = dict.fromkeys(("tool_parser", "reasoning_parser"), reason)
    return Proof(target.backend, str(target.version), template, {}, {}, unasked)


def prove(analysis: TemplateAnalysis, tokens: Tokens, declared: bool, worker: ParserWorker) -> Proof:
    """Return the proof of all parsers on all samples, the passing ones in pieces too.

    ``declared`` is whether ``tokens`` are the repository's own list. Without one, a marker counts as one
    token and as plain text in turn, and a parser passes with either.
    Raises EngineError("worker-failed").
    """
    parsers = worker.list()
    version = worker.version()
    by_field = {
        "tool_parser": tuple(_without_reasoning(s) for s in analysis.samples if s.tools),
        "reasoning_parser": (*(s for s in analysis.samples if not s.tools), *_off_by_request(analysis)),
    }
    ways = [tokens] if declared else [_assumed(analysis.samples, tokens), tokens]
    off = (OFF_BY_REQUEST, "plain") if analysis.thinking.default is False else ()
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
        template=analysis.digest,
        verdicts=verdicts,
        written={s.case: s.completion for s in analysis.samples},
        unasked=unasked,
        assumed=not declared,
        inferred=_inferred(worker, ways[0]),
    )


def _inferred(worker: ParserWorker, tokens: Tokens) -> dict[str, str | None]:
    """Return the parsers that the engine infers; empty for engines with configured parsers."""
    if worker.engine in CONFIGURED:
        return {}
    chosen = worker.infer(tokens)
    return {"tool_parser": chosen.tool, "reasoning_parser": chosen.reasoning}


def _off_by_request(analysis: TemplateAnalysis) -> Iterator[Sample]:
    """Yield the answer without reasoning again, with the template's variable for it in the request."""
    for sample in analysis.samples:
        if sample.case == OFF_BY_DEFAULT and analysis.thinking.off:
            yield replace(sample, case=OFF_BY_REQUEST, kwargs={**sample.kwargs, **analysis.thinking.off})


def _without_reasoning(sample: Sample) -> Sample:
    """Return the sample for tool parsers: they read the text behind the reasoning."""
    lead = sample.completion[: sample.lead]
    return replace(sample, prompt=sample.prompt + lead, completion=sample.completion[sample.lead :], lead=0)


@dataclass(frozen=True, slots=True)
class _Question:
    """The samples for one kind of parser, and the required cases."""

    key: str
    samples: tuple[Sample, ...]
    needed: tuple[str, ...]

    def only(self, cases: Iterable[str]) -> _Question:
        chosen = set(cases)
        return replace(self, samples=tuple(s for s in self.samples if s.case in chosen))

    def ask(self, parser: str) -> ParserQuestion:
        return ParserQuestion(parser) if self.key == "tool_parser" else ParserQuestion(None, parser)


def _verdicts(
    question: _Question, ways: Sequence[Tokens], parsers: Sequence[EngineParser], worker: ParserWorker
) -> tuple[ParserVerdict, ...]:
    """Return the verdicts: all parsers on the required cases, passing ones on all, whole and in pieces."""
    verdicts: dict[str, tuple[ParserVerdict, Tokens]] = {}
    for tokens in ways:
        left = [p for p in parsers if p.name not in verdicts or not verdicts[p.name][0].reads]
        first = _read(question.only(question.needed), tokens, left, worker)
        passing = [p for p in left if first[p.name].reads]
        rest = _read(question, tokens, passing, worker) if passing else {}
        verdicts |= {n: (v, tokens) for n, v in (first | rest).items() if n not in verdicts or v.reads}
    streamed = _streamed(question, verdicts, worker)
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
    question: _Question, verdicts_by_parser: Mapping[str, tuple[ParserVerdict, Tokens]], worker: ParserWorker
) -> list[ParserVerdict]:
    """Return the verdicts, the passing ones with differences in pieces; these remove no parser."""
    findings: dict[str, Reason | None] = {}
    verdicts = []
    for verdict, tokens in verdicts_by_parser.values():
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
    differences = []
    for sample, replay in zip(samples, replays, strict=True):
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


def _one_per_class(parsers: Sequence[EngineParser]) -> list[EngineParser]:
    """Return one parser for each class; aliases load the same class."""
    seen: dict[tuple[str, str], EngineParser] = {}
    for parser in parsers:
        seen.setdefault((parser.module, parser.class_name), parser)
    return list(seen.values())


def _class_of(parser: EngineParser, parsers: Sequence[EngineParser]) -> list[EngineParser]:
    return [p for p in parsers if (p.module, p.class_name) == (parser.module, parser.class_name)]


def _assumed(samples: Sequence[Sample], tokens: Tokens) -> Tokens:
    """Return the tokens with texts in the shape of a marker added to the declared ones."""
    seen = {content for content, _ in tokens.tokens}
    texts = (text for s in samples for text in (s.prompt, s.completion))
    guessed = dict.fromkeys(m for text in texts for m in MARKER.findall(text) if m not in seen)
    return replace(tokens, tokens=(*tokens.tokens, *((m, False) for m in guessed)), assumed=True)
