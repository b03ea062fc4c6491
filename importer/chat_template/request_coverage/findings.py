"""Findings on request coverage: what a template loses or alters, in which field, and how grave it is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, Self

from importer.frozen import frozen
from importer.reasons import Fields, Named, Reason, ReasonKind, Text

KEY = "request_coverage"  # of the evidence and of the decision
VARIABLES = "template_variables"  # the same, of the variables that a client may set
ToolsShown = Literal["shown", "sometimes", "lost", "refused", "broken", "none"]


AGENTS = "agents send these, and the model guesses values"
COPIES = "the model may copy the fault"


# Fields of any turn, of turns that few clients send, of tools on offer, of a parameter beyond one plain type,
# of earlier calls, and of what stands beside these: its loss makes answers worse, not wrong.
CoverageGroup = Literal["turn", "rare", "tool", "schema", "call", "beside"]


class CoverageField(StrEnum, metaclass=Named):
    """The field of a request that carries a nonce: its group, its name for people, and what its loss does."""

    group: CoverageGroup
    noun: str
    effect: str

    def __new__(cls, name: str, group: CoverageGroup = "turn", noun: str = "", effect: str = "") -> Self:
        field = str.__new__(cls, name)
        field._value_ = name
        field.group, field.noun, field.effect = group, noun, effect
        return field

    SYSTEM = "turn", "the system turn", "instructions of the operator have no effect"
    DEVELOPER = "rare", "the turn of a developer", "its instructions have no effect"
    ROLE = "turn", "the role of a turn", "the model takes its own words for the user's"
    SECOND_SYSTEM = "rare", "a second system turn", "its instructions have no effect"
    LATER_SYSTEM = "rare", "a later system turn", "its instructions have no effect"
    USER = "turn", "the text of the user", "the model answers another question"
    ANSWER = "turn", "an earlier answer", "the model forgets its own words"
    WORDS_BESIDE_CALL = "beside", "the text beside a call", "the model forgets its own words"
    REASONING = "beside", "the reasoning before a call", "the model plans again after each result"
    IMAGE = "turn", "an image", "the model answers without it"
    TOOL_NAME = "tool", "the name of a tool", "the model cannot call it"
    TOOL_DESCRIPTION = "tool", "the description of a tool", "the model guesses its purpose"
    PARAMETER = "tool", "a parameter of a tool", "the model cannot set it"
    PARAMETER_DESCRIPTION = "tool", "the description of a parameter", "the model guesses its meaning"
    ENUM = "tool", "the permitted values of a parameter", "the model invents values"
    NESTED_PARAMETER = "tool", "a property inside an object", "the model invents names"
    NESTED_DESCRIPTION = "tool", "the description of a property", "the model guesses its meaning"
    REQUIRED = "tool", "the list of required parameters", "the model leaves some out"
    TYPE = "tool", "the type of a parameter", "the model guesses it"
    TYPE_LIST = "schema", "a list of types of a parameter", AGENTS
    ANY_OF = "schema", "the types of a parameter under anyOf", AGENTS
    REFERENCE = "schema", "a parameter behind $ref", AGENTS
    CONST = "schema", "the const of a parameter", AGENTS
    NUMBER_ENUM = "schema", "the permitted integers of a parameter", AGENTS
    UNTYPED = "schema", "a parameter without a type", AGENTS
    ITEM_ENUM = "schema", "the permitted values of a list's items", AGENTS
    CALL = "call", "an earlier call", "the model cannot match the results"
    ARGUMENT_NAME = "call", "the name of an argument in an earlier call", COPIES
    ARGUMENT = "call", "an argument of an earlier call", COPIES
    NESTED_ARGUMENT = "call", "an object in an earlier call", COPIES
    NUMBER = "beside", "a number in an earlier call", COPIES
    RESULT = "call", "the result of a tool", "the model answers without it"


def _nouns(fields: Fields) -> tuple[str, str]:
    """Return the names of one field or several, and the effect of the first."""
    field = fields["field"]
    known = [CoverageField(one) for one in (field if isinstance(field, tuple) else (field,)) if one]
    if not known:
        return "a request", "the model answers another one"
    return ", ".join(one.noun for one in known), known[0].effect


def _field(verb: str) -> Text:
    """Return a text: the fields, {field} of the request, then ``verb`` and the effect."""

    def text(fields: Fields) -> str:
        nouns, effect = _nouns(fields)
        return f"{nouns} {verb}: {effect}"

    text.__doc__ = "{field} " + verb
    return text


def _refused(verb: str) -> Text:
    """Return a text: the fields, ``verb``, and the template's own words."""

    def text(fields: Fields) -> str:
        return f"{_nouns(fields)[0]} {verb}: {fields['words']}"

    text.__doc__ = "{field} " + verb + ": {words}"
    return text


BEHIND = {"bare": "", "system": "behind a system turn ", "twenty-turns": "behind earlier answers "}


def _closed(fields: Fields) -> str:
    """{where} the prompt ends with {words}, the end of an answer, so the model has nothing to say"""
    where, end = BEHIND.get(fields["within"][0], "behind the result of a call "), fields["words"]
    return f"{where}the prompt ends with {end}, the end of an answer, so the model has nothing to say"


class CoverageKind(ReasonKind):
    """What a template does to a part of a request."""

    EVERYTHING_LOST = "no text of a conversation reaches the prompt"
    FAILS = (_refused("makes the rendering fail"),)
    NEEDS_FIELD = "{words} is needed, a field that no server sends"
    SYNTAX = "the Jinja is not valid, so each request fails: {words}"
    TOO_COSTLY = "a rendering exceeds the limits of time, memory or length"
    TOOLS_LOST = "calls are shown, but the tools on offer are not"
    TOOLS_REFUSED = "requests with tools are refused: {words}"
    TOOLS_ONLY_WITHOUT_SYSTEM = "the tools are shown only without a system turn"
    TOOLS_ONLY_WITH_SYSTEM = "the tools are shown only with a system turn"
    TOOLS_LOST_AFTER_RESULT = "the tools are gone after the first result: the model cannot call again"
    TOOLS_LOST_LATER = "the tools are gone in later turns: the model cannot call again"
    NO_TOOLS = "there is no place for tools"
    TEXT_ARGUMENTS = "calls are complete only if the server leaves arguments as JSON text"
    LOST = (_field("is lost"),)
    CUT = (_field("is cut short"),)
    ASCII_ESCAPED = (_field("has escapes in place of letters that ASCII lacks"),)
    ALTERED = (_field("is altered"),)
    DOUBLED = (_field("stands there twice"),)
    OUT_OF_ORDER = (_field("stands out of order"),)
    UNSEEN = "the template writes invisible characters: {words}"
    CLOSED = (_closed,)
    REFUSED = (_refused("is refused"),)


class CoverageSeverity(StrEnum):
    """How grave a finding is.

    ``error``    an ordinary request fails, or loses a text in silence; a person must see it.
    ``warning``  rare requests, or answers that may get worse. ``notice`` the design of the template.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


ORDER: tuple[CoverageSeverity, ...] = tuple(CoverageSeverity)
_ERRORS = frozenset(
    {
        CoverageKind.EVERYTHING_LOST, CoverageKind.FAILS, CoverageKind.NEEDS_FIELD, CoverageKind.TOOLS_LOST,
        CoverageKind.TOOLS_ONLY_WITHOUT_SYSTEM, CoverageKind.TOOLS_ONLY_WITH_SYSTEM,
        CoverageKind.TOOLS_LOST_AFTER_RESULT, CoverageKind.TOOLS_LOST_LATER, CoverageKind.SYNTAX,
        CoverageKind.TOO_COSTLY, CoverageKind.CLOSED, CoverageKind.UNSEEN,
    }
)  # fmt: skip
_NOTICES = frozenset({CoverageKind.NO_TOOLS, CoverageKind.REFUSED})
# A model may be trained without reasoning in its history, and with every system turn at the head.
_BY_DESIGN = frozenset(
    {(CoverageKind.LOST, CoverageField.REASONING), (CoverageKind.OUT_OF_ORDER, CoverageField.LATER_SYSTEM)}
)
_TURNS = (
    CoverageField.SYSTEM,
    CoverageField.USER,
    CoverageField.ANSWER,
    CoverageField.CALL,
    CoverageField.RESULT,
)
_LOSES = frozenset(
    {
        CoverageKind.LOST, CoverageKind.CUT, CoverageKind.OUT_OF_ORDER, CoverageKind.ALTERED,
    }
)  # fmt: skip


def severity_of(kind: CoverageKind, field: CoverageField | None) -> CoverageSeverity:
    """Return the severity of a finding by its kind and its field."""
    group = None if field is None else field.group
    if kind is CoverageKind.REFUSED and (group == "rare" or field is CoverageField.SYSTEM):
        return CoverageSeverity.WARNING  # a client that sends one gets an error in place of an answer
    if kind in _NOTICES or (kind, field) in _BY_DESIGN:
        return CoverageSeverity.NOTICE
    if group == "rare":
        return CoverageSeverity.WARNING
    grave = kind in _ERRORS or (kind in _LOSES and group not in (None, "beside"))
    return CoverageSeverity.ERROR if grave else CoverageSeverity.WARNING


@frozen
class CoverageFinding:
    """One part of a request that does not reach the prompt as it was sent.

    ``kind``          what happens to it; ``field`` where, ``None`` for the request as a whole.
    ``numbers``       of the turns with that role, or of the tools or calls, from 1; none for the whole.
    ``conversation``  the first generated conversation that shows it.
    ``words``         the template's own words of a refusal.
    """

    kind: CoverageKind
    field: CoverageField | None = None
    numbers: tuple[int, ...] = ()
    conversation: str = ""
    words: str = ""

    @property
    def group(self) -> CoverageGroup | None:
        """Return the group of its field."""
        return None if self.field is None else self.field.group

    @property
    def placeless(self) -> bool:
        """Return whether a template has no place for a turn or for two in a row, as its model was trained."""
        plainest = self.conversation in ("system", "two-systems", "call", "two-calls")
        return plainest and self.kind is CoverageKind.LOST and self.field in _TURNS

    @property
    def severity(self) -> CoverageSeverity:
        """Return how grave it is."""
        own = severity_of(self.kind, self.field)
        return CoverageSeverity.WARNING if self.placeless and own is CoverageSeverity.ERROR else own

    @property
    def reason(self) -> Reason:
        """Return the finding as a reason, for the sentences of front ends."""
        within = (self.conversation,)
        return Reason(self.kind, field=self.field, numbers=self.numbers, words=self.words, within=within)

    def to_json(self) -> dict[str, object]:
        """Return the finding as evidence and receipts keep it; empty fields are left out."""
        data: dict[str, object] = {"kind": self.kind.value, "severity": self.severity.value}
        if self.field is not None:
            data["field"] = self.field.value
        more = {"numbers": list(self.numbers), "conversation": self.conversation, "words": self.words}
        return data | {name: value for name, value in more.items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CoverageFinding:
        """Return the finding that ``to_json`` gave."""
        field = data.get("field")
        return cls(
            CoverageKind(data["kind"]),
            None if field is None else CoverageField(field),
            tuple(data.get("numbers", ())),
            data.get("conversation", ""),
            data.get("words", ""),
        )


@frozen
class RequestCoverage:
    """The request coverage of a template.

    ``tools``     whether offered tools reach the prompt: in every conversation, in some of them, in none
                  although calls do (``lost``), not at all because the template raises (``refused``), unknown
                  because no request renders (``broken``), or in none of a template without calls (``none``).
    ``findings``  the gravest first.
    ``checked``   the number of nonces that were looked for.
    ``offers``    values of the option for another template with which the tools reach the prompt.
    """

    tools: ToolsShown = "none"
    findings: tuple[CoverageFinding, ...] = ()
    checked: int = 0
    offers: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return request coverage as evidence and receipts keep it."""
        findings = [finding.to_json() for finding in self.findings]
        data = {"tools": self.tools, "checked": self.checked, "findings": findings}
        return data | ({"offers": list(self.offers)} if self.offers else {})
