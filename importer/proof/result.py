"""Results of proofs: verdicts on parsers; prompts compared by frontend and form; their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from importer import backends
from importer.chat_template.find import find
from importer.decisions.decision import RUST, Chosen, Decision, PromptVerdict, Target
from importer.decisions.frontends import HF
from importer.decisions.proved import Proved
from importer.engines.deaths import Accident, ParserFailure
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.proof.parser_verdict import JudgeReason, ParserVerdict, ProofReason
from importer.reasons import Fields, Reason, ReasonKind, Text
from importer.sentences import render
from importer.signals.architecture import ENCODERS, MODES, WITHOUT_TEMPLATE, architectures, model_types
from importer.signals.evidence import Evidence, Rule, warning

AUTO = "auto"


class PromptCase(StrEnum):
    """The conversations."""

    PLAIN = "plain"
    SYSTEM = "system"
    TURNS = "turns"
    USER_PARTS = "user-parts"
    SYSTEM_PARTS = "system-parts"
    TOOLS = "tools"
    CALL = "call"
    RESULT_PARTS = "result-parts"
    RESULTS = "results"
    NESTED = "nested"
    REASONING = "reasoning"
    IMAGE = "image"


def _excerpts(what: str) -> Text:
    def text(fields: Fields) -> str:
        where = f"case {fields['case']}: {what.format(**fields)}"
        if fields.get("ours") is None:
            return where
        return f"{where}; expected {fields['ours']!r}, rendered {fields['theirs']!r}"

    text.__doc__ = "case {case}: " + what + "; expected {ours}, rendered {theirs}"
    return text


class PromptDifference(ReasonKind):
    """How an engine's prompt differs from that of transformers, the gravest first.

    Each has ``case`` and ``place``; most have excerpts from the first different character: ``ours`` and
    ``theirs``.
    """

    REFUSED = "case {case}: refused with {words}"
    DROPPED = (_excerpts("{place} is absent from the prompt"),)
    PARTS_PRINTED = (_excerpts("the parts of {place} are printed as data"),)
    MOVED = (_excerpts("the image does not stand between the texts of {place}"),)
    OTHER = (_excerpts("the prompt differs at {place}"),)
    SWITCHED = "case {case}: the engine sets {variable} to {value} by itself"
    FORM = (_excerpts("the same words stand in another form or order at {place}"),)


LOSSES = (
    PromptDifference.REFUSED, PromptDifference.DROPPED, PromptDifference.PARTS_PRINTED,
    PromptDifference.MOVED,
)  # fmt: skip


@frozen
class FormatOutcome:
    """One form of contents: ``of`` conversations, and a finding for each that differs.

    ``applied`` is the form that the engine resolved, where it reports one.
    """

    of: int
    findings: tuple[Reason, ...] = ()
    applied: str | None = None

    @property
    def equal(self) -> int:
        """Return the number of conversations with equal prompts."""
        return self.of - len(self.findings)

    @property
    def losses(self) -> tuple[Reason, ...]:
        """Return the findings in which something is lost."""
        return tuple(f for f in self.findings if f.kind in LOSSES)

    @property
    def weight(self) -> tuple[int, int]:
        """Return the sort key: losses, then all differences."""
        return len(self.losses), len(self.findings)


@frozen
class FrontendPrompts:
    """The prompts of one frontend; ``outcomes`` by form of contents, the engine's default first.

    ``failed`` is the reason why the frontend rendered nothing. ``unseen`` is whether the template shows
    images and the frontend was asked without them: then another form than its own may lose the images.
    """

    frontend: str
    version: str
    outcomes: Mapping[str, FormatOutcome] = field(default_factory=dict)
    failed: Reason | None = None
    unseen: bool = False

    @property
    def best(self) -> str:
        """Return the form that loses the least; the default where none is better."""
        forms = [*self.outcomes][:1] if self.unseen else [*self.outcomes]
        return min(forms, key=lambda form: self.outcomes[form].weight, default=AUTO)

    @property
    def chosen(self) -> FormatOutcome:
        """Return the outcome of the best form."""
        return self.outcomes.get(self.best, FormatOutcome(0))

    def explain(self) -> Iterator[str]:
        """Yield the outcome of each form of contents, and its findings, as lines of text."""
        for form, outcome in self.outcomes.items():
            mark = ", chosen" if form == self.best and len(self.outcomes) > 1 else ""
            yield (
                f"  prompts of {self.frontend} {self.version}, contents {form}{mark}: "
                f"{outcome.equal} of {outcome.of} equal"
            )
            yield from (f"    {render(finding)}" for finding in outcome.findings)
        if self.failed is not None:
            yield f"  prompts of {self.frontend} {self.version}: {render(self.failed)}"


KINDS: Mapping[str, type[ReasonKind]] = {
    kinds.__name__: kinds
    for kinds in (JudgeReason, ProofReason, PromptDifference, PromptVerdict, ParserFailure, Accident)
}


def as_json(value: Any) -> Any:
    """Return a result as receipts hold it: members by name, reasons as kinds with fields and message."""
    if isinstance(value, Reason):
        return value.to_json() | {"message": render(value)}
    if is_dataclass(value):
        return {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: as_json(inner) for name, inner in value.items()}
    return [*map(as_json, value)] if isinstance(value, tuple | list) else value


def from_json(kind: Any, data: Any) -> Any:
    """Return the value of a type from the result of ``as_json``.

    A reason of an unknown kind has its message alone. Raises KeyError for a missing member, and TypeError for
    a value of another type.
    """
    origin, arguments, made = get_origin(kind), get_args(kind), kind
    if NoneType in arguments:
        return None if data is None else from_json(arguments[0], data)
    named = origin is Mapping or kind is Reason or is_dataclass(kind)
    expected: Any = list if origin is tuple else Mapping if named else kind
    if not isinstance(data, expected):
        raise TypeError(f"{type(data).__name__} where {expected.__name__} belongs")
    if kind is Reason:
        parsed = _read(data)
        text = str(data.get("message", ""))
        return parsed if isinstance(parsed, Reason) else Reason(ProofReason.RECORDED, text=text)
    if origin is tuple:
        return tuple(from_json(arguments[0], one) for one in data)
    if origin is Mapping:
        return {name: from_json(arguments[1], inner) for name, inner in data.items()}
    if is_dataclass(kind):
        return made(**{name: from_json(of, data[name]) for name, of in _members(made).items()})
    return data


@cache
def _members(kind: Any) -> Mapping[str, Any]:
    types = get_type_hints(kind)
    return {f.name: types[f.name] for f in fields(kind)}


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_read(item) for item in value)
    if not isinstance(value, Mapping):
        return value
    name, _, kind = str(value.get("kind")).partition(".")
    if name not in KINDS or kind not in {*KINDS[name]}:
        return None
    return Reason(
        KINDS[name](kind), **{k: _read(v) for k, v in value.items() if k not in ("kind", "message")}
    )


SCHEMA = 2  # of a proof's JSON
UNREADABLE = Reason(ProofReason.UNREADABLE)
FIELDS = ("tool_parser", "reasoning_parser")
NO_CALLS, NO_THINKING = Reason(ProofReason.NO_CALLS), Reason(ProofReason.NO_THINKING)
NOTHING = Reason(ProofReason.NOTHING_RENDERED)
RENDERS_NONE: Mapping[str, Reason] = dict(zip(FIELDS, (NO_CALLS, NO_THINKING), strict=True))
SHOWN = 6  # parsers that are named one by one


@frozen
class DerivedTemplate:
    """A response template with which the parser ``hf`` reads every case.

    ``template``  the value of ``response_template`` in a tokenizer's configuration.
    ``fields``    the keys of the document that it serves.
    ``cases``     the names of the cases that it reads.
    """

    template: Mapping[str, object]
    fields: tuple[str, ...]
    cases: tuple[str, ...]


def _verdict_json(verdict: ParserVerdict) -> dict[str, object]:
    """Return the verdict as receipts hold it: texts, and under ``reasons`` their kinds with fields."""
    data = as_json(verdict)
    kinds = {key: data[key] for key in ("failed", "streaming")}
    texts = {
        "failed": {case: render(reason) for case, reason in verdict.failed.items()},
        "streaming": None if verdict.streaming is None else render(verdict.streaming),
    }
    return {**data, "reads": verdict.reads, **texts, "reasons": kinds}


@frozen
class Proof:
    """Every parser of one engine on one template.

    ``verdicts``  by field, the best first; a field without samples has none and a reason in ``unasked``.
    ``assumed``   whether the repository declares no vocabulary, so markers counted as tokens and as text.
    ``written``   the rendered completions, by case.
    ``inferred``  the parsers that an engine infers by itself: field to parser or ``None``.
    ``tools_rendered``  whether offered tools reach the prompt.
    ``frontend``  of vLLM, whose parsers were asked; ``None`` for other engines.
    ``derived``   the template with which ``hf`` was judged; ``None`` where another parser reads the calls.
    ``prompts``   the prompts of each frontend of the engine, beside those of transformers.
    ``renders``   digest of what the template rendered; a template that renders the same is this one.
    ``heeds``     the variables of a request under which a reasoning parser reads the same answer otherwise.
    ``plain``     for a template that shows no reasoning: the reasoning parsers that lose its plain answer.
    ``pairs``     reasoning parser to the tool parsers beside which the server loses more than each alone.
    ``alone``     whether the engine's parsers were asked without the engine.
    ``unloaded``  why the tokenizer on this disk does not load, so that the declared tokens stood for it.
    ``accidents`` answers that this machine spoilt; a proof with any is no use later, and is in no receipt so.
    """

    engine: str
    version: str
    template: str
    verdicts: Mapping[str, tuple[ParserVerdict, ...]]
    written: Mapping[str, str]
    unasked: Mapping[str, Reason] = field(default_factory=dict)
    assumed: bool = False
    inferred: Mapping[str, str | None] = field(default_factory=dict)
    tools_rendered: bool = True
    frontend: str | None = None
    derived: DerivedTemplate | None = None
    prompts: tuple[FrontendPrompts, ...] = ()
    plain: Mapping[str, Reason] = field(default_factory=dict)
    renders: str = ""
    heeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pairs: Mapping[str, Mapping[str, Reason]] = field(default_factory=dict)
    alone: bool = False
    unloaded: str | None = None
    accidents: int = 0

    @property
    def shown(self) -> str:
        """Return the version for people, with a frontend that is not the one in Python."""
        return self.version if self.frontend in (None, "python") else f"{self.version} {self.frontend}"

    @property
    def judge(self) -> str:
        """Return what was asked, for people: the engine, or its parsers alone."""
        return f"parsers of {self.engine}" if self.alone else self.engine

    @property
    def failed(self) -> bool:
        """Return whether the engine's worker failed."""
        return any(reason.kind is ProofReason.ENGINE_FAILED for reason in self.unasked.values())

    def reads(self, key: str) -> list[str]:
        """Return the parsers that read the template, the best first."""
        return [v.parser for v in self.verdicts.get(key, ()) if v.reads]

    def evidence(self) -> list[Evidence]:
        """Return one fact for each field: the parsers that read the template, and the refuted ones."""
        from importer.proof.completeness import equals, incomplete, lost_by_default

        facts = []
        for key in FIELDS:
            verdicts = self.verdicts.get(key, ())
            reads = self.reads(key)
            registered = self._registered(key)
            reason, reasons = self._reason(key, reads), key == "reasoning_parser"
            refuted = {v.parser: v.reason for v in verdicts if v.reason is not None}
            value = Proved(
                reason,
                asked=bool(verdicts),
                reads=reads,
                complete=self._complete(key, registered),
                refuted=refuted | (dict(self.plain) if reasons else {}),
                incomplete=incomplete(registered),
                unjudged={v.parser: v.accident for v in verdicts if v.accident is not None},
                unsettled=[v.parser for v in verdicts if v.unsettled and not v.reads],
                guessed=[v.parser for v in verdicts if v.reads and v.guessed],
                liberal=[v.parser for v in verdicts if v.reads and v.liberal],
                failed={v.parser: dict(v.lost) for v in verdicts if v.reads and v.lost},
                streamed={v.parser: lost for v in verdicts if v.reads and (lost := lost_by_default(v))},
                forbidden={v.parser: v.forbidden for v in verdicts if v.reads and v.forbidden},
                equal=equals(registered),
                pairs=self.pairs if reasons else {},
                infers=key in self.inferred,
                inferred=self.inferred.get(key),
                heeds={k: [*v] for k, v in self.heeds.items()} if reasons else {},
                derived=[] if self.derived is None else list(self.derived.fields),
                tools_rendered=self.tools_rendered,
                alone=self.alone,
            )
            facts.append(Evidence(Rule.PROOF, key, value, f"{self.judge} {self.shown}", reason))
        return facts

    def _registered(self, key: str) -> tuple[ParserVerdict, ...]:
        """Return the verdicts without that on a derived template, which sets no standard for parsers."""
        served = self.derived is not None and key in self.derived.fields
        return tuple(v for v in self.verdicts.get(key, ()) if not served or v.parser != HF)

    def _complete(self, key: str, registered: tuple[ParserVerdict, ...]) -> list[str]:
        """Return the most complete parsers; a derived template precedes those that are all liberal."""
        from importer.proof.completeness import complete

        best = complete(registered)
        liberal = {v.parser for v in registered if v.liberal}
        derived = [HF] if len(registered) < len(self.verdicts.get(key, ())) and HF in self.reads(key) else []
        return [*derived, *best] if all(name in liberal for name in best) else best

    def _reason(self, key: str, reads: list[str]) -> Reason:
        verdicts = self.verdicts.get(key, ())
        if not verdicts:
            unproved = Reason(ProofReason.NOT_PROVED, why=self.unasked.get(key, NOTHING))
            return warning(unproved) if self.failed and key in self.unasked else unproved
        return Reason(
            ProofReason.READ, count=len(reads), of=len(verdicts), field=key, engine=self.engine,
            judge=self.judge, version=self.shown, parsers=tuple(reads[:SHOWN]),
            more=len(reads) > SHOWN, assumed=self.assumed, unloaded=self.unloaded,
        )  # fmt: skip

    def streaming(self, key: str, parser: str | None) -> Reason | None:
        """Return the difference of a parser's readings in pieces, or ``None``."""
        return next((v.streaming for v in self.verdicts.get(key, ()) if v.parser == parser), None)

    def setting(self, parser: str | None) -> Mapping[str, object] | None:
        """Return the template's variables that a document needs for this reasoning parser, or ``None``."""
        found = (v.setting for v in self.verdicts.get("reasoning_parser", ()) if v.parser == parser)
        return next(found, None)

    def to_json(self) -> dict[str, object]:
        """Return the proof as receipts hold it."""
        data = as_json(replace(self, verdicts={}))
        return {
            "schema": SCHEMA,
            **data,
            "verdicts": {key: [*map(_verdict_json, found)] for key, found in self.verdicts.items()},
            "unasked": {key: render(reason) for key, reason in self.unasked.items()},
            "needed": {key: [*found[0].needed] for key, found in self.verdicts.items() if found},
            "reasons": {"unasked": data["unasked"]},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Proof:
        """Return the proof from the result of ``to_json``; raises KeyError, TypeError and ValueError."""
        if data["schema"] != SCHEMA:
            raise ValueError(data["schema"])
        found = from_json(Mapping[str, tuple[Mapping[str, object], ...]], data["verdicts"])
        verdicts = {key: [{**one, **one["reasons"]} for one in listed] for key, listed in found.items()}
        proof: Proof = from_json(cls, {**data, "verdicts": verdicts, **data["reasons"]})
        return proof

    def explain(self) -> Iterator[str]:
        """Yield the rendered completions and the verdict on each parser, as lines of text."""
        yield f"proof on {self.judge} {self.shown}, template {self.template[:12]}"
        for case, text in self.written.items():
            yield f"  {case} writes {text!r}"
        for key, verdicts in self.verdicts.items():
            for v in verdicts:
                outcome = "reads it" if v.reason is None else f"does not: {render(v.reason)}"
                outcome = outcome if v.accident is None else f"was not judged: {render(v.accident)}"
                rest = "; ".join(f"{c}: {render(r)}" for c, r in v.failed.items()) if v.reads else ""
                yield f"  {key} {v.parser} ({v.class_name}) {outcome}" + (f"; but {rest}" if rest else "")
                if v.streaming:
                    yield f"    streaming: {render(v.streaming)}"
                if v.forbidden:
                    yield f"    the engine forbids {v.forbidden}"
                if v.setting:
                    yield f"    under the document's {dict(v.setting)}"
        for key, reason in self.unasked.items():
            yield f"  {key}: not asked: {render(reason)}"
        pairs = ((name, *one) for name, problems in self.pairs.items() for one in problems.items())
        yield from (f"  {name} beside {tool} loses {render(problem)}" for name, tool, problem in pairs)
        for name, reason in self.plain.items():
            yield f"  reasoning_parser {name} reads no plain answer: {render(reason)}"
        for one in self.prompts:
            yield from one.explain()


FORMAT = "engine_args.chat_template_content_format"


KEY = "prompts"


# The conversations that a parser's proof continues: what the model reads before it writes.
BEFORE: Mapping[str, tuple[PromptCase, ...]] = {
    "tool_parser": (PromptCase.TOOLS, PromptCase.CALL, PromptCase.RESULTS, PromptCase.NESTED),
    "reasoning_parser": (PromptCase.PLAIN, PromptCase.SYSTEM, PromptCase.TURNS),
}


GRAVE = (*LOSSES, PromptDifference.OTHER)


HARMONY = "gpt_oss"  # ``renderers/online_renderer.py``: the model type of harmony's library, in any mode
BY_HARMONY = "harmony"


BY_FAMILY = (Rule.MODEL_TYPE, Rule.FAMILY_TABLE)


def own_renderer(snapshot: Snapshot, facts: Sequence[Evidence], target: Target) -> str | None:
    """Return the engine's own renderer for this model, a tokenizer mode or ``harmony``; else ``None``."""
    encoders = backends.of(target.backend).encoders
    if encoders == "architecture":
        first, bare = next(iter(architectures(snapshot)), ""), find(snapshot) is None
        modes = {**ENCODERS, **(WITHOUT_TEMPLATE if bare else {})}
        return next((mode for part, mode in modes.items() if part in first), None)
    if encoders != "mode":
        return None
    mistral = next(
        (f.value for f in facts if f.key == "engine_args.tokenizer_mode" and f.value == "mistral"), None
    )
    by_type = mistral or next((MODES[a] for a in architectures(snapshot) if a in MODES), None)
    named = (f.value for f in facts if f.key == "tool_parser" and f.rule in BY_FAMILY)
    by_type = by_type or (BY_HARMONY if HARMONY in model_types(snapshot) else None)
    return by_type or next((v for v in named if v in MODES.values()), None)


def rendered_by(mode: str, target: Target) -> Reason:
    """Return the reason why a template proves nothing for a model with the engine's own renderer."""
    return Reason(ProofReason.OWN_RENDERER, engine=target.backend, mode=mode)


def is_read(by_itself: Reason | None, target: Target) -> bool:
    """Return whether the engine's parsers read what the template writes, whoever renders the prompt.

    Harmony's library rejects any format but its own, and vLLM's frontend in Rust has it built in.
    """
    return by_itself is None or (by_itself.fields["mode"] == BY_HARMONY and target.frontend != RUST)


def evidence_of(prompts: Sequence[FrontendPrompts], target: Target) -> list[Evidence]:
    """Return the form of contents where the engine's own choice is worse, and a fact about differences."""
    served = serving(prompts, target)
    if served is None:
        return []
    source = f"{served.frontend} {served.version}".strip()
    if served.failed is not None:
        return [Evidence(Rule.PROMPTS, KEY, None, source, warning(served.failed))]
    facts = []
    chosen, own = served.chosen, next(iter(served.outcomes.values()))
    if served.best != AUTO:
        reason = Reason(
            PromptVerdict.FORMAT, engine=source, form=served.best, equal=chosen.equal, of=chosen.of,
            lost=len(own.losses),
        )  # fmt: skip
        facts.append(Evidence(Rule.PROMPTS, FORMAT, served.best, source, reason))
    if chosen.findings:
        value = {"equal": chosen.equal, "of": chosen.of, "lost": len(chosen.losses)}
        facts.append(Evidence(Rule.PROMPTS, KEY, value, source, _differing(chosen, source)))
    return facts


def serving(prompts: Sequence[FrontendPrompts], target: Target) -> FrontendPrompts | None:
    """Return the prompts of the frontend that serves the document, where it was asked."""
    name = f"{target.backend}-{RUST}" if target.frontend == RUST else target.backend
    return next((one for one in prompts if one.frontend == name), None)


def _differing(outcome: FormatOutcome, engine: str) -> Reason:
    order = [*PromptDifference]
    first = min(outcome.findings, key=lambda f: order.index(PromptDifference(f.kind)))
    if not outcome.losses:
        return Reason(PromptVerdict.DIFFER, engine=engine, equal=outcome.equal, of=outcome.of, first=first)
    return Reason(PromptVerdict.LOST, engine=engine, count=len(outcome.losses), of=outcome.of, first=first)


def _is_ordinary(found: Reason, *, calls: bool) -> bool:
    """Return whether a finding is a loss that ordinary requests have."""
    case = found.fields["case"]
    past = case == PromptCase.REASONING and found.kind is PromptDifference.DROPPED
    of_calls = case in (*BEFORE["tool_parser"], PromptCase.RESULT_PARTS, PromptCase.REASONING)
    return found.kind in LOSSES and not past and (calls or not of_calls)


def downgraded(
    decisions: Mapping[str, Decision], prompts: Sequence[FrontendPrompts], target: Target
) -> dict[str, Decision]:
    """Return the decisions; a parser proved behind a prompt that the engine writes otherwise is declared.

    A loss is a warning where ordinary requests have it: not in past reasoning, nor in calls without a parser.
    """
    served = serving(prompts, target)
    found = () if served is None else served.chosen.findings
    changed = dict(decisions)
    calls = decisions["tool_parser"].value is not None
    if KEY in decisions and any(_is_ordinary(f, calls=calls) for f in found):
        marked = (warning(one) if one.kind is PromptVerdict.LOST else one for one in decisions[KEY].why)
        changed[KEY] = replace(decisions[KEY], why=tuple(marked))
    for key, cases in BEFORE.items():
        decision = decisions.get(key)
        grave = next((f for f in found if f.kind in GRAVE and f.fields["case"] in cases), None)
        if served is None or grave is None or not isinstance(decision, Chosen) or decision.status != "proved":
            continue
        why = Reason(PromptVerdict.OTHER_PROMPT, engine=served.frontend, first=grave)
        changed[key] = replace(decision, status="declared", why=(why, *decision.why))
    return changed


def unproved(reason: Reason, target: Target, template: str) -> Proof:
    """Return a proof without verdicts, with its reason."""
    unasked = dict.fromkeys(("tool_parser", "reasoning_parser"), reason)
    return Proof(target.backend, str(target.version), template, {}, {}, unasked, frontend=target.frontend)
