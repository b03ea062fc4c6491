"""Results of a proof: one verdict for each parser, and their form in receipts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from importer.decisions.parsers import HF
from importer.engines.deaths import Accident, ParserFailure
from importer.frozen import frozen
from importer.proof.prompt_result import FrontendPrompts
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import Evidence, Rule


def _calls(number: int) -> str:
    return {0: "no call", 1: "one call"}.get(number, f"{number} calls")


class JudgeReason(ReasonKind):
    """Differences between a reading and its sample."""

    # in the parser's own words
    ERROR = "error", "{words}"
    # possibly caused by a busy or full machine
    ACCIDENT = "accident", "{words}"
    OTHER_COUNT = (
        "other-count",
        lambda fields: f"read {_calls(fields['read'])} where {_calls(fields['stood'])} stood",
    )
    NO_ANSWER = "no-answer", "did not return the answer as content"
    NO_REASONING = "no-reasoning", "read no reasoning"
    OTHER_REASONING = "other-reasoning", "read the reasoning {got}, not {want}"
    NO_CONTENT = "no-content", "left no content"
    OTHER_CONTENT = "other-content", "left the content {got}, not {want}"
    OTHER_NAME = "other-name", "read the name {got}, not {want}"
    NOT_JSON = "not-json", "returned arguments that are no JSON: {got}"
    NOT_AN_OBJECT = "not-an-object", "returned arguments that are no object"
    LOST_ARGUMENT = "lost-argument", "lost the argument {name}"
    OTHER_VALUE = "other-value", "returned {name} = {got}, not {want}"
    INVENTED_ARGUMENT = "invented-argument", "invented the argument {name}"


FIELD_TEXTS = {"tool_parser": "tool parsers", "reasoning_parser": "reasoning parsers"}


def _read_text(fields: Fields) -> str:
    who = ", ".join(fields["parsers"])
    more, vocabulary = " …" if fields["more"] else "", ", vocabulary assumed" if fields["assumed"] else ""
    engine, noun = f"{fields['engine']} {fields['version']}", FIELD_TEXTS[fields["field"]]
    if not fields["count"]:
        none = f"no {noun.removesuffix('s')} of {engine} ({fields['of']} tried)"
        return f"{none} reads what the template writes{vocabulary}"
    read = f"{fields['count']} of {fields['of']} {noun} of {engine} read what the template writes"
    return f"{read}: {who}{more}{vocabulary}"


def _splits(fields: Fields) -> str:
    where = f"cut after token {fields['split']}" if fields["split"] else "token by token"
    return f"{fields['case']}: {fields['different']} of {fields['count']} splits differ, first {where}"


class ProofReason(ReasonKind):
    """Results of a proof, or reasons why there is none."""

    READ = "read", _read_text, "{engine} {version}"
    NOT_PROVED = "not-proved", "not proved: {why}"
    NOTHING_RENDERED = "nothing-rendered", "there was nothing to render"
    NO_CALLS = "no-calls", "the template renders no tool calls", "no calls rendered"
    NO_THINKING = "no-thinking", "the template renders no reasoning", "no reasoning rendered"
    OWN_RENDERER = (
        "own-renderer",
        "{engine} renders this model by its own code ({mode}), not by a template",
    )
    ENGINE_FAILED = "engine-failed", "{problem}"
    CASE = "case", "{case}: {problem}"
    NEAR_MISS = "near-miss", "{parser} would read the calls if {written:and} were {read:and}"
    WHOLE_ONLY = "whole-only", "whole-only ({cases:;})"
    NOT_REPLAYED = "not-replayed", "{case}: not replayed, {words}"
    SPLITS_DIFFER = "splits-differ", _splits
    # of a kind that is unknown here: its text alone
    RECORDED = "recorded", "{text}"


KINDS: Mapping[str, type[ReasonKind]] = {
    kinds.__name__: kinds for kinds in (JudgeReason, ProofReason, Accident, ParserFailure)
}


def recorded(text: str, twin: Any) -> Reason:
    """Return the reason of a receipt from its JSON ``twin``; for an unknown kind, a reason with its text."""
    parsed = _read(twin)
    return parsed if isinstance(parsed, Reason) else Reason(ProofReason.RECORDED, text=text)


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_read(item) for item in value)
    if not isinstance(value, Mapping):
        return value
    name, _, kind = str(value.get("kind")).partition(".")
    if name not in KINDS or kind not in {*KINDS[name]}:
        return None
    return Reason(KINDS[name](kind), **{k: _read(v) for k, v in value.items() if k != "kind"})


FIELDS = ("tool_parser", "reasoning_parser")
NO_CALLS, NO_THINKING = Reason(ProofReason.NO_CALLS), Reason(ProofReason.NO_THINKING)
NOTHING = Reason(ProofReason.NOTHING_RENDERED)
RENDERS_NONE: Mapping[str, Reason] = dict(zip(FIELDS, (NO_CALLS, NO_THINKING), strict=True))
SHOWN = 6  # parsers that are named one by one


@frozen
class ParserVerdict:
    """The verdict on one parser: the passed cases, and the reasons of the failed ones.

    ``needed``     the required cases.
    ``streaming``  the difference when the output arrives in pieces, with the split.
    ``forbidden``  the place where the engine forbids the format that the parser reads.
    ``stepwise``   the cases that differ when the output arrives token by token.
    ``setting``    the template's variables in the document under which the parser reads this much.
    ``liberal``    whether the parser reads the call without its markers too.
    ``effect``     digest of everything observed: parsers of one effect cannot be told apart.
    ``unsettled``  whether a failure is on a guessed block, which refutes no parser with further markers.
    ``guessed``    whether the parser reads only where its markers are tokens, and no file declares any.
    """

    parser: str
    class_name: str
    passed: tuple[str, ...]
    failed: Mapping[str, Reason]
    needed: tuple[str, ...]
    streaming: Reason | None = None
    forbidden: str | None = None
    stepwise: tuple[str, ...] = ()
    setting: Mapping[str, object] | None = None
    liberal: bool = False
    effect: str = ""
    unsettled: bool = False
    guessed: bool = False

    @property
    def reads(self) -> bool:
        """Return whether the parser reads the template: every required case has passed."""
        return bool(self.needed) and not any(case in self.failed for case in self.needed)

    @property
    def reason(self) -> Reason | None:
        """Return the reason why the parser does not read the template, or ``None``."""
        case = next((case for case in self.needed if case in self.failed), None)
        return None if case is None else Reason(ProofReason.CASE, case=case, problem=self.failed[case])

    @property
    def losses(self) -> int:
        """Return the number of cases with a difference in pieces of any size."""
        cases = () if self.streaming is None else self.streaming.fields.get("cases", ())
        return len(cases) if isinstance(cases, tuple) else 1

    def to_json(self) -> dict[str, object]:
        """Return the verdict as receipts hold it: texts, and under ``reasons`` their kinds with fields."""
        streaming = self.streaming
        return {
            "parser": self.parser,
            "class": self.class_name,
            "reads": self.reads,
            "passed": list(self.passed),
            "failed": {case: render(reason) for case, reason in self.failed.items()},
            "streaming": None if streaming is None else render(streaming),
            "forbidden": self.forbidden,
            "stepwise": list(self.stepwise),
            "setting": None if self.setting is None else dict(self.setting),
            "liberal": self.liberal,
            "effect": self.effect,
            "unsettled": self.unsettled,
            "guessed": self.guessed,
            "reasons": {
                "failed": {case: reason.to_json() for case, reason in self.failed.items()},
                "streaming": None if streaming is None else streaming.to_json(),
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], needed: tuple[str, ...]) -> ParserVerdict:
        """Return the verdict from the result of ``to_json``."""
        twins, streaming = data["reasons"], data["streaming"]
        return cls(
            data["parser"],
            data["class"],
            tuple(data["passed"]),
            {case: recorded(text, twins["failed"].get(case)) for case, text in data["failed"].items()},
            needed,
            None if streaming is None else recorded(streaming, twins["streaming"]),
            data["forbidden"],
            tuple(data["stepwise"]),
            data["setting"],
            data["liberal"],
            data["effect"],
            data["unsettled"],
            data["guessed"],
        )


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

    def to_json(self) -> dict[str, object]:
        """Return the template as receipts hold it."""
        return {"template": dict(self.template), "fields": list(self.fields), "cases": list(self.cases)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DerivedTemplate:
        """Return the template from the result of ``to_json``."""
        return cls(data["template"], tuple(data["fields"]), tuple(data["cases"]))


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
    ``near``      where no parser reads the calls: the parser that would, but for the spelling of a marker.
    ``plain``     for a template that shows no reasoning: the reasoning parsers that lose its plain answer.
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
    near: Reason | None = None

    def only(self, has: Callable[[str, str], bool]) -> Proof:
        """Return the proof with the parsers for which ``has`` is true, by field and name."""
        kept = {key: tuple(v for v in vs if has(key, v.parser)) for key, vs in self.verdicts.items()}
        return replace(self, verdicts=kept)

    @property
    def shown(self) -> str:
        """Return the version for people, with a frontend that is not the one in Python."""
        return self.version if self.frontend in (None, "python") else f"{self.version} {self.frontend}"

    @property
    def failed(self) -> bool:
        """Return whether the engine's worker failed."""
        return any(reason.kind is ProofReason.ENGINE_FAILED for reason in self.unasked.values())

    def reads(self, key: str) -> list[str]:
        """Return the parsers that read the template, the best first."""
        return [v.parser for v in self.verdicts.get(key, ()) if v.reads]

    def evidence(self) -> list[Evidence]:
        """Return one fact for each field: the parsers that read the template, and the refuted ones."""
        from importer.proof.completeness import equals, incomplete

        facts = []
        for key in FIELDS:
            verdicts = self.verdicts.get(key, ())
            reads = self.reads(key)
            registered = self._registered(key)
            value = {
                "reads": reads,
                "refuted": {v.parser: v.reason for v in verdicts if v.reason is not None}
                | (dict(self.plain) if key == "reasoning_parser" else {}),
                "asked": bool(verdicts),
                "forbidden": {v.parser: v.forbidden for v in verdicts if v.reads and v.forbidden},
                "liberal": [v.parser for v in verdicts if v.reads and v.liberal],
                "unsettled": [v.parser for v in verdicts if v.unsettled and not v.reads],
                "guessed": [v.parser for v in verdicts if v.reads and v.guessed],
                "failed": {v.parser: dict(v.failed) for v in verdicts if v.reads and v.failed},
                "complete": self._complete(key, registered),
                "incomplete": incomplete(registered),
                "equal": equals(registered),
                "settings": {v.parser: dict(v.setting) for v in verdicts if v.reads and v.setting},
                "near": self.near if key == "tool_parser" else None,
                "tools_rendered": self.tools_rendered,
                "derived": [] if self.derived is None else list(self.derived.fields),
            } | ({"inferred": self.inferred[key]} if key in self.inferred else {})
            value |= {"heeds": {k: [*v] for k, v in self.heeds.items()}} if key == "reasoning_parser" else {}
            engine = f"{self.engine} {self.shown}"
            facts.append(Evidence(Rule.PROOF, key, value, engine, self._reason(key, reads)))
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
            return Reason(ProofReason.NOT_PROVED, why=self.unasked.get(key, NOTHING))
        return Reason(
            ProofReason.READ, count=len(reads), of=len(verdicts), field=key, engine=self.engine,
            version=self.shown, parsers=tuple(reads[:SHOWN]), more=len(reads) > SHOWN, assumed=self.assumed,
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
        return {
            "engine": self.engine,
            "version": self.version,
            "frontend": self.frontend,
            "template": self.template,
            "renders": self.renders,
            "assumed": self.assumed,
            "written": dict(self.written),
            "unasked": {key: render(reason) for key, reason in self.unasked.items()},
            "reasons": {"unasked": {key: reason.to_json() for key, reason in self.unasked.items()}},
            "inferred": dict(self.inferred),
            "tools_rendered": self.tools_rendered,
            "derived": None if self.derived is None else self.derived.to_json(),
            "needed": {k: list(v[0].needed) for k, v in self.verdicts.items() if v},
            "verdicts": {k: [v.to_json() for v in vs] for k, vs in self.verdicts.items()},
            "prompts": [one.to_json() for one in self.prompts],
            "plain": {name: reason.to_json() for name, reason in self.plain.items()},
            "heeds": {name: list(switches) for name, switches in self.heeds.items()},
            "near": None if self.near is None else self.near.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Proof:
        """Return the proof from the result of ``to_json``."""
        twins = data["reasons"]["unasked"]
        verdicts = {
            key: tuple(ParserVerdict.from_json(v, tuple(data["needed"].get(key, ()))) for v in listed)
            for key, listed in data["verdicts"].items()
        }
        return cls(
            data["engine"],
            data["version"],
            data["template"],
            verdicts,
            data["written"],
            {key: recorded(text, twins.get(key)) for key, text in data["unasked"].items()},
            data["assumed"],
            data["inferred"],
            data["tools_rendered"],
            data["frontend"],
            derived=None if data["derived"] is None else DerivedTemplate.from_json(data["derived"]),
            prompts=tuple(map(FrontendPrompts.from_json, data["prompts"])),
            plain={name: recorded("", twin) for name, twin in data["plain"].items()},
            renders=data["renders"],
            heeds={name: tuple(switches) for name, switches in data.get("heeds", {}).items()},
            near=None if data["near"] is None else recorded("", data["near"]),
        )

    def explain(self) -> Iterator[str]:
        """Yield the rendered completions and the verdict on each parser, as lines of text."""
        yield f"proof on {self.engine} {self.shown}, template {self.template[:12]}"
        for case, text in self.written.items():
            yield f"  {case} writes {text!r}"
        for key, verdicts in self.verdicts.items():
            for v in verdicts:
                outcome = "reads it" if v.reason is None else f"does not: {render(v.reason)}"
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
        for name, reason in self.plain.items():
            yield f"  reasoning_parser {name} reads no plain answer: {render(reason)}"
        for one in self.prompts:
            yield from one.explain()
