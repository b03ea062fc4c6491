"""Proofs: every parser of an engine reads the samples of a template.

Parsers that the samples cannot refute.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from importer import backends
from importer.chat_template.instructed_calls import as_instructed
from importer.chat_template.learnt_format import learn_format
from importer.chat_template.markers import SHAPE
from importer.chat_template.samples import Sample, Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.decision import RUST
from importer.decisions.frontends import HF
from importer.engines import registries
from importer.engines.install import sources_of
from importer.engines.parsers import ParserQuestion, ParserWorker
from importer.engines.registries import EngineParser
from importer.engines.tokens import Tokens
from importer.proof.completeness import complete, ranked
from importer.proof.parser_verdict import ParserVerdict
from importer.proof.response_template import read_as_data
from importer.proof.result import HARMONY, NO_CALLS, NO_THINKING, Proof
from importer.proof.verdicts import Question, ask_pairs, ask_parsers, ask_whole
from importer.reasons import Reason
from importer.signals.name_likeness import plain_name
from importer.signals.tables import shipped
from importer.signals.template_markers import KINDS, closeness, fitting, load_parser_markers

RENDERED = "rendered"  # the source of a block that the template itself writes


def unsettled(
    verdicts: Sequence[ParserVerdict], analysis: TemplateAnalysis, engine: str, key: str
) -> list[ParserVerdict]:
    """Return the verdicts, those marked that the samples cannot refute.

    A template tells earlier turns again, perhaps not as the model writes them. Where no parser reads that,
    one that knows all of its markers may be right. A template that writes no reasoning of its own shows
    markers alone, and not what stands between reasoning and answer: a parser with further markers may be
    right, though it reads no sample.
    """
    thinking, kind = analysis.thinking, KINDS[key]
    text = "".join(s.prompt + s.completion for s in analysis.samples)
    calls = learn_format(analysis.samples) if kind == "tool" else None
    needed = calls.markers if calls is not None else ()
    if kind == "reasoning":
        needed = tuple(SHAPE.findall(" ".join(thinking.markers or ())))
    open_ones: set[str] = set()
    if not any(verdict.reads for verdict in verdicts):
        open_ones = {*fitting(engine, kind, needed, text)}
    if kind == "reasoning" and needed and thinking.source != RENDERED:
        known = load_parser_markers(engine, kind)
        open_ones |= {
            name
            for name, parser in known.items()
            if all(marker in parser.markers for marker in needed) and parser.strangers(text)
        }
    asked = NEEDED[key]
    return [replace(v, unsettled=v.parser in open_ones and _fails_first_on(asked, v)) for v in verdicts]


def _fails_first_on(asked: Sequence[str], verdict: ParserVerdict) -> bool:
    failed = [case for case in verdict.needed if case in verdict.lost]
    return bool(failed) and all(case in asked for case in failed)


# Required cases: a parser that reads the template reads these; the others rank the parsers.
NEEDED = {"tool_parser": ("one-call",), "reasoning_parser": ("thinking-whole", "thinking-opened")}
# A model with reasoning off by default mostly answers without reasoning. Where a parser reads such an answer
# only if the request switches reasoning off, the document must set the template's variable.
OFF_BY_DEFAULT, OFF_BY_REQUEST = "thinking-off", "thinking-off-said"
PLAIN = "plain"  # the answer of a template without a switch
SWITCHES = ("enable_thinking", "thinking")  # the names that clients send to most models
MARKER = re.compile(r"</?[^<>\s/][^<>\n]{0,60}>|\[/?[A-Z_]{3,24}\]|\]<\][a-z]+\[>\[")


def prove(
    analysis: TemplateAnalysis, tokens: Tokens, declared: bool, worker: ParserWorker, *, derives: bool = False
) -> Proof:
    """Return the proof of all parsers on all samples, the passing ones in pieces too.

    ``declared`` is whether ``tokens`` are the repository's own list. Without one, a marker counts as one
    token and as plain text in turn, and a parser passes with either. With ``derives``, where no parser reads
    the calls, ``hf`` is judged with a response template of the analysis.
    Raises EngineError("worker-failed").
    """
    analysis = as_instructed(analysis)
    worker.accidents, worker.unloaded = 0, None
    parsers = worker.list()
    version = worker.version()
    # Harmony's one parser reads a whole answer; others read the text behind the reasoning.
    whole = tokens.model_type == HARMONY and worker.engine == backends.VLLM.name
    by_field = {
        "tool_parser": tuple(s if whole else _without_reasoning(s) for s in analysis.samples if s.tools),
        "reasoning_parser": _answers(analysis.samples, analysis.thinking),
    }
    settings = {
        "tool_parser": (),
        "reasoning_parser": tuple(
            (setting.kwargs, _answers(setting.samples, analysis.thinking)) for setting in analysis.settings
        ),
    }
    preferred = _preferred(analysis, worker.engine)
    ways = [tokens] if declared else [_assumed(analysis.samples, tokens), tokens]
    off = (OFF_BY_REQUEST, PLAIN) if analysis.thinking.default is False else ()
    verdicts: dict[str, tuple[ParserVerdict, ...]] = {}
    questions_of: dict[str, list[Question]] = {}
    unasked = {}
    plain: dict[str, Reason] = {}
    for key, samples in by_field.items():
        if not any(s.case in NEEDED[key] for s in samples):
            unasked[key] = NO_CALLS if key == "tool_parser" else NO_THINKING
            if key == "reasoning_parser":
                plain = _losing_plain(analysis, ways, parsers, worker)
            continue
        question = Question(key, samples, NEEDED[key] + (off if key == "reasoning_parser" else ()))
        questions = [question, *(replace(question, samples=s, setting=k) for k, s in settings[key])]
        of_kind = [p for p in parsers if p.kind == KINDS[key]]
        asked = ask_parsers(questions, ways, of_kind, worker)
        asked = unsettled(asked, analysis, worker.engine, key)
        verdicts[key] = ranked(asked, preferred[key], _rarity(worker.engine, key, asked))
        questions_of[key] = questions
    data = None
    if derives:
        data, verdicts = read_as_data(analysis, questions_of, ways, verdicts, parsers, worker)
    thoughts = [v for v in verdicts.get("reasoning_parser", ()) if v.reads and v.parser != HF]
    best = set(complete(verdicts.get("tool_parser", ()))) - {HF}
    tools = [v for v in verdicts.get("tool_parser", ()) if v.parser in best]
    texts = {"{}": analysis.samples, **{str(s.kwargs): s.samples for s in analysis.settings}}
    together = {} if worker.frontend == RUST else ask_pairs(texts, tools, thoughts, ways[0], worker)
    return Proof(
        engine=worker.engine,
        version=version,
        template=analysis.digest,
        verdicts=verdicts,
        written={s.case: s.completion for s in analysis.samples},
        unasked=unasked,
        assumed=not declared,
        inferred=_inferred(worker, ways[0]),
        tools_rendered=analysis.tools_rendered,
        frontend=worker.frontend,
        derived=data,
        plain=plain,
        renders=analysis.renders,
        heeds=_heeded(analysis, ways[0], verdicts.get("reasoning_parser", ()), worker),
        pairs=together,
        alone=sources_of(worker.python) is not None,
        unloaded=worker.unloaded,
        accidents=worker.accidents,
    )


def _heeded(
    analysis: TemplateAnalysis, tokens: Tokens, verdicts: Sequence[ParserVerdict], worker: ParserWorker
) -> dict[str, tuple[str, ...]]:
    """Return for each reasoning parser that reads the template the variables that it listens to.

    The same answers are read under each value of a switch; those of the template, and the usual names.
    """
    if not backends.of(worker.engine).by_flag:
        return {}
    own = {one.name: one.values for one in analysis.variables}
    names = dict.fromkeys((*SWITCHES, *own))
    settings = [(name, value) for name in names for value in own.get(name, (True, False))]
    under: list[dict[str, object]] = [{}, *({name: value} for name, value in settings)]
    asked = [
        s
        for s in analysis.samples
        if not s.tools and s.case in (*NEEDED["reasoning_parser"], OFF_BY_DEFAULT, PLAIN)
    ]
    samples = [replace(sample, kwargs=kwargs) for sample in asked for kwargs in under]
    questions = {ParserQuestion(None, v.parser): v.parser for v in verdicts if v.reads and v.parser != HF}
    found: dict[str, tuple[str, ...]] = {}
    for question, readings in worker.read(tokens, samples, questions).items() if questions else ():
        heard: dict[str, None] = {}
        for at in range(0, len(readings), len(under)):
            plain, *others = readings[at : at + len(under)]
            pairs = zip(settings, others, strict=True)
            heard |= dict.fromkeys(name for (name, _), other in pairs if other != plain)
        found[questions[question]] = tuple(heard)
    return found


def _losing_plain(
    analysis: TemplateAnalysis, ways: Sequence[Tokens], parsers: Sequence[EngineParser], worker: ParserWorker
) -> dict[str, Reason]:
    """Return the reasoning parsers that lose the plain answer of a template that shows no reasoning."""
    thinking = analysis.thinking
    plain = tuple(s for s in analysis.samples if s.case == PLAIN)
    if thinking.markers is not None or thinking.switch is not None or not plain:
        return {}
    question = Question("reasoning_parser", plain, (PLAIN,))
    of_kind = [p for p in parsers if p.kind == KINDS["reasoning_parser"]]
    found = ask_whole(question, ways, of_kind, worker)
    return {name: v.reason for name, v in found.items() if v.reason is not None}


def _preferred(analysis: TemplateAnalysis, engine: str) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return for each field how close the parsers' markers are to the format."""
    text = "".join(s.prompt + s.completion for s in analysis.samples)
    calls = learn_format(analysis.samples)
    block = SHAPE.findall(" ".join(analysis.thinking.markers or ()))
    return {
        "tool_parser": closeness(engine, "tool", calls.markers if calls is not None else (), text),
        "reasoning_parser": closeness(engine, "reasoning", block, text),
    }


def _rarity(engine: str, key: str, verdicts: Sequence[ParserVerdict]) -> dict[str, tuple[int, ...]]:
    """Return for each parser the versions of the engine without it, and its families as a negative number."""
    registered = [registries.load(engine, version) for version in registries.versions(engine)]
    families = Counter(plain_name(row.parsers.get(key) or "") for row in shipped().rows)
    return {
        name: (
            sum(not registry.has(KINDS[key], name) for registry in registered),
            -families[plain_name(name)],
        )
        for name in (verdict.parser for verdict in verdicts)
    }


def _inferred(worker: ParserWorker, tokens: Tokens) -> dict[str, str | None]:
    """Return the parsers that the engine infers; empty for engines with configured parsers."""
    if backends.of(worker.engine).by_flag:
        return {}
    chosen = worker.infer(tokens)
    return {"tool_parser": chosen.tool, "reasoning_parser": chosen.reasoning}


def _answers(samples: Iterable[Sample], thinking: Thinking) -> tuple[Sample, ...]:
    """Return the samples for reasoning parsers.

    The answer without reasoning stands twice: as is, and with the template's variable for it in the request.
    """
    found = [s for s in samples if not s.tools]
    off = [
        replace(s, case=OFF_BY_REQUEST, kwargs={**s.kwargs, **(thinking.off or {})})
        for s in found
        if s.case == OFF_BY_DEFAULT and thinking.off
    ]
    return (*found, *off)


def _without_reasoning(sample: Sample) -> Sample:
    """Return the sample for tool parsers: they read the text behind the reasoning."""
    lead = sample.completion[: sample.lead]
    return replace(sample, prompt=sample.prompt + lead, completion=sample.behind, lead=0)


def _assumed(samples: Sequence[Sample], tokens: Tokens) -> Tokens:
    """Return the tokens with texts in the shape of a marker added to the declared ones."""
    seen = {content for content, _ in tokens.tokens}
    texts = (text for s in samples for text in (s.prompt, s.completion))
    guessed = dict.fromkeys(m for text in texts for m in MARKER.findall(text) if m not in seen)
    return replace(tokens, tokens=(*tokens.tokens, *((m, False) for m in guessed)), assumed=True)
