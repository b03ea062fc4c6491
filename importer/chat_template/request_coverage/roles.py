"""Roles in a prompt: the words and markers before a turn that stand before no turn of the other role."""

from __future__ import annotations

import re
from collections.abc import Mapping

from importer.chat_template.markers import SHAPE
from importer.chat_template.request_coverage import nonces
from importer.chat_template.request_coverage.shaped import Shaped

WORD = re.compile(rf"{SHAPE.pattern}|\w+")
NAME = re.compile(rf"\b\w+{nonces.NAMED}\b")
SPEAKERS = ("user", "assistant")


def distinct(conversation: Shaped, prompt: str) -> Mapping[str, bool]:
    """Return for the user and the assistant whether something before their turns is theirs alone.

    Only turns behind another one are judged: what begins a prompt stands before the first. Empty where a turn
    has no text, or where the prompt lacks one.
    """
    before: dict[str, set[str]] = {}
    at = -1
    for turn in conversation.turns:
        start = prompt.find(turn.text, max(at, 0)) if turn.text and not turn.calls else -1
        if start < 0 or turn.role == "tool":
            return {}
        if at >= 0 and turn.role in SPEAKERS:
            before.setdefault(turn.role, set()).update(WORD.findall(NAME.sub("", prompt[at:start])))
        at = start + len(turn.text)
    if len(before) < len(SPEAKERS):
        return {}
    user, assistant = (before[role] for role in SPEAKERS)
    return {"user": bool(user - assistant), "assistant": bool(assistant - user)}
