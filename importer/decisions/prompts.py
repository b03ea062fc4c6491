"""Reasons about the prompts of engines, for decisions and for what needs attention."""

from __future__ import annotations

from enum import StrEnum


class PromptVerdict(StrEnum):
    """What a frontend's prompts as a whole show."""

    FORMAT = "format"  # the chosen form of contents, and why the engine's own choice is worse
    DIFFER = "differ"
    LOST = "lost"
    NOT_STARTED = "not-started"
    OWN_CODE = "own-code"  # the frontend renders the model without its template
    OTHER_PROMPT = "other-prompt"  # a parser was proved behind a prompt that the engine writes otherwise
