"""Warnings of an import that require a person's attention: typed, computed once, worded by each front end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Self, cast

from importer.chat_template.find import TemplateFault
from importer.decisions.decision import Decision, Decisions, PromptVerdict, Undecided
from importer.decisions.frontends import FrontendReason
from importer.decisions.parsers import ForeignReason, ParserReason
from importer.decisions.request_coverage import CoverageEffect, SwitchReason
from importer.document import grants
from importer.document.document import Document
from importer.frozen import frozen
from importer.memory.choose import FitReason
from importer.memory.judgement import JudgementReason
from importer.reasons import Reason, ReasonKind, key_of
from importer.sentences import render
from importer.signals.evidence import is_warning
from importer.signals.reasons import (
    CodeReason,
    InputReason,
    LoadReason,
    ShownReason,
    TokenNumberReason,
    WeightFault,
)

TRUST = "trust_remote_code"
TOOLS = "tool_parser"
CODE = "code"


class AttentionStep(ReasonKind):
    """What settles a warning; a front end adds what to type."""

    APPROVE = "approve the document, or take the setting out"
    FIT = "name a larger device, or a shorter context"
    START = "choose another engine or version, or mend the files"
    ALLOW_CODE = "read the files, then set trust_remote_code to true"
    READ_CODE = "read that code before trust_remote_code is true"
    TEMPLATE = "import with a chat template that is mended"
    PARSER = "set {key} to a parser that fits, or to none"
    NO_TOOLS = "set tool_parser to none to accept it"
    CONFLICT = "choose one of the values"
    DEVICE = "import for each device"
    LOOK = "set {key}, or approve it as it is"


LINE = "{reason}; hits {hits}; {steps:;}"


class AttentionReason(ReasonKind):
    """What needs attention, the gravest first: a reviewer can change it and needs to now; the rest are notes.

    ``hits``  what a warning of the kind is about. ``step``  what settles it.
    """

    hits: str
    step: AttentionStep

    def __new__(
        cls,
        value: str,
        short: str = "",
        hits: str = "",
        step: AttentionStep = AttentionStep.LOOK,
        text: str = LINE,
    ) -> Self:
        """Return the kind; its text is one line: what, whom it hits, what settles it."""
        kind = str.__new__(cls, value)
        kind._value_, kind.text, kind.short, kind.hits, kind.step = value, text, short, hits, step
        return kind

    GRANT = "it needs an approval", "every run", AttentionStep.APPROVE
    DOES_NOT_FIT = "the model does not fit the device", "every start", AttentionStep.FIT
    WILL_NOT_START = "the engine does not start with this model", "every start", AttentionStep.START
    MAY_NOT_START = "the engine may not start: memory is short", "a start", AttentionStep.FIT
    NEEDS_CODE = "the engine may need the repository's own code", "every start", AttentionStep.ALLOW_CODE
    FOREIGN_CODE = "code of other repositories is named", "every start with code", AttentionStep.READ_CODE
    PROMPTS = "the engine loses text of some prompts", "requests like that one", AttentionStep.TEMPLATE
    PARSER = "the engine and the {key} disagree", "answers that it reads", AttentionStep.PARSER
    NO_TOOLS = "no tools reach the prompt", "requests with tools", AttentionStep.NO_TOOLS, f"no tools: {LINE}"
    REQUEST_COVERAGE = (
        "the chat template loses parts of requests",
        "requests that need it",
        AttentionStep.TEMPLATE,
    )
    BEGIN = "prompts lack their first token", "every answer", AttentionStep.TEMPLATE
    CONFLICT = "an edit and an import changed one value", "this value", AttentionStep.CONFLICT
    OTHER_DEVICE = "the document was for another device", "runs on the other", AttentionStep.DEVICE
    OTHER = "see {key}", "every answer", AttentionStep.LOOK


class OtherDevice(ReasonKind):
    """What an import does to the device of its document."""

    CHANGED = "the document was for {before} and is for {after} now"
    NONE = "no device in particular"


# The kind of a reason that was marked as a warning, by the reason's type.
OF_TYPES: Mapping[type[ReasonKind], AttentionReason] = {
    FitReason: AttentionReason.DOES_NOT_FIT,
    JudgementReason: AttentionReason.DOES_NOT_FIT,
    LoadReason: AttentionReason.WILL_NOT_START,
    CodeReason: AttentionReason.FOREIGN_CODE,
    ParserReason: AttentionReason.PARSER,
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
        (JudgementReason.STATE_BLOCKS, AttentionReason.MAY_NOT_START),
        (JudgementReason.LARGE_SHARE, AttentionReason.MAY_NOT_START),
        (JudgementReason.OLD_CARD, AttentionReason.WILL_NOT_START),
        (JudgementReason.NO_BFLOAT16, AttentionReason.WILL_NOT_START),
        (JudgementReason.NOT_EVEN, AttentionReason.WILL_NOT_START),
        (JudgementReason.EXPERTS, AttentionReason.WILL_NOT_START),
        (JudgementReason.FP8_CACHE, AttentionReason.WILL_NOT_START),
        (TemplateFault.ENTRY, AttentionReason.WILL_NOT_START),
        (TokenNumberReason.NO_BEGIN, AttentionReason.BEGIN),
        (TokenNumberReason.NO_CONTROL, AttentionReason.PARSER),
        (InputReason.NO_PROCESSOR, AttentionReason.WILL_NOT_START),
        (ParserReason.CALLS_UNREAD, AttentionReason.NO_TOOLS),
        (CoverageEffect.TOOLS_HIDDEN, AttentionReason.NO_TOOLS),
        (CoverageEffect.TOOLS_SOMETIMES, AttentionReason.NO_TOOLS),
    )
}
# Of these the document has a part or none; its engine may well start.
NOT_OF_THE_START = (FitReason.HOLDS, FitReason.NOT_KNOWN)
# Reasons that name another template.
OFFERS = (ForeignReason.WOULD_OFFER, CoverageEffect.TEMPLATE_OFFERED)
NO_DEVICE = Reason(OtherDevice.NONE)
NEEDING = (CodeReason.NEEDED, CodeReason.NOT_KNOWN)


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
        steps = (*self.helps, Reason(self.kind.step, key=self.key))
        return Reason(self.kind, key=self.key, reason=self.why, hits=self.kind.hits, steps=steps)

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
    """Return what a document sets beyond the free settings: an approval of the document allows it."""
    return tuple(map(of_grant, grants.runs(data)))


def of_grant(grant: grants.Grant) -> Attention:
    """Return the warning of one grant."""
    return Attention(AttentionReason.GRANT, grant.key, grant.reason)


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
    """Yield a chat model without a tool parser, where anything speaks for one.

    Most models without tools were never trained for any, and nothing is to be done.
    """
    kind, parser = decisions.get("kind"), decisions[TOOLS]
    chats = kind is None or kind.value == "chat"
    if chats and isinstance(parser, Undecided) and _speaks_for_tools(parser):
        yield Attention(AttentionReason.NO_TOOLS, TOOLS, parser.why[0], _offers(parser))


def _speaks_for_tools(decision: Undecided) -> bool:
    """Return whether a parser was named and rejected, or the template writes calls that none reads."""
    silent = (ShownReason.NO_CALLS, ShownReason.NO_TEMPLATE, ShownReason.NOT_RENDERED)
    notes = [cast("tuple[Reason, ...]", reason.fields.get("notes", ())) for reason in decision.why]
    unread = any(reason.kind is ParserReason.NONE_READS for reason in decision.why)
    named = any(candidate.value is not None for candidate in decision.overruled)
    return named or unread or any(one.kind not in silent for said in notes for one in said)


def _offers(decision: Decision) -> tuple[Reason, ...]:
    return tuple(reason for reason in decision.why if reason.kind in OFFERS)
