"""Contents in parts: several texts in one turn, and a text behind an image.

Only roles are judged whose contents the template takes in parts: there a single part comes out as the same
text without parts would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from importer.chat_template.cases import CaseStyle, Turn
from importer.chat_template.probe import TemplateProbe
from importer.chat_template.render import Rendered, RenderJob
from importer.chat_template.request_coverage import nonces
from importer.chat_template.request_coverage.compare import compare, judge
from importer.chat_template.request_coverage.conversations import (
    ANSWERS,
    CALLS,
    OFFERED,
    RESULTS,
    SYSTEM,
    USERS,
    Conversation,
    Mark,
    linked,
    said,
)
from importer.chat_template.request_coverage.findings import WayInField, WayInFinding
from importer.chat_template.samples import Tool
from importer.frozen import frozen

IMAGE: Mapping[str, str] = {"type": "image"}


@frozen
class _Role:
    """A conversation with a content of two texts; the first is the role's text in other conversations."""

    role: str
    turns: tuple[Turn, ...]
    first: Mark
    second: Mark
    tools: tuple[Tool, ...] | None = None

    @property
    def conversation(self) -> Conversation:
        """Return the conversation, with both texts to look for in their order."""
        marks = (self.first, self.second)
        return Conversation(f"{self.role}-parts", self.turns, marks, self.tools)

    def messages(self, style: CaseStyle, parts: Sequence[Mapping[str, str]] = ()) -> list[dict[str, object]]:
        """Return the messages; the content of the last message with the role consists of the parts."""
        messages = linked(self.conversation.messages(style))
        at = max(i for i, message in enumerate(messages) if message["role"] == self.role)
        messages[at] |= {"content": list(parts)}
        return messages


def _part(field: WayInField, of: Mark) -> tuple[Mark, Mark]:
    place = f"{field} 2"
    second = replace(of, field=field, number=2, text=nonces.text(place), ends=nonces.ends(place))
    return replace(of, ordered=True), replace(second, ordered=True)


_ASK = said("user", USERS[0])
ROLES = (
    _Role("user", (_ASK,), *_part(WayInField.USER_PART, USERS[0])),
    _Role("system", (said("system", SYSTEM), _ASK), *_part(WayInField.SYSTEM_PART, SYSTEM)),
    _Role(
        "assistant", (_ASK, said("assistant", ANSWERS[0]), said("user", USERS[1])),
        *_part(WayInField.ANSWER_PART, ANSWERS[0]),
    ),
    _Role(
        "tool", (_ASK, Turn("assistant", "", (CALLS[0][0],)), said("tool", RESULTS[0])),
        *_part(WayInField.RESULT_PART, RESULTS[0]), OFFERED,
    ),
)  # fmt: skip


def _text(mark: Mark) -> Mapping[str, str]:
    return {"type": "text", "text": mark.text}


def check(probe: TemplateProbe, *, images: bool) -> Iterator[WayInFinding]:
    """Yield texts of a content in parts that the prompt lacks; ``images`` puts one between two texts."""
    tried: list[tuple[_Role, bool]] = []
    jobs: list[RenderJob] = []
    for one in ROLES:
        first, second = _text(one.first), _text(one.second)
        contents = [[first], [first, second]]
        if images and one.role == "user":
            contents.append([first, IMAGE, second])
        tools = probe.no_tools if one.tools is None else one.tools
        for parts in contents:
            tried.append((one, len(parts) == 1))
            jobs.append(RenderJob(one.messages(probe.style, parts), tools, add_generation_prompt=True))
    takes = False
    for (one, single), result in zip(tried, probe.render(jobs), strict=True):
        prompt = result.text if isinstance(result, Rendered) else None
        if single:
            takes = prompt is not None and judge(one.first, prompt) is None
        elif takes and prompt is not None:
            for found in compare(one.conversation, prompt):
                yield replace(found, field=one.second.field)
