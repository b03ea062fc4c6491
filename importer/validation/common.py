"""Reasons that several probes share."""

from __future__ import annotations

from enum import StrEnum


class CommonReason(StrEnum):
    """What several judges see."""

    RESULT_UNSEEN = "result-unseen"
    TOOLS_UNSEEN = "tools-unseen"
    THOUGHT_UNREAD = "thought-unread"
    CALL_UNREAD = "call-unread"
    STILL_WRITING = "still-writing"
    NEXT_TURN = "next-turn"
    GOES_ON = "goes-on"
    NOTHING_ARRIVED = "nothing-arrived"
    NOT_COUNTED = "not-counted"
    AT_LIMIT = "at-limit"
    TURNS_UNSEEN = "turns-unseen"
    ANSWERED = "answered"
    EMPTY = "empty"
    NOT_STOPPED = "not-stopped"
    NOT_RENDERED = "not-rendered"
    GIVEN_TWICE = "given-twice"
    STILL_THINKING = "still-thinking"
    NO_THOUGHT = "no-thought"
    DONE_BEFORE = "done-before"
    PROMPT_CHANGED = "prompt-changed"
    THINKING_MARKER = "thinking-marker"
    NOT_PROVED = "not-proved"
    NO_TEMPLATE = "no-template"
    WHOLE_IS_RIGHT = "whole-is-right"
    REFUSED_CLEANLY = "refused-cleanly"
    UNENDED = "unended"
    NOT_ASKED = "not-asked"
