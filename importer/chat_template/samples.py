"""What a chat template writes: one synthetic model output per case, and what must be read back from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from importer.reasons import Reason


class TemplateProblem(StrEnum):
    """Why a case shows nothing of what the model would write."""

    ANSWER_ABSENT = "answer-absent"
    ARGUMENTS_ABSENT = "arguments-absent"
    ARGUMENTS_GARBLED = "arguments-garbled"
    BLOCK_CLOSED = "block-closed"
    CALL_ABSENT = "call-absent"
    MESSAGE_PRINTED = "message-printed"
    REASONING_DROPPED = "reasoning-dropped"
    REFUSED = "refused"
    TEXT_DROPPED = "text-dropped"


@dataclass(frozen=True, slots=True)
class SampleCall:
    """A tool call: the function's name and its arguments as an object."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """One synthetic output.

    ``case``        its name: ``one-call``, ``parallel``, ``thinking-whole`` …
    ``prompt``      the rendered prompt with the generation prompt, ready for tokenising.
    ``completion``  what the model would write after it, end-of-turn markers cut off.
    ``calls``       what must be read back; empty where no call was made.
    ``content``     the text that must be read back beside the calls, stripped; ``None`` is not judged.
    ``reasoning``   the reasoning that must be read back, stripped; ``None`` is not judged.
    ``tools``       the tools offered, in OpenAI's form.
    ``kwargs``      the template's extra variables (``enable_thinking`` …) in force.
    ``text_arguments``  the template prints every argument as text, so a judge compares by the tool's schema.
    ``lead``        characters at the start of the completion that are reasoning and its markers.
    ``at_least``    further calls may be read beside ``calls``: a broken one stands there too.
    """

    case: str
    prompt: str
    completion: str
    calls: tuple[SampleCall, ...] = ()
    content: str | None = None
    reasoning: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    text_arguments: bool = False
    lead: int = 0
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Thinking:
    """How a template thinks.

    ``markers``        opening and closing marker as rendered, or ``None`` when it never thinks.
    ``opened``         the generation prompt ends inside the block by default.
    ``switch``         the variable that turns it on or off (``enable_thinking``, ``thinking``), or ``None``.
    ``default``        whether it thinks when the switch is left alone; ``None`` when that cannot be told.
    ``keeps_history``  reasoning of past turns is rendered.
    ``source``         how the markers were learned: ``rendered`` (a message's reasoning is printed between
                       them), ``prompt`` (the generation prompt writes them), ``stripped`` (the template cuts
                       such a block out of content) or ``instructed`` (the system prompt asks for them).
                       The last two say what a template expects, not that this model thinks.
    ``block``          the markers with the white space around them.
    ``on``, ``off``    the template variables that turn thinking on and off; ``None`` when nothing does.
    ``empty_block``    the default generation prompt holds a block that is closed already.
    """

    markers: tuple[str, str] | None = None
    opened: bool = False
    switch: str | None = None
    default: bool | None = None
    keeps_history: bool = False
    source: Literal["rendered", "prompt", "stripped", "instructed"] | None = None
    block: tuple[str, str] = ("", "")
    on: Mapping[str, Any] | None = None
    off: Mapping[str, Any] | None = None
    empty_block: bool = False


@dataclass(frozen=True, slots=True)
class TemplateAnalysis:
    """All that rendering a template has shown.

    ``tools_rendered``  tools given are visible in the prompt.
    ``calls_rendered``  calls are visible in history.
    ``end_of_turn``     what ends an answer.
    ``next_turns``      where nothing does: the markers that begin the turns which may follow.
    ``problems``        case to reason, for cases that the template refused or that show nothing.
    ``digest``          sha256 of the template's text, for caching.
    ``tools_prompt``    what tools add to the prompt: where a template prints no calls, its instructions
                        may still name the format.
    ``form``            how messages had to be written for it: ``arguments``, ``ids``, ``empty`` …
    """

    digest: str
    samples: tuple[Sample, ...] = ()
    thinking: Thinking = Thinking()
    tools_rendered: bool = False
    calls_rendered: bool = False
    end_of_turn: str = ""
    next_turns: tuple[str, ...] = ()
    problems: Mapping[str, Reason] = field(default_factory=dict)
    form: Mapping[str, Any] = field(default_factory=dict)
    tools_prompt: str = ""
