"""Warnings of an import that require a person's attention: typed, computed once, worded by each front end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from importer.chat_template.find import TemplateFault
from importer.config_file.document import Document
from importer.decisions.decision import Decision, Decisions, PromptVerdict, WeighReason
from importer.decisions.parsers import DerivedReason, ForeignReason, FrontendReason, PairReason, ParserReason
from importer.decisions.request_coverage import CoverageEffect, SwitchReason
from importer.frozen import frozen
from importer.memory.choose import FitReason
from importer.memory.judgement import JudgementReason
from importer.reasons import Fields, Reason, ReasonKind, key_of
from importer.sentences import render
from importer.signals.evidence import is_warning
from importer.signals.reasons import CodeReason, LoadReason, WeightFault

TRUST = "trust_remote_code"
TOOLS = "tool_parser"
CODE = "code"


def _no_tools(fields: Fields) -> str:
    """No tools: {reason}; what would offer some."""
    return "; ".join((f"no tools: {fields['reason']}", *fields["helps"]))


class AttentionReason(ReasonKind):
    """What needs attention, the gravest first."""

    GRANT = "grant", "{reason}", "it needs an approval"
    DOES_NOT_FIT = "does-not-fit", "{reason}", "the model does not fit the device"
    WILL_NOT_START = "will-not-start", "{reason}", "the engine does not start with this model"
    MAY_NOT_START = "may-not-start", "{reason}", "the engine may not start: memory is short"
    NEEDS_CODE = "needs-code", "{reason}", "the engine may need the repository's own code"
    FOREIGN_CODE = "foreign-code", "{reason}", "code of other repositories is named"
    PROMPTS = "prompts", "{reason}", "the engine loses text of some prompts"
    PARSER = "parser", "{reason}", "the engine and the {key} disagree"
    LIMITED_TOOLS = "limited-tools", "{reason}", "the {key} has limits"
    NO_TOOLS = "no-tools", _no_tools, "no tools reach the prompt"
    REQUEST_COVERAGE = "request-coverage", "{reason}", "the chat template loses parts of requests"
    CONFLICT = "conflict", "{reason}", "an edit and an import changed one value"
    OTHER_DEVICE = "other-device", "{reason}", "the document was for another device"
    OTHER = "other", "{reason}", "see {key}"


class OtherDevice(ReasonKind):
    """What an import does to the device of its document."""

    CHANGED = (
        "changed",
        "the document was for {before} and is for {after} now; an import per device leaves it as it is",
    )
    NONE = "none", "no device in particular"


# The kind of a reason that was marked as a warning, by the reason's type.
OF_TYPES: Mapping[type[ReasonKind], AttentionReason] = {
    FitReason: AttentionReason.DOES_NOT_FIT,
    JudgementReason: AttentionReason.DOES_NOT_FIT,
    LoadReason: AttentionReason.WILL_NOT_START,
    CodeReason: AttentionReason.FOREIGN_CODE,
    ParserReason: AttentionReason.PARSER,
    DerivedReason: AttentionReason.LIMITED_TOOLS,
    PairReason: AttentionReason.PARSER,
    PromptVerdict: AttentionReason.PROMPTS,
    CoverageEffect: AttentionReason.REQUEST_COVERAGE,
    FrontendReason: AttentionReason.PARSER,
    TemplateFault: AttentionReason.REQUEST_COVERAGE,
    WeightFault: AttentionReason.WILL_NOT_START,
    SwitchReason: AttentionReason.PARSER,
}
# Single reasons that differ from their type. Kinds of two types may be equal as texts: so their keys count.
OF_REASONS: Mapping[str, AttentionReason] = {
    key_of(kind): attention
    for kind, attention in (
        (JudgementReason.MAY_NOT_START, AttentionReason.MAY_NOT_START),
        (JudgementReason.NO_BFLOAT16, AttentionReason.WILL_NOT_START),
        (JudgementReason.NOT_EVEN, AttentionReason.WILL_NOT_START),
        (JudgementReason.EXPERTS, AttentionReason.WILL_NOT_START),
        (JudgementReason.FP8_CACHE, AttentionReason.WILL_NOT_START),
        (LoadReason.NOT_ITS_OWN, AttentionReason.OTHER),  # it may start
        (TemplateFault.ENTRY, AttentionReason.WILL_NOT_START),
        (CoverageEffect.HIDDEN, AttentionReason.NO_TOOLS),
        (CoverageEffect.SOMETIMES, AttentionReason.NO_TOOLS),
    )
}
# Of these the document has a part or none; its engine may well start.
NOT_OF_THE_START = (FitReason.HOLDS, FitReason.NOT_KNOWN, FitReason.STORED_OTHERWISE)
# Reasons that name another template.
OFFERS = (ForeignReason.WOULD_OFFER, CoverageEffect.OFFER)
NO_DEVICE = Reason(OtherDevice.NONE)
NEEDING = (CodeReason.NEEDED, CodeReason.LACKING, CodeReason.NOT_KNOWN)


@frozen
class Attention:
    """A warning about a decision: its kind, the decision's key, the reason, and what would help."""

    kind: AttentionReason
    key: str
    why: Reason
    helps: tuple[Reason, ...] = ()

    @property
    def stops(self) -> bool:
        """Return whether the engine does not start: such a document is approved by a person alone."""
        grave = (AttentionReason.DOES_NOT_FIT, AttentionReason.WILL_NOT_START)
        return self.kind in grave and all(self.why.kind is not kind for kind in NOT_OF_THE_START)

    @property
    def reason(self) -> Reason:
        """Return kind, key and reason as one reason, for the text of a front end."""
        return Reason(self.kind, key=self.key, reason=self.why, helps=self.helps)

    def to_json(self) -> dict[str, object]:
        """Return kind, key, the reason with its fields, and the sentence."""
        why = self.why.to_json()
        return {"kind": self.kind.value, "key": self.key, "reason": why, "message": render(self.reason)}


def device_label(fit: Mapping[str, object] | None) -> str | None:
    """Return the device of a receipt's fit by its name for imports; ``None`` where there was none."""
    device = (fit or {}).get("device")
    if not isinstance(device, Mapping):
        return None
    count = device.get("count", 1)
    return str(device.get("name")) if count == 1 else f"{count}x{device.get('name')}"


def other_device(before: str | None, after: str | None) -> Attention:
    """Return the warning that an import gives a document another device; ``None`` is none in particular."""
    devices = {"before": before or NO_DEVICE, "after": after or NO_DEVICE}
    return Attention(AttentionReason.OTHER_DEVICE, "device", Reason(OtherDevice.CHANGED, **devices))


def granted(data: Document) -> tuple[Attention, ...]:
    """Return what a document sets beyond the positive list: an approval of the document allows it."""
    from importer.config_file import grants

    return tuple(Attention(AttentionReason.GRANT, grant.key, grant.reason) for grant in grants.runs(data))


def attention(decisions: Decisions) -> tuple[Attention, ...]:
    """Return what the decisions warn of, the gravest first, each reason once."""
    first: dict[tuple[AttentionReason, Reason], Attention] = {}
    for one in (*_marked(decisions), *_code(decisions), *_tools(decisions)):
        first.setdefault((one.kind, one.why), one)
    order = list(AttentionReason)
    return tuple(sorted(first.values(), key=lambda one: order.index(one.kind)))


def marked(key: str, why: Reason) -> Attention:
    """Return the warning of a reason that is marked as one."""
    of_type = OF_TYPES.get(type(why.kind), AttentionReason.OTHER)
    return Attention(OF_REASONS.get(key_of(why.kind), of_type), key, why)


def _marked(decisions: Decisions) -> Iterator[Attention]:
    for key, decision in decisions.items():
        for reason in decision.why:
            inner = reason.fields.get("reason")
            if is_warning(reason) and isinstance(inner, Reason):
                one = marked(key, inner)
                hidden = one.kind is AttentionReason.NO_TOOLS
                yield replace(one, helps=_offers(decision)) if hidden else one


def _code(decisions: Decisions) -> Iterator[Attention]:
    """Yield the repository's code, where the engine may require it and no person allowed it."""
    if CODE in decisions and not _is_true(decisions.get(TRUST)):
        for reason in decisions[CODE].why:
            if reason.kind in NEEDING:
                yield Attention(AttentionReason.NEEDS_CODE, CODE, reason)


def _is_true(decision: Decision | None) -> bool:
    return decision is not None and decision.value is True


def _tools(decisions: Decisions) -> Iterator[Attention]:
    """Yield a chat model that calls no tools, unless a person set it so, or the engine needs no parser."""
    kind, parser = decisions.get("kind"), decisions[TOOLS]
    chats = kind is None or kind.value == "chat"
    if chats and parser.value is None and parser.why and not _set(parser):
        yield Attention(AttentionReason.NO_TOOLS, TOOLS, parser.why[0], _offers(parser))


def _offers(decision: Decision) -> tuple[Reason, ...]:
    return tuple(reason for reason in decision.why if reason.kind in OFFERS)


def _set(decision: Decision) -> bool:
    return decision.why[0].kind in (WeighReason.SET_BY_USER, FrontendReason.BUILT_IN)
