"""Decisions on parsers: by the user, then by proof over declared names, then by names alone, else unknown.

The proof refutes names and chooses among them. It cannot show that a model was trained to call tools or
to think. So a family known to have none wins over a proof with losses, and yields to a parser of the engine
that reads every call of a template with a place for tools. Both are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from importer.chat_template.conventions import AS_WRITTEN, FILE, OWN_CALLS
from importer.chat_template.samples import BLOCKLESS, IRREGULAR, OF_ONE_VALUE, Thinking
from importer.decisions.decision import (
    Chosen,
    Decision,
    KnownNone,
    Preferences,
    RejectedCandidate,
    Target,
    Undecided,
    WeighReason,
    by_user,
    ranked,
    status_of,
)
from importer.decisions.frontends import HF, NOUNS, TOOL, elsewhere
from importer.decisions.proved import Proved
from importer.reasons import Fields, Reason, ReasonKind
from importer.signals.evidence import TASKS, Evidence, Rule, Source, Status, warning
from importer.signals.reasons import of_kind

SHOWN_BY_TEMPLATE = (Rule.TEMPLATE_FORMAT, Rule.TEMPLATE_INSTRUCTIONS)
ALIKE = (Rule.TYPE_LINE, Rule.TYPE_NAME, Rule.NAME_LIKE)
NAMED_BY_FAMILY = (Rule.FAMILY_TABLE, Rule.BASE_MODEL_FAMILY)


def _templates(fields: Fields) -> str:
    names = " or ".join(fields["templates"])
    return f"a chat template of importer's own ({names}) would offer it tools"


class ForeignReason(ReasonKind):
    """Reasons for parsers under an override of the model's own template."""

    TOOLS_GIVEN = "the user gives it tools with a chat template; it said: {said}"
    GIVEN = (
        "read from another chat template ({template}), so it shows nothing about the model",
        "template {template}",
    )
    OWN = "the calls are the model's own, in a changed template ({template})", "template {template}"
    WOULD_OFFER = (_templates,)


def under_override(
    key: str, template: str, claims: Sequence[Evidence], decide: Callable[[Sequence[Evidence]], Decision]
) -> Decision:
    """Return the decision under the user's template: evidence for *no tools* is overruled.

    A convention keeps the model's own turns, and with them its reasoning.
    """
    if key != "tool_parser":
        return _declared(decide(claims), template) if template == FILE else decide(claims)
    silent = [e for e in claims if e.value is None]
    decision = decide([e for e in claims if e.value is not None])
    lost = tuple(
        RejectedCandidate(None, e.source, Reason(ForeignReason.TOOLS_GIVEN, said=e.reason)) for e in silent
    )
    return _declared(replace(decision, overruled=decision.overruled + lost), template)


def _declared(decision: Decision, template: str) -> Decision:
    if not isinstance(decision, Chosen) or decision.status == "user":
        return decision
    kind = ForeignReason.OWN if template in (OWN_CALLS, AS_WRITTEN) else ForeignReason.GIVEN
    return replace(decision, status="declared", why=(Reason(kind, template=template), *decision.why))


def with_offer(decision: Decision, target: Target) -> Decision:
    """Return the decision; for a model without tools, with a note on conventions that would offer some."""
    if decision.value is not None or not target.templates:
        return decision
    offer = Reason(ForeignReason.WOULD_OFFER, templates=target.templates)
    return replace(decision, why=(*decision.why, offer))


def _forbidden(fields: Fields) -> str:
    grammar = f"the grammar of {fields['engine']} for this parser rejects the template's calls"
    says = f"{grammar}: it forbids {fields['words']}"
    free = ", ".join(fields["free"])
    return f"{says}; without that limit, and reading the template too: {free}" if free else says


def _takes_another(fields: Fields) -> str:
    """{engine} chooses by itself and takes {parser} for this template; {label}, or what follows."""
    taken = f"{fields['engine']} chooses by itself and takes {fields['parser'] or 'none'} for this template, "
    return taken + (fields.get("label") or "so a validation will show what it leaves unread")


def _fails(fields: Fields) -> str:
    parser, cases = fields["parser"], fields["cases"]
    if fields["thought"]:
        return f"{parser} takes an answer without a reasoning block for reasoning, so its content is null"
    count = "a case" if len(cases) == 1 else f"{len(cases)} cases"
    return f"{parser} fails {count}, {', '.join(cases)}: {fields['problem']}"


class ParserReason(ReasonKind):
    """Reasons why a parser was chosen, refuted or left out."""

    SILENT = of_kind("{of} neither calls tools nor reasons, so it gets no parser"), "no chat"
    LOWER_PRECEDENCE = "a rule of lower precedence"
    USER_REFUTED = "the proof refutes it: {problem}"
    PROOF_AGREES = "the proof agrees"
    NOT_REGISTERED = (lambda fields: f"{fields['engine']} has no {NOUNS[fields['field']][0]} of that name",)
    KNOWN_TO_HAVE_NONE = "{source} knows this family to have none"
    READ_NOT_TRAINED = "a template that {parsers} can read does not show that the model was trained for it"
    READS_EVERY_CALL = (
        "the tables know of no tools in this family; its template offers them, and {parser} reads every call",
        "against the tables",
    )
    REFUTED = "refuted: {problem}"
    CALLS_UNREAD = (
        "the template offers tools, and no parser of {engine} is made for its calls: they stay in the content"
    )
    NOT_JUDGED = "this machine kept {parsers:and} from a verdict: {problem}"
    NONE_READS = "no parser of {engine} reads what the template writes"
    BEATEN = "{problem}"
    SAME_EFFECT = "whole, streamed and in the grammar, the results of {parsers:and} are the same"
    TOOLS_UNSEEN = "the template never shows the tools, and no other evidence names a parser"
    UNSETTLED = "the template writes the markers of {parser}, so a failure is no proof against it: {problem}"
    ONLY_LIBERAL = (
        "these read almost anything that looks like a call, and nothing else speaks for one of them"
    )
    FORBIDDEN = (_forbidden,)
    TAKEN_BY_ITSELF = "{engine} takes it by itself"
    TAKES_ANOTHER = (_takes_another,)
    LABELLED = "for {file} has {quote}; take this key out of the served copy"
    THINKS_OPENED = "the generation prompt opens a reasoning block with {marker}, so the model thinks"
    THINKS_SWITCHED = "the template switches reasoning by {switch}, so the model thinks"
    FAILS = (_fails,)
    FAILS_STREAMED = "{parser} loses {cases:and} where the answer is streamed token by token"
    SWITCH_UNTRIED = (
        "no engine at hand shows whether {parser} follows the template's switch {switch}; if not, an "
        "answer without thinking has null content"
    )
    PAIR_LOSES = "{parser} beside {tool_parser} loses an answer: {problem}"
    LOSES_PLAIN = "the template shows no reasoning, and its plain answer is lost: {problem}"


def _nothing_known_text(fields: Fields) -> str:
    noun, verb = NOUNS[fields["field"]]
    nothing = f"nothing known says how this model would {verb}, so no {noun} is set"
    return "; ".join((*fields["notes"], nothing))


class Unavailable(ReasonKind):
    """Reasons for a missing proof or parser."""

    NOTHING_KNOWN = (_nothing_known_text,)
    NOTHING_RENDERED = "not proved: there was nothing to render"
    NOT_RUN_HERE = "not proved: the importer does not run {engine}, so its parsers were not asked"
    NOT_INSTALLED = "not proved: {engine} is not installed, so its own parsers did not read the template"
    NOT_KNOWN = "not proved: importer does not know the parsers of {engine} {version}"
    NOT_FETCHED = "not proved: {problem}"


SILENT_KINDS = TASKS | {"base", "guard", "ocr", "translation"}
LATER = Reason(ParserReason.LOWER_PRECEDENCE)
WRITTEN = ("rendered", "prompt")  # the template itself writes reasoning, or the beginning of it


def decide_parser(
    key: str,
    facts: Sequence[Evidence],
    preferences: Preferences,
    target: Target,
    kind: str,
    thinking: Thinking | None = None,
    tool: object = None,
) -> Decision:
    """Return the parser for ``key`` (``tool_parser`` or ``reasoning_parser``) on ``target``.

    ``thinking`` is the reasoning that the template shows; ``None`` for a template that was not rendered.
    ``tool`` is the tool parser that a reasoning parser is beside.
    """
    claims = ranked(e for e in facts if e.rule.names_parsers)
    beside = (_beside(e.value, tool) for e in facts if e.rule is Rule.PROOF)
    proof = next((_with_own(key, e, claims, target, thinking) for e in beside), None)
    if key in preferences.values:
        return _user(preferences.values[key], claims, proof)
    if (no_chat := no_parser(kind)) is not None:
        return KnownNone((no_chat,), _others(None, claims, no_chat))
    seen = next((e for e in facts if e.rule is Rule.OBSERVED and e.key == key), None)
    if preferences.template is not None:
        given = under_override(
            key, preferences.template, claims, lambda c: _by_evidence(key, facts, c, proof, target)
        )
        return _observed(given, seen, target)
    shown = _shown_calls(proof) if key == "tool_parser" else _shown_reasoning(thinking)
    by_name = (*NAMED_BY_FAMILY, Rule.MODEL_TYPE)
    contradicted = [e for e in claims if shown is not None and e.value is None and e.rule in by_name]
    claims = [e for e in claims if e not in contradicted]
    tokenless = {e.value: e for e in facts if e.rule is Rule.LACKING_TOKENS}
    if tokenless and all(e.value in tokenless for e in claims if e.value is not None):
        lost = tuple(RejectedCandidate(e.value, e.source, e.reason) for e in tokenless.values())
        return Undecided(tuple(warning(one.why) for one in lost), lost)
    claims = [e for e in claims if e.value not in tokenless]
    sign = next((e for e in facts if e.rule is Rule.THINKING_SIGN), None)
    doubted = [] if sign is None or shown is not None else [e for e in claims if _doubted(e, sign)]
    claims = [e for e in claims if e not in doubted]
    if sign is not None and doubted and not any(e.rule not in SHOWN_BY_TEMPLATE for e in claims):
        known = any(e.rule is Rule.FAMILY_TABLE for e in doubted)  # no parser here reads its thoughts
        why = sign.reason if known else warning(sign.reason)
        return Undecided((why, *(e.reason for e in doubted)), _loadable(key, claims, target)[1])
    decision = _by_evidence(key, facts, claims, proof, target)
    if key != "tool_parser":
        decision = _unread(decision, thinking, None if shown is not None else sign)
    family = any(e.value == decision.value and e.rule in NAMED_BY_FAMILY for e in claims)
    if thinking is not None and thinking.switch is None and family:
        decision = _always_thinking(decision)
    if thinking is not None and (proof is None or not proof.asked):
        decision = _untried(decision, thinking, key, target)
    if shown is not None and contradicted:
        lost = tuple(RejectedCandidate(None, e.source, shown) for e in contradicted)
        against = (shown,) if key == "tool_parser" else ()
        decision = replace(decision, why=(*decision.why, *against), overruled=decision.overruled + lost)
    return decision if key != "tool_parser" else _observed(with_offer(decision, target), seen, target)


def no_parser(kind: str) -> Reason | None:
    """Return why a kind of model gets no parser; ``None`` for one that chats."""
    return Reason(ParserReason.SILENT, of=kind) if kind in SILENT_KINDS else None


def _observed(decision: Decision, seen: Evidence | None, target: Target) -> Decision:
    """Return the decision with what the live model showed: its own calls count more than its template's form.

    ``hf`` reads by what is derived from the template, so another template's stays out.
    """
    if seen is None:
        return decision
    if seen.value is None:
        return replace(decision, why=(seen.reason, *decision.why))
    if decision.value == seen.value and isinstance(decision, Chosen):
        return replace(decision, status="observed", why=(seen.reason, *decision.why))
    if seen.value == HF or not target.has(seen.key, str(seen.value)):
        return replace(decision, why=(*decision.why, seen.reason))
    lost = RejectedCandidate(decision.value, Source.PROOF, seen.reason)
    return Chosen(seen.value, "observed", (seen.reason,), (lost, *decision.overruled))


def _untried(decision: Decision, thinking: Thinking, key: str, target: Target) -> Decision:
    """Return the decision; where no proof shows that the parser follows the switch, with that reason.

    It is a warning for engines that never run here: elsewhere an installation of the engine settles it.
    """
    if key == "tool_parser" or decision.value is None or thinking.switch is None or thinking.markers is None:
        return decision
    reason = Reason(ParserReason.SWITCH_UNTRIED, parser=decision.value, switch=thinking.switch)
    return replace(decision, why=(*decision.why, reason if target.runs else warning(reason)))


def _unread(decision: Decision, thinking: Thinking | None, sign: Evidence | None) -> Decision:
    """Return the decision, with a warning where no parser reads reasoning that the template writes, or that
    signs speak for.
    """
    if sign is not None and isinstance(decision, Undecided):
        return replace(decision, why=(warning(sign.reason), *decision.why))
    if thinking is None or thinking.source not in WRITTEN:
        return decision
    unread = [reason.kind is ParserReason.NONE_READS for reason in decision.why]
    if not isinstance(decision, Undecided) or not any(unread):
        return decision
    why = (warning(r) if one else r for r, one in zip(decision.why, unread, strict=True))
    return replace(decision, why=tuple(why))


def _always_thinking(decision: Decision) -> Decision:
    """Return the decision; without a switch the model of such a family writes no answer without thoughts, so
    that the parser loses one is no warning.
    """
    told = [(reason, cast("Reason", reason.fields.get("reason", reason))) for reason in decision.why]
    why = [
        one if one.kind is ParserReason.FAILS and one.fields["thought"] else reason for reason, one in told
    ]
    return replace(decision, why=tuple(why))


def _doubted(none: Evidence, sign: Evidence) -> bool:
    """Return whether signs of thinking stand against a claim of no parser.

    The family of the model's own name yields to that name alone; what a base model or a model type is known
    for yields to whatever the repository itself says.
    """
    if none.value is not None:
        return False
    if none.rule is Rule.FAMILY_TABLE:
        return "name" in sign.value
    return none.rule in SHOWN_BY_TEMPLATE or set(sign.value) != {"block"}


def _shown_calls(proof: Proved | None) -> Reason | None:
    """Return what stands against a family without tools: a parser that loses no call of a sound model."""
    if proof is None or not proof.asked or not proof.tools_rendered:
        return None
    weak = {HF, *proof.liberal, *proof.guessed}
    sound = (n for n in proof.complete if n not in weak and {*proof.failed.get(n, ())} <= IRREGULAR)
    first = next(sound, None)
    return None if first is None else Reason(ParserReason.READS_EVERY_CALL, parser=first)


def _shown_reasoning(thinking: Thinking | None) -> Reason | None:
    """Return what of the template proves that the model thinks: an opened block, a switch, or ``None``."""
    if thinking is None or thinking.markers is None:
        return None
    if thinking.opened:
        return Reason(ParserReason.THINKS_OPENED, marker=thinking.markers[0])
    if thinking.switch is not None:
        return Reason(ParserReason.THINKS_SWITCHED, switch=thinking.switch)
    return None


def _by_evidence(
    key: str, facts: Sequence[Evidence], claims: Sequence[Evidence], proof: Proved | None, target: Target
) -> Decision:
    """Return the decision by declared names and proof, without a value of the user."""
    usable, lacking = _loadable(key, claims, target)
    lossy = _losing_plain(usable, proof)
    usable = [e for e in usable if e.value not in lossy]
    lost_plain = tuple(
        RejectedCandidate(e.value, e.source, lossy[e.value]) for e in claims if e.value in lossy
    )
    none = next((e for e in claims if e.value is None and e.rule in NAMED_BY_FAMILY), None)
    families = [e.rule.rank for e in usable if e.rule in NAMED_BY_FAMILY]  # the own name before base models
    if none is not None and not any(rank < none.rule.rank for rank in families):
        known = _known_none(none, claims, proof)
        unread = key == TOOL and proof is not None and _calls_unread(proof)
        lost_calls = warning(Reason(ParserReason.CALLS_UNREAD, engine=target.backend))
        return replace(known, why=(*known.why, lost_calls)) if unread else known
    if proof is not None and proof.asked:
        return _proved(key, usable, claims, proof, target, lacking)
    note = _unproved(target) if proof is None else proof.reason
    usable = [e for e in usable if not _ambiguous(key, e, usable, target)]
    if usable:
        first = usable[0]
        lost = _others(first.value, claims, LATER, lossy) + lacking + lost_plain
        return Chosen(first.value, status_of(first.rule), (*_agreeing(first, usable), note), lost)
    silent = next((e for e in claims if e.value is None), None)
    if silent is not None:
        rest = [e for e in claims if e.value not in lossy]
        known = _known_none(silent, rest, None)
        return replace(known, overruled=known.overruled + lost_plain)
    notes = tuple(e.reason for e in facts if e.rule is Rule.TEMPLATE)
    nothing = Reason(Unavailable.NOTHING_KNOWN, notes=notes, field=key)
    return Undecided((nothing, note), lacking + lost_plain)


def _losing_plain(usable: Sequence[Evidence], proof: Proved | None) -> dict[Any, Reason]:
    """Return the declared parsers that lose the plain answer of a template that shows no reasoning."""
    if proof is None or proof.asked:
        return {}
    refuted = proof.refuted
    return {
        e.value: Reason(ParserReason.LOSES_PLAIN, problem=refuted[e.value])
        for e in usable
        if e.value in refuted
    }


def _user(value: object, claims: Sequence[Evidence], proof: Proved | None) -> Decision:
    lost = _others(value, claims, Reason(WeighReason.USER_DECIDES))
    notes: tuple[Reason, ...] = ()
    if proof is not None and value is not None:
        refuted = proof.refuted.get(str(value))
        if refuted:
            notes = (warning(Reason(ParserReason.USER_REFUTED, problem=refuted)),)
        elif value in proof.unjudged:
            notes = _not_judged(proof, str(value))
        elif value in proof.pair:
            notes = (warning(proof.pair[str(value)]),)
        elif value in proof.reads:
            notes = (Reason(ParserReason.PROOF_AGREES),)
    return by_user(value, lost, notes)


def _loadable(
    key: str, claims: Sequence[Evidence], target: Target
) -> tuple[list[Evidence], tuple[RejectedCandidate, ...]]:
    """Return the claims with parsers that this engine version has, and the rejected others."""
    usable = [e for e in claims if e.value is not None and target.has(key, str(e.value))]
    unknown = Reason(ParserReason.NOT_REGISTERED, engine=target.engine, field=key)
    lacking = tuple(
        RejectedCandidate(e.value, e.source, elsewhere(target, key, str(e.value)) or unknown)
        for e in claims
        if e.value is not None and not target.has(key, str(e.value))
    )
    return usable, lacking


def _ambiguous(key: str, claim: Evidence, usable: Sequence[Evidence], target: Target) -> bool:
    """Return whether a likeness of names points to several classes, so that only a proof can choose."""
    likes = [e for e in usable if e.rule is claim.rule and claim.rule in ALIKE]
    return any(not target.same_class(key, str(e.value), str(claim.value)) for e in likes)


def _known_none(none: Evidence, claims: Sequence[Evidence], proof: Proved | None) -> KnownNone:
    lost = _others(None, claims, Reason(ParserReason.KNOWN_TO_HAVE_NONE, source=none.source))
    reads = () if proof is None else tuple(proof.reads)
    if reads:
        untrained = Reason(ParserReason.READ_NOT_TRAINED, parsers=reads)
        lost += (RejectedCandidate(reads[0], Source.PROOF, untrained),)
    return KnownNone((none.reason,), lost)


def _calls_unread(proof: Proved) -> bool:
    """Return whether the template offers tools, and no parser is made for the calls that it writes."""
    strict = {*proof.reads, *proof.unsettled} - {*proof.liberal}
    return proof.asked and proof.tools_rendered and not strict


def _proved(
    key: str,
    usable: Sequence[Evidence],
    claims: Sequence[Evidence],
    proof: Proved,
    target: Target,
    lacking: tuple[RejectedCandidate, ...],
) -> Decision:
    """Return the first declared parser among the most complete ones; without one, the best of these.

    A template shows a format and not that the model was trained for it, so its own evidence names none here.
    """
    reads, complete = proof.reads, proof.complete
    beaten = {**proof.refuted, **proof.incomplete}
    declared = [e for e in usable if e.rule not in SHOWN_BY_TEMPLATE]
    kinds = ((ParserReason.REFUTED, proof.refuted), (ParserReason.BEATEN, proof.incomplete))
    lost = lacking + tuple(
        RejectedCandidate(e.value, e.source, Reason(kind, problem=problems[e.value]))
        for kind, problems in kinds
        for e in declared
        if e.value in problems
    )
    unsettled = next((e for e in declared if e.value in proof.unsettled), None)
    if not reads and unsettled is None and not proof.unjudged:
        none = Reason(ParserReason.NONE_READS, engine=target.backend)
        return Undecided((proof.reason, none), lost)
    for claim in declared:
        if claim.value in proof.unjudged:
            why = (*_agreeing(claim, usable), *_not_judged(proof, str(claim.value)), proof.reason)
            others = _others(claim.value, declared, LATER, beaten)
            return Chosen(claim.value, status_of(claim.rule), why, lost + others)
        name = _named(key, str(claim.value), complete, target)
        if name is not None:
            why = (proof.reason, *_agreeing(claim, usable), *_notes(name, proof, target, declared))
            status = _proved_status(name, proof, claim)
            return Chosen(name, status, why, lost + _others(name, declared, LATER, beaten))
    if unsettled is not None:
        return _unsettled(unsettled, usable, proof, lost)
    silent = next((e for e in claims if e.value is None), None)
    if silent is not None:
        return KnownNone((silent.reason, proof.reason), lost)
    # Some parsers need more of their engine than its sources: nobody can change that here.
    doubt = () if proof.alone else _not_judged(proof, *proof.unjudged)
    if not complete:
        return Undecided((proof.reason, *doubt), lost)
    if all(name in proof.liberal for name in complete):
        return Undecided((proof.reason, Reason(ParserReason.ONLY_LIBERAL)), lost)
    first = complete[0]
    named = any(speaks_for(key, str(e.value), first, target) for e in declared)
    if key == "tool_parser" and not proof.tools_rendered and not named:
        return Undecided((proof.reason, Reason(ParserReason.TOOLS_UNSEEN)), lost)
    return Chosen(
        first,
        _proved_status(first, proof),
        (proof.reason, *_notes(first, proof, target, declared), *doubt),
        lost,
    )


def _beside(proof: Proved, tool: object) -> Proved:
    """Return the proof for the server with this tool parser: a pair that loses more reads less."""
    lossy = {
        name: Reason(ParserReason.PAIR_LOSES, parser=name, tool_parser=tool, problem=beside[str(tool)])
        for name, beside in proof.pairs.items()
        if tool in beside
    }
    whole = [name for name in proof.complete if name not in lossy]
    left = {name: lossy[name] for name in proof.complete if name in lossy} if whole else {}
    incomplete = {**proof.incomplete, **left}
    return replace(proof, pair=lossy, incomplete=incomplete, complete=whole or proof.complete)


def _with_own(
    key: str, proof: Proved, claims: Sequence[Evidence], target: Target, thinking: Thinking | None
) -> Proved:
    """Return the proof with the family's own parsers among the complete ones, where they lose a trifle alone.

    That is one kind of value in a call, and where a model always thinks an answer without thoughts.
    """
    thinks = thinking is not None and thinking.markers is not None and thinking.switch is None
    spared = OF_ONE_VALUE if key == TOOL else BLOCKLESS if thinks else frozenset()
    own = []
    for name in (n for n in proof.incomplete if n not in proof.pair):
        lost = {*proof.failed.get(name, ()), *proof.streamed.get(name, ())} - IRREGULAR
        family = any(e.rule in NAMED_BY_FAMILY and target.same_class(key, name, str(e.value)) for e in claims)
        if family and lost <= spared and (key != TOOL or len(lost) == 1):
            own.append(name)
    left = {n: why for n, why in proof.incomplete.items() if n not in own}
    return replace(proof, complete=[*proof.complete, *own], incomplete=left)


def _not_judged(proof: Proved, *parsers: str) -> tuple[Reason, ...]:
    """Return the warning about parsers without a verdict; none without such a parser."""
    problems = [proof.unjudged[name] for name in parsers]
    return tuple(
        warning(Reason(ParserReason.NOT_JUDGED, parsers=parsers, problem=problem)) for problem in problems[:1]
    )


def _proved_status(name: str, proof: Proved, claim: Evidence | None = None) -> Status:
    """Return the status of a parser that reads the template; lower where its tokens are only assumed."""
    if name not in proof.guessed:
        return "proved"
    return "declared" if claim is None else status_of(claim.rule)


def _unsettled(
    claim: Evidence, usable: Sequence[Evidence], proof: Proved, lost: tuple[RejectedCandidate, ...]
) -> Chosen:
    """Return the declared parser that the proof cannot refute, with the failed case as a warning."""
    problem = proof.refuted[claim.value]
    note = warning(Reason(ParserReason.UNSETTLED, parser=claim.value, problem=problem))
    others = tuple(candidate for candidate in lost if candidate.value != claim.value)
    return Chosen(claim.value, status_of(claim.rule), (*_agreeing(claim, usable), note, proof.reason), others)


def _named(key: str, claimed: str, complete: Sequence[str], target: Target) -> str | None:
    """Return the declared parser, or another name of its class, if it is among the most complete ones."""
    if claimed in complete:
        return claimed
    return next((name for name in complete if target.same_class(key, name, claimed)), None)


def speaks_for(key: str, claimed: str, name: str, target: Target) -> bool:
    """Return whether the declared parser is this one, by its class, or an earlier one of its line:
    ``deepseek_v3`` for ``deepseek_v31``.
    """
    from importer.signals.name_likeness import likeness  # few imports need it

    return target.same_class(key, name, claimed) or likeness(name, claimed) is not None


def _notes(name: str, proof: Proved, target: Target, declared: Sequence[Evidence]) -> tuple[Reason, ...]:
    """Return notes on the choice: parsers of the same effect, and the engine's treatment of this one."""
    alike = tuple(other for other in proof.equal.get(name, ()) if other in proof.complete)
    same = (Reason(ParserReason.SAME_EFFECT, parsers=alike),) if alike else ()
    pair = (warning(proof.pair[name]),) if name in proof.pair else ()
    vendors = any(
        e.key == TOOL and e.rule in NAMED_BY_FAMILY and target.same_class(TOOL, name, str(e.value))
        for e in declared
    )
    failing = _failing(name, proof, vendors=vendors)
    return (*same, *failing, *pair, *_about_engine(name, proof, target, declared))


def _failing(name: str, proof: Proved, *, vendors: bool) -> Iterator[Reason]:
    """Yield the cases that the parser fails, as warnings where a sound model writes them.

    Calls that the ``vendors`` own tool parser loses, and no other reads, are a note: nothing can be changed.
    """
    failed = proof.failed.get(name, {})
    for thought in (True, False):
        cases = {c: problem for c, problem in failed.items() if (c in BLOCKLESS) is thought}
        if cases:
            first = next(iter(cases.values()))
            reason = Reason(
                ParserReason.FAILS, parser=name, cases=tuple(cases), thought=thought, problem=first
            )
            known = vendors or all(case in IRREGULAR for case in cases)
            yield reason if known else warning(reason)
    streamed = tuple(proof.streamed.get(name, ()))
    lost = Reason(ParserReason.FAILS_STREAMED, parser=name, cases=streamed)
    if streamed:  # words beside a call are a trifle
        yield lost if all(case.startswith("narrated") for case in streamed) else warning(lost)


def _about_engine(
    name: str, proof: Proved, target: Target, declared: Sequence[Evidence]
) -> tuple[Reason, ...]:
    """Return notes on the engine: what its grammar forbids of the calls, or which parser it infers."""
    forbidden = proof.forbidden
    if name in forbidden:
        free = tuple(r for r in proof.reads if r not in forbidden and r not in proof.liberal)
        return (Reason(ParserReason.FORBIDDEN, engine=target.engine, words=forbidden[name], free=free),)
    if not proof.infers:
        return ()
    taken = proof.inferred
    if taken == name:
        return (Reason(ParserReason.TAKEN_BY_ITSELF, engine=target.backend),)
    named = (e for e in declared if e.rule is Rule.REPOSITORY_CLAIM and e.value == taken)
    label = next((Reason(ParserReason.LABELLED, quote=e.quote, file=e.source) for e in named), None)
    return (warning(Reason(ParserReason.TAKES_ANOTHER, engine=target.backend, parser=taken, label=label)),)


def _agreeing(first: Evidence, claims: Sequence[Evidence]) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys(e.reason for e in claims if e.value == first.value))


def _others(
    value: object, claims: Sequence[Evidence], why: Reason, refuted: Mapping[str, Reason] | None = None
) -> tuple[RejectedCandidate, ...]:
    refuted = refuted or {}
    return tuple(
        RejectedCandidate(e.value, e.source, why)
        for e in claims
        if e.value != value and str(e.value) not in refuted
    )


def _unproved(target: Target) -> Reason:
    if target.proves:
        return Reason(Unavailable.NOTHING_RENDERED)
    if target.unfetched is not None:
        return target.unfetched
    if not target.runs:
        return Reason(Unavailable.NOT_RUN_HERE, engine=target.backend)
    if not target.parsers:
        return Reason(Unavailable.NOT_KNOWN, engine=target.backend, version=target.version)
    return Reason(Unavailable.NOT_INSTALLED, engine=target.backend)
