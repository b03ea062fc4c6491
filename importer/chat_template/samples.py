"""Types of a template's analysis: synthetic model outputs with the expected parse, and reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypedDict

from importer.frozen import frozen
from importer.reasons import ReasonKind

# Outputs of a model that breaks its own format, and answers without a block where it was told to think.
IRREGULAR = frozenset({"broken-beside", "text-after", "thinking-cut", "thinking-several", "thinking-none"})
BLOCKLESS = frozenset({"plain", "thinking-off", "thinking-off-said", "thinking-none", "unsaid-plain"})
# Calls with one argument of a kind that not every request has.
OF_ONE_VALUE = frozenset({"null", "numeric-text", "quotes", "newlines", "non-ascii"})


class TemplateProblem(ReasonKind):
    """Reasons why a case yields no sample."""

    ANSWER_ABSENT = "the answer is not in what the template writes"
    ARGUMENTS_ABSENT = "arguments are not in what the template writes"
    ARGUMENTS_GARBLED = "the template writes the argument in a form that cannot be read back"
    BLOCK_CLOSED = "the prompt closes the block before anything is written"
    CALL_ABSENT = "the call is not in what the template writes"
    MESSAGE_PRINTED = "the template prints the message itself"
    REASONING_DROPPED = "reasoning beside a call is dropped"
    REFUSED = "{words}"
    TEXT_DROPPED = "text beside the call is dropped"


class Function(TypedDict):
    """A function on offer; ``parameters`` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, object]


class Tool(TypedDict):
    """A tool on offer, in OpenAI's form."""

    type: str
    function: Function


@frozen
class SampleCall:
    """A tool call: the function's name and its arguments as an object."""

    name: str
    arguments: Mapping[str, object]


@frozen
class Sample:
    """One synthetic output.

    ``case``        its name: ``one-call``, ``parallel``, ``thinking-whole`` …
    ``prompt``      the rendered prompt with the generation prompt, ready for tokenising.
    ``completion``  the model's output after it, end-of-turn markers cut off.
    ``calls``       expected from the parser; empty without a call.
    ``content``     expected text beside the calls, stripped; ``None`` is not judged.
    ``reasoning``   expected reasoning, stripped; ``None`` is not judged.
    ``tools``       the tools offered, in OpenAI's form.
    ``kwargs``      the template's extra variables (``enable_thinking`` …) in force.
    ``text_arguments``  the template prints every argument as text, so a judge compares by the tool's schema.
    ``lead``        characters at the start of the completion that are reasoning and its markers.
    ``at_least``    whether further calls are allowed: the completion holds a broken one too.
    """

    case: str
    prompt: str
    completion: str
    calls: tuple[SampleCall, ...] = ()
    content: str | None = None
    reasoning: str | None = None
    tools: tuple[Tool, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    text_arguments: bool = False
    lead: int = 0
    at_least: bool = False

    @property
    def behind(self) -> str:
        """Return the completion behind its reasoning."""
        return self.completion[self.lead :]


@frozen
class Variable:
    """A variable of a template that changes a prompt.

    ``values``   that it is compared with; true and false without any.
    ``default``  the value with the prompt of a request that leaves it out; ``None`` for any other prompt.
    """

    name: str
    values: tuple[Any, ...]
    default: Any = None


@frozen
class Thinking:
    """Reasoning in a template.

    ``markers``        opening and closing marker as rendered, or ``None`` without reasoning.
    ``opened``         whether the generation prompt ends inside the block by default.
    ``switch``         the variable that turns it on or off (``enable_thinking``, ``thinking``), or ``None``.
    ``default``        whether it thinks without a value for the switch; ``None`` where it is unknown.
    ``source``         of the markers: ``rendered`` (a message's reasoning is printed between them),
                       ``prompt`` (the generation prompt writes them), ``stripped`` (the template removes
                       such a block from content) or ``instructed`` (the system prompt demands them).
                       The last two show the template's expectation, not that this model thinks.
    ``block``          the markers with the white space around them.
    ``on``, ``off``    the template variables that turn thinking on and off; ``None`` without a switch.
    ``settings``       values of one variable each that a document may set: those with the default's prompt;
                       where the default is unknown, every value of the switch.
    """

    markers: tuple[str, str] | None = None
    opened: bool = False
    switch: str | None = None
    default: bool | None = None
    source: Literal["rendered", "prompt", "stripped", "instructed"] | None = None
    block: tuple[str, str] = ("", "")
    on: Mapping[str, object] | None = None
    off: Mapping[str, object] | None = None
    settings: tuple[Mapping[str, object], ...] = ()
