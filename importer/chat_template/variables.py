"""The variables of a template that a client may set, with their values and the default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from importer.chat_template import cases
from importer.chat_template.cases import ANSWER, ASK, ASK_AGAIN, ONE, REASONING, RESULT, TOOLS, Turn
from importer.chat_template.probe import ProbeRequest, TemplateProbe
from importer.chat_template.reasoning import OWN
from importer.chat_template.render import Rendered
from importer.chat_template.samples import Variable

MOST = 24  # variables; published templates have up to nine
VALUES = 6  # of one variable
TURNS = (
    ASK,
    Turn("assistant", calls=(ONE,), reasoning=REASONING),
    Turn("tool", RESULT),
    Turn("assistant", ANSWER, reasoning=REASONING),
    ASK_AGAIN,
)


def variables(probe: TemplateProbe) -> tuple[Variable, ...]:
    """Return the variables that change the prompt of a conversation with reasoning and a call."""
    asked = [(name, _values(listed)) for name, listed in sorted(probe.variables.items()) if name not in OWN]
    asked = asked[:MOST]
    settings: list[dict[str, object]] = [{}, *({name: value} for name, values in asked for value in values)]
    default, *prompts = _prompts(probe, settings)
    found, left = [], iter(prompts)
    for name, values in asked:
        same = [value for value, prompt in zip(values, left, strict=False) if prompt == default]
        if len(same) < len(values):
            found.append(Variable(name, values, same[0] if len(same) == 1 else None))
    return tuple(found)


def _values(listed: Sequence[Any]) -> tuple[Any, ...]:
    words = [value for value in listed if not isinstance(value, bool)]
    return tuple(words[:VALUES]) or (True, False)


def _prompts(probe: TemplateProbe, settings: Sequence[dict[str, object]]) -> list[tuple[str | None, ...]]:
    """Return the prompts under each setting: of one question, and of past reasoning and a call."""
    groups = (((ASK,), probe.no_tools), (TURNS, TOOLS))
    jobs = [
        probe.job(turns, ProbeRequest(turns, cases.ASK, tools, kwargs), generate=True)
        for kwargs in settings
        for turns, tools in groups
    ]
    texts = [one.text if isinstance(one, Rendered) else None for one in probe.render(jobs)]
    return [tuple(texts[at : at + len(groups)]) for at in range(0, len(texts), len(groups))]
