"""Findings on request coverage: what a template loses or alters, in which field, and how grave it is.

A shape is one conversation by its traits, one of each factor. The first one of a factor
is the simplest.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from importer.frozen import frozen
from importer.reasons import Fields, Reason, ReasonKind, Text


class Trait(StrEnum):
    """What a request has or lacks, of all that OpenAI's API permits."""

    NO_LEAD = "no-lead"
    SYSTEM = "system"
    DEVELOPER = "developer"
    FIRST_TURN = "first-turn"
    EARLIER_TURNS = "earlier-turns"
    EARLIER_CALLS = "earlier-calls"
    HUNDREDS_OF_TURNS = "hundreds-of-turns"
    QUESTION_LAST = "question-last"
    RESULT_LAST = "result-last"
    TWO_CALLS = "two-calls"
    TWO_ROUNDS = "two-rounds"
    HUNDREDS_OF_CALLS = "hundreds-of-calls"
    ONLY_CALLS = "only-calls"
    WORDS_BESIDE_CALLS = "words-beside-calls"
    NO_REASONING = "no-reasoning"
    REASONING = "reasoning"
    ARGUMENTS = "arguments"
    NO_ARGUMENTS = "no-arguments"
    NO_NAMES = "no-names"
    NAMES = "names"
    RESULTS_NAMED = "results-named"
    RESULTS_UNNAMED = "results-unnamed"
    NO_TOOLS = "no-tools"
    TOOLS = "tools"
    DESCRIBED = "described"
    NO_DESCRIPTION = "no-description"
    NULL_DESCRIPTION = "null-description"
    PARAMETERS = "parameters"
    NO_PARAMETERS = "no-parameters"
    NULL_PARAMETERS = "null-parameters"
    NO_PROPERTIES = "no-properties"
    NO_REQUIRED = "no-required"
    NESTED = "nested"
    CHOICES = "choices"
    DEFAULTS = "defaults"
    TOOL_TEMPLATE = "tool-template"  # of no factor: the repository has another template for tools


Shape = tuple[Trait, ...]
T = Trait
FACTORS: tuple[tuple[Trait, ...], ...] = (
    (T.NO_LEAD, T.SYSTEM, T.DEVELOPER),
    (T.FIRST_TURN, T.EARLIER_TURNS, T.EARLIER_CALLS, T.HUNDREDS_OF_TURNS),
    (T.QUESTION_LAST, T.RESULT_LAST, T.TWO_CALLS, T.TWO_ROUNDS, T.HUNDREDS_OF_CALLS),
    (T.ONLY_CALLS, T.WORDS_BESIDE_CALLS),
    (T.NO_REASONING, T.REASONING),
    (T.ARGUMENTS, T.NO_ARGUMENTS),
    (T.NO_NAMES, T.NAMES),
    (T.RESULTS_NAMED, T.RESULTS_UNNAMED),
    (T.NO_TOOLS, T.TOOLS),
    (T.DESCRIBED, T.NO_DESCRIPTION, T.NULL_DESCRIPTION),  # vLLM sends null for a key that a client left out
    (
        T.PARAMETERS, T.NO_PARAMETERS, T.NULL_PARAMETERS, T.NO_PROPERTIES, T.NO_REQUIRED, T.NESTED,
        T.CHOICES, T.DEFAULTS,
    ),
)  # fmt: skip
BASE: Shape = tuple(levels[0] for levels in FACTORS)
SIMPLEST = frozenset(BASE)
PLACE: Mapping[Trait, int] = {trait: n for n, levels in enumerate(FACTORS) for trait in levels}
CALLING = (T.RESULT_LAST, T.TWO_CALLS, T.TWO_ROUNDS, T.HUNDREDS_OF_CALLS, T.EARLIER_CALLS)
OF_CALLS = (T.WORDS_BESIDE_CALLS, T.NO_ARGUMENTS, T.RESULTS_UNNAMED)
LONG = (T.HUNDREDS_OF_TURNS, T.HUNDREDS_OF_CALLS)
# A trait and those that it needs one of; the first of them is given to a shape without any.
NEEDS: Mapping[Trait, tuple[Trait, ...]] = {
    **dict.fromkeys(OF_CALLS, CALLING),
    T.REASONING: (*CALLING, T.EARLIER_TURNS),
    # A name tells roles apart from each other, so there is more than one.
    T.NAMES: (T.EARLIER_TURNS, T.EARLIER_CALLS, T.HUNDREDS_OF_TURNS),
    **dict.fromkeys(CALLING, (T.TOOLS,)),
    **dict.fromkeys((*FACTORS[-2][1:], *FACTORS[-1][1:]), (T.TOOLS,)),
}
# Traits of what OpenAI's API leaves to the client, who can send a description, parameters, or a system turn.
OPTIONAL = frozenset({T.DEVELOPER, *FACTORS[-2][1:], *FACTORS[-1][1:5]})
# Traits that only requests with tools have.
NEEDS_TOOLS = frozenset({T.TOOLS, T.TOOL_TEMPLATE, *NEEDS} - {T.NAMES, T.REASONING})


def without(shape: Shape, trait: Trait) -> Shape:
    """Return the shape with the simplest trait in place of one."""
    return tuple(BASE[PLACE[trait]] if one is trait else one for one in shape)


def fits(shape: Shape) -> bool:
    """Return whether each trait of a shape has one of those that it needs."""
    return all(any(one in shape for one in NEEDS[trait]) for trait in shape if trait in NEEDS)


def special(shape: Shape) -> tuple[Trait, ...]:
    """Return the traits that are not the simplest ones."""
    return tuple(trait for trait in shape if trait not in SIMPLEST)


KEY = "request_coverage"  # of the evidence and of the decision
VARIABLES = "template_variables"  # the same, of the variables that a client may set
ToolsShown = Literal["shown", "sometimes", "lost", "refused", "broken", "none"]


AGENTS = "agents send these, and the model guesses values"
# A field of a request, and what its loss does.
FIELDS: Mapping[str, tuple[str, str]] = {
    "system": ("the system turn", "instructions of the operator have no effect"),
    "developer": ("the turn of a developer", "its instructions have no effect"),
    "role": ("the role of a turn", "the model takes its own words for the user's"),
    "second-system": ("a second system turn", "its instructions have no effect"),
    "later-system": ("a later system turn", "its instructions have no effect"),
    "system-part": ("a second text of the system turn", "its instructions have no effect"),
    "user": ("the text of the user", "the model answers another question"),
    "second-user": ("a second question in a row", "the model answers one of them"),
    "user-part": ("a second text of one question", "the model answers another question"),
    "answer": ("an earlier answer", "the model forgets its own words"),
    "answer-part": ("a second text of an earlier answer", "the model forgets its own words"),
    "words-beside-call": ("the text beside a call", "the model forgets its own words"),
    "reasoning": ("the reasoning before a call", "the model plans again after each result"),
    "image": ("an image", "the model answers without it"),
    "tool-name": ("the name of a tool", "the model cannot call it"),
    "tool-description": ("the description of a tool", "the model guesses its purpose"),
    "parameter": ("a parameter of a tool", "the model cannot set it"),
    "parameter-description": ("the description of a parameter", "the model guesses its meaning"),
    "enum": ("the permitted values of a parameter", "the model invents values"),
    "nested-parameter": ("a property inside an object", "the model invents names"),
    "nested-description": ("the description of a property", "the model guesses its meaning"),
    "required": ("the list of required parameters", "the model leaves some out"),
    "type": ("the type of a parameter", "the model guesses it"),
    "type-list": ("a list of types of a parameter", AGENTS),
    "any-of": ("the types of a parameter under anyOf", AGENTS),
    "reference": ("a parameter behind $ref", AGENTS),
    "const": ("the const of a parameter", AGENTS),
    "number-enum": ("the permitted integers of a parameter", AGENTS),
    "untyped": ("a parameter without a type", AGENTS),
    "item-enum": ("the permitted values of a list's items", AGENTS),
    "call": ("an earlier call", "the model cannot match the results"),
    "argument-name": ("the name of an argument in an earlier call", "the model may copy the fault"),
    "argument": ("an argument of an earlier call", "the model may copy the fault"),
    "nested-argument": ("an object in an earlier call", "the model may copy the fault"),
    "number": ("a number in an earlier call", "the model may copy the fault"),
    "boolean": ("a boolean in an earlier call", "the model may copy the fault"),
    "null": ("a null in an earlier call", "the model may copy the fault"),
    "empty": ("an empty value in an earlier call", "the model may copy the fault"),
    "result": ("the result of a tool", "the model answers without it"),
    "result-part": ("a second text of one result", "the model answers without it"),
}
# Where a request has a trait; see ``Trait``.
TRAITS: Mapping[str, str] = {
    "no-lead": "without a system turn",
    "system": "beside a system turn",
    "developer": "beside a developer's turn",
    "first-turn": "in a first turn",
    "earlier-turns": "after earlier turns",
    "earlier-calls": "after earlier calls",
    "hundreds-of-turns": "in hundreds of turns",
    "question-last": "before any result",
    "result-last": "beside a result",
    "two-calls": "beside two calls",
    "two-rounds": "in a second round of calls",
    "hundreds-of-calls": "in hundreds of calls",
    "only-calls": "without words beside calls",
    "words-beside-calls": "where calls have words beside them",
    "no-reasoning": "without reasoning",
    "reasoning": "beside reasoning",
    "arguments": "where calls have arguments",
    "no-arguments": "where calls have no arguments",
    "no-names": "where speakers have no names",
    "names": "where speakers have names",
    "results-named": "where results have names",
    "results-unnamed": "where results have no names",
    "no-tools": "without tools",
    "tools": "beside tools",
    "described": "where tools have descriptions",
    "no-description": "where a tool has no description",
    "null-description": "where the description of a tool is null",
    "parameters": "where tools have parameters",
    "no-parameters": "where a tool has no parameters",
    "null-parameters": "where the parameters of a tool are null",
    "no-properties": "where the parameters of a tool have no properties",
    "no-required": "where a tool has no list of required parameters",
    "nested": "where a parameter holds an object",
    "choices": "where a parameter has permitted values",
    "defaults": "where a parameter has a default",
    "tool-template": "by the repository's template for tools",
}


def _nouns(fields: Fields) -> tuple[str, str]:
    """Return the names of one field or several, and the effect of the first."""
    field = fields["field"]
    names = [str(one) for one in field] if isinstance(field, tuple) else [str(field)]
    known = [FIELDS[name] for name in names if name in FIELDS]
    if not known:
        return "a request", "the model answers another one"
    return ", ".join(noun for noun, _ in known), known[0][1]


def _where(fields: Fields) -> str:
    """Return the traits of the requests that are meant; nothing where all of them are."""
    traits = [TRAITS[str(trait)] for trait in fields.get("shape", ())]
    return f" {' and '.join(traits)}" if traits else ""


def _field(verb: str) -> Text:
    """Return a text: the fields, {field} of the request, then ``verb`` and the effect."""

    def text(fields: Fields) -> str:
        nouns, effect = _nouns(fields)
        return f"{nouns} {verb}{_where(fields)}: {effect}"

    text.__doc__ = "{field} " + verb
    return text


def _refused(verb: str) -> Text:
    """Return a text: the fields, ``verb``, and the template's own words."""

    def text(fields: Fields) -> str:
        return f"{_nouns(fields)[0]} {verb}{_where(fields)}: {fields['words']}"

    text.__doc__ = "{field} " + verb + ": {words}"
    return text


class CoverageKind(ReasonKind):
    """What a template does to a part of a request."""

    EVERYTHING_LOST = "everything-lost", "no text of a conversation reaches the prompt"
    FAILS = "fails", _refused("makes the rendering fail")
    NEEDS_FIELD = "needs-field", "{words} is needed, a field that no server sends"
    SYNTAX = "syntax", "the Jinja is not valid, so each request fails: {words}"
    TOO_COSTLY = "too-costly", "a rendering exceeds the limits of time, memory or length"
    TOOLS_LOST = "tools-lost", "calls are shown, but the tools on offer are not"
    TOOLS_REFUSED = "tools-refused", "requests with tools are refused: {words}"
    TOOLS_WITHOUT_SYSTEM = "tools-only-without-system", "the tools are shown only without a system turn"
    TOOLS_WITH_SYSTEM = "tools-only-with-system", "the tools are shown only with a system turn"
    TOOLS_AFTER_RESULT = (
        "tools-lost-after-result",
        "the tools are gone after the first result: the model cannot call again",
    )
    TOOLS_LATER = "tools-lost-later", "the tools are gone in later turns: the model cannot call again"
    NO_TOOLS = "no-tools", "there is no place for tools"
    TEXT_ARGUMENTS = "text-arguments", "calls are complete only if the server leaves arguments as JSON text"
    LOST = "lost", _field("is lost")
    CUT = "cut", _field("is cut short")
    ESCAPED = "html-escaped", _field("is escaped as HTML")
    UNESCAPED = "unescaped", _field("stands in quotes without escapes")
    ASCII = "ascii-escaped", _field("has escapes in place of letters that ASCII lacks")
    REPR = "python-repr", _field("is written as Python does, such as True for true")
    CASED = "case-changed", _field("has its upper and lower case changed")
    ALTERED = "altered", _field("is altered")
    DOUBLED = "doubled", _field("stands there twice")
    OUT_OF_ORDER = "out-of-order", _field("stands out of order")
    TRIMMED = "trimmed", _field("loses the white space around it")
    UNSEEN = "unseen", "the template writes invisible characters: {words}"
    CLOSED = "closed", "the prompt ends with {words}, the end of an answer, so the model has nothing to say"
    REFUSED = "refused", _refused("is refused")


class CoverageField(StrEnum):
    """The field of a request that carries a nonce."""

    SYSTEM = "system"
    SECOND_SYSTEM = "second-system"
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
    TYPE_LIST = "type-list"
    ANY_OF = "any-of"
    REFERENCE = "reference"
    CONST = "const"
    NUMBER_ENUM = "number-enum"
    UNTYPED = "untyped"
    ITEM_ENUM = "item-enum"
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


# Of a parameter whose schema has more than one plain type.
OF_SCHEMAS = frozenset(
    {
        CoverageField.TYPE_LIST, CoverageField.ANY_OF, CoverageField.REFERENCE, CoverageField.CONST,
        CoverageField.NUMBER_ENUM, CoverageField.UNTYPED, CoverageField.ITEM_ENUM,
    }
)  # fmt: skip


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
        CoverageKind.TOOLS_WITHOUT_SYSTEM, CoverageKind.TOOLS_WITH_SYSTEM, CoverageKind.TOOLS_AFTER_RESULT,
        CoverageKind.TOOLS_LATER, CoverageKind.SYNTAX, CoverageKind.TOO_COSTLY, CoverageKind.CLOSED,
        CoverageKind.UNSEEN,
    }
)  # fmt: skip
_NOTICES = frozenset({CoverageKind.NO_TOOLS, CoverageKind.TRIMMED, CoverageKind.REFUSED})
# A model may be trained without reasoning in its history, and with every system turn at the head. An argument
# that is null is for most functions the same as none.
_BY_DESIGN = frozenset(
    {
        (CoverageKind.LOST, CoverageField.REASONING),
        (CoverageKind.LOST, CoverageField.NULL),
        (CoverageKind.OUT_OF_ORDER, CoverageField.LATER_SYSTEM),
    }
)
# A client that sends one to a template without it gets an error in place of an answer.
_OF_OPERATORS = frozenset(
    {CoverageField.SYSTEM, CoverageField.SECOND_SYSTEM, CoverageField.LATER_SYSTEM, CoverageField.DEVELOPER}
)
# Few clients send these, and nearly no vendor's template writes all of them.
_RARE = frozenset(
    {
        CoverageField.SECOND_SYSTEM, CoverageField.LATER_SYSTEM, CoverageField.DEVELOPER,
        CoverageField.SECOND_USER, CoverageField.SYSTEM_PART, CoverageField.USER_PART,
        CoverageField.ANSWER_PART, CoverageField.RESULT_PART,
    }
)  # fmt: skip
# What a conversation with tools consists of; a loss of anything else makes answers worse, not wrong.
_ORDINARY = OF_SCHEMAS | {
    CoverageField.SYSTEM, CoverageField.USER, CoverageField.ANSWER, CoverageField.IMAGE,
    CoverageField.TOOL_NAME, CoverageField.TOOL_DESCRIPTION, CoverageField.PARAMETER,
    CoverageField.PARAMETER_DESCRIPTION, CoverageField.ENUM, CoverageField.NESTED_PARAMETER,
    CoverageField.NESTED_DESCRIPTION, CoverageField.REQUIRED, CoverageField.TYPE, CoverageField.CALL,
    CoverageField.ARGUMENT_NAME, CoverageField.ARGUMENT, CoverageField.NESTED_ARGUMENT, CoverageField.RESULT,
}  # fmt: skip
_TURNS = (
    CoverageField.SYSTEM,
    CoverageField.USER,
    CoverageField.ANSWER,
    CoverageField.CALL,
    CoverageField.RESULT,
)
_LOSES = frozenset(
    {
        CoverageKind.LOST, CoverageKind.CUT, CoverageKind.OUT_OF_ORDER, CoverageKind.CASED,
        CoverageKind.ALTERED, CoverageKind.ESCAPED,
    }
)  # fmt: skip
# In some shapes of a conversation and not in others: no design, but a fault of the template.
_IN_SHAPES = frozenset(
    {CoverageKind.LOST, CoverageKind.CUT, CoverageKind.OUT_OF_ORDER, CoverageKind.CASED, CoverageKind.FAILS}
)


def severity_of(kind: CoverageKind, field: CoverageField | None, shape: Shape = ()) -> CoverageSeverity:
    """Return the severity of a finding by its kind, its field, and whether some shapes alone have it."""
    if shape and kind in _IN_SHAPES:
        # A client can send what a template demands; what it loses without a word no client sees.
        demanded = kind is CoverageKind.FAILS and not OPTIONAL.isdisjoint(shape)
        return CoverageSeverity.WARNING if demanded else CoverageSeverity.ERROR
    if kind is CoverageKind.REFUSED and field in _OF_OPERATORS:
        return CoverageSeverity.WARNING
    if kind in _NOTICES or (kind, field) in _BY_DESIGN:
        return CoverageSeverity.NOTICE
    if field in _RARE:
        return CoverageSeverity.WARNING
    grave = kind in _ERRORS or (kind in _LOSES and field in _ORDINARY)
    return CoverageSeverity.ERROR if grave else CoverageSeverity.WARNING


@frozen
class CoverageFinding:
    """One part of a request that does not reach the prompt as it was sent.

    ``kind``          what happens to it; ``field`` where, ``None`` for the request as a whole.
    ``numbers``       of the turns with that role, or of the tools or calls, from 1; none for the whole.
    ``conversation``  the first generated conversation that shows it.
    ``words``         the template's own words of a refusal.
    ``kept``          characters of a cut text that stand in the prompt.
    ``shape``         the traits of conversations that lose it, where others do not; none for all of them.
    """

    kind: CoverageKind
    field: CoverageField | None = None
    numbers: tuple[int, ...] = ()
    conversation: str = ""
    words: str = ""
    kept: int = 0
    shape: Shape = ()

    @property
    def placeless(self) -> bool:
        """Return whether a template has no place for a turn or for two in a row, as its model was trained."""
        plainest = self.conversation in ("system", "two-systems", "call", "two-calls")
        return plainest and self.kind is CoverageKind.LOST and self.field in _TURNS

    @property
    def severity(self) -> CoverageSeverity:
        """Return how grave it is."""
        own = severity_of(self.kind, self.field, self.shape)
        return CoverageSeverity.WARNING if self.placeless and own is CoverageSeverity.ERROR else own

    @property
    def reason(self) -> Reason:
        """Return the finding as a reason, for the sentences of front ends."""
        return Reason(
            self.kind, field=self.field, numbers=self.numbers, words=self.words, shape=self.shape
        )  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """Return the finding as evidence and receipts keep it; empty fields are left out."""
        data: dict[str, object] = {"kind": self.kind.value, "severity": self.severity.value}
        if self.field is not None:
            data["field"] = self.field.value
        more = {"numbers": list(self.numbers), "conversation": self.conversation, "words": self.words,
                "kept": self.kept, "shape": [trait.value for trait in self.shape]}  # fmt: skip
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
            data.get("kept", 0),
            tuple(map(Trait, data.get("shape", ()))),
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
