"""Findings on the way in: what a template loses or alters, in which field, and how grave it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from importer.chat_template.request_coverage.traits import OPTIONAL, Shape, Trait
from importer.reasons import Reason

KEY = "way_in"  # of the evidence and of the decision
ToolsShown = Literal["shown", "sometimes", "lost", "refused", "broken", "none"]


class WayInKind(StrEnum):
    """What a template does to a part of a request."""

    EVERYTHING_LOST = "everything-lost"
    FAILS = "fails"
    NEEDS_FIELD = "needs-field"
    SYNTAX = "syntax"
    TOO_COSTLY = "too-costly"
    TOOLS_LOST = "tools-lost"
    TOOLS_REFUSED = "tools-refused"
    TOOLS_WITHOUT_SYSTEM = "tools-only-without-system"
    TOOLS_WITH_SYSTEM = "tools-only-with-system"
    TOOLS_AFTER_RESULT = "tools-lost-after-result"
    TOOLS_LATER = "tools-lost-later"
    NO_TOOLS = "no-tools"
    TEXT_ARGUMENTS = "text-arguments"
    LOST = "lost"
    CUT = "cut"
    ESCAPED = "html-escaped"
    UNESCAPED = "unescaped"
    ASCII = "ascii-escaped"
    REPR = "python-repr"
    CASED = "case-changed"
    ALTERED = "altered"
    DOUBLED = "doubled"
    OUT_OF_ORDER = "out-of-order"
    TRIMMED = "trimmed"
    UNSEEN = "unseen"
    CLOSED = "closed"
    REFUSED = "refused"


class WayInField(StrEnum):
    """The field of a request that carries a nonce."""

    SYSTEM = "system"
    LATER_SYSTEM = "later-system"
    DEVELOPER = "developer"
    ROLE = "role"
    SYSTEM_PART = "system-part"
    USER = "user"
    USER_PART = "user-part"
    SECOND_USER = "second-user"
    ANSWER = "answer"
    ANSWER_PART = "answer-part"
    WORDS_BESIDE_CALL = "words-beside-call"
    REASONING = "reasoning"
    IMAGE = "image"
    TOOL_NAME = "tool-name"
    TOOL_DESCRIPTION = "tool-description"
    PARAMETER = "parameter"
    PARAMETER_DESCRIPTION = "parameter-description"
    ENUM = "enum"
    NESTED_PARAMETER = "nested-parameter"
    NESTED_DESCRIPTION = "nested-description"
    REQUIRED = "required"
    TYPE = "type"
    CALL = "call"
    ARGUMENT_NAME = "argument-name"
    ARGUMENT = "argument"
    NESTED_ARGUMENT = "nested-argument"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"
    EMPTY = "empty"
    RESULT = "result"
    RESULT_PART = "result-part"


class WayInSeverity(StrEnum):
    """How grave a finding is: requests fail silently, answers get worse, or the design of the template."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


ORDER: tuple[WayInSeverity, ...] = tuple(WayInSeverity)
_ERRORS = frozenset(
    {
        WayInKind.EVERYTHING_LOST, WayInKind.FAILS, WayInKind.NEEDS_FIELD, WayInKind.TOOLS_LOST,
        WayInKind.TOOLS_WITHOUT_SYSTEM, WayInKind.TOOLS_WITH_SYSTEM, WayInKind.SYNTAX, WayInKind.TOO_COSTLY,
        WayInKind.CLOSED,
    }
)  # fmt: skip
_NOTICES = frozenset({WayInKind.NO_TOOLS, WayInKind.TRIMMED, WayInKind.REFUSED})
# A model may be trained without reasoning in its history, and with every system turn at the head. An argument
# that is null is for most functions the same as none.
_BY_DESIGN = frozenset(
    {
        (WayInKind.LOST, WayInField.REASONING),
        (WayInKind.LOST, WayInField.NULL),
        (WayInKind.OUT_OF_ORDER, WayInField.LATER_SYSTEM),
    }
)
# Without one of these a request is answered as if it had never held it.
_ESSENTIAL = frozenset(
    {
        WayInField.SYSTEM, WayInField.USER, WayInField.TOOL_NAME, WayInField.CALL, WayInField.RESULT,
        WayInField.SYSTEM_PART, WayInField.USER_PART, WayInField.RESULT_PART,
    }
)  # fmt: skip
_FATAL = frozenset({WayInKind.LOST, WayInKind.CUT, WayInKind.OUT_OF_ORDER})
# In some shapes of a conversation and not in others: no design, but a fault of the template.
_IN_SHAPES = _FATAL | {WayInKind.CASED, WayInKind.FAILS}
# A name in another case is the name of no function.
_NAMES = frozenset({WayInField.TOOL_NAME, WayInField.PARAMETER, WayInField.CALL})


def severity_of(kind: WayInKind, field: WayInField | None, shape: Shape = ()) -> WayInSeverity:
    """Return the severity of a finding by its kind, its field, and whether some shapes alone have it."""
    if shape and kind in _IN_SHAPES:
        # A client can send what a template demands; what it loses without a word no client sees.
        demanded = kind is WayInKind.FAILS and not OPTIONAL.isdisjoint(shape)
        return WayInSeverity.WARNING if demanded else WayInSeverity.ERROR
    if kind in _ERRORS or (kind in _FATAL and field in _ESSENTIAL):
        return WayInSeverity.ERROR
    if kind is WayInKind.CASED and field in _NAMES:
        return WayInSeverity.ERROR
    if kind in _NOTICES or (kind, field) in _BY_DESIGN:
        return WayInSeverity.NOTICE
    return WayInSeverity.WARNING


@dataclass(frozen=True, slots=True)
class WayInFinding:
    """One part of a request that does not reach the prompt as it was sent.

    ``kind``          what happens to it; ``field`` where, ``None`` for the request as a whole.
    ``numbers``       of the turns with that role, or of the tools or calls, from 1; none for the whole.
    ``conversation``  the first generated conversation that shows it.
    ``words``         the template's own words of a refusal.
    ``kept``          characters of a cut text that stand in the prompt.
    ``shape``         the traits of conversations that lose it, where others do not; none for all of them.
    """

    kind: WayInKind
    field: WayInField | None = None
    numbers: tuple[int, ...] = ()
    conversation: str = ""
    words: str = ""
    kept: int = 0
    shape: Shape = ()

    @property
    def severity(self) -> WayInSeverity:
        """Return how grave it is."""
        return severity_of(self.kind, self.field, self.shape)

    @property
    def reason(self) -> Reason:
        """Return the finding as a reason, for the sentences of front ends."""
        return Reason(
            self.kind, field=self.field, numbers=self.numbers, words=self.words, shape=self.shape
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the finding as evidence and receipts keep it; empty fields are left out."""
        data: dict[str, Any] = {"kind": self.kind.value, "severity": self.severity.value}
        if self.field is not None:
            data["field"] = self.field.value
        more = {"numbers": list(self.numbers), "conversation": self.conversation, "words": self.words,
                "kept": self.kept, "shape": [trait.value for trait in self.shape]}  # fmt: skip
        return data | {name: value for name, value in more.items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WayInFinding:
        """Return the finding that ``to_json`` gave."""
        field = data.get("field")
        return cls(
            WayInKind(data["kind"]),
            None if field is None else WayInField(field),
            tuple(data.get("numbers", ())),
            data.get("conversation", ""),
            data.get("words", ""),
            data.get("kept", 0),
            tuple(map(Trait, data.get("shape", ()))),
        )


@dataclass(frozen=True, slots=True)
class WayIn:
    """The way in of a template.

    ``tools``     whether offered tools reach the prompt: in every conversation, in some of them, in none
                  although calls do (``lost``), not at all because the template raises (``refused``), unknown
                  because no request renders (``broken``), or in none of a template without calls (``none``).
    ``findings``  the gravest first.
    ``checked``   the number of nonces that were looked for.
    ``offers``    values of the option for another template with which the tools reach the prompt.
    """

    tools: ToolsShown = "none"
    findings: tuple[WayInFinding, ...] = ()
    checked: int = 0
    offers: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the way in as evidence and receipts keep it."""
        findings = [finding.to_json() for finding in self.findings]
        data = {"tools": self.tools, "checked": self.checked, "findings": findings}
        return data | ({"offers": list(self.offers)} if self.offers else {})
