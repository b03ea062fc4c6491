"""The probe of two turns of the user in a row: they are answered, or refused cleanly."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import no_chat
from importer.validation.outcome import Outcome
from importer.validation.probes import plain_chat
from importer.validation.prompts import TWO_USERS

NAME = "two-user-turns"
LESSON = "Templates that insist on alternating turns raised inside the server: a 500 for an ordinary chat."
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Send two greetings in a row."""
    try:
        return plain_chat.answered(ctx, TWO_USERS)
    except RequestRefused as refused:
        return ctx.refused(refused, TWO_USERS)
