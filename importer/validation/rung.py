"""The rungs of an exchange, from the request to the client: a fact names the one that it breaks."""

from __future__ import annotations

from enum import StrEnum


class Rung(StrEnum):
    """One step on the way of a request and its answer; each is compared with its neighbours."""

    MESSAGES = "messages"  # the request, as the server renders it
    TEMPLATE = "template"  # the text that the template writes
    TOKENS = "tokens"  # the tokens of that text
    DRAWN = "drawn"  # the tokens of the answer, and the options that rule them
    PARSED = "parsed"  # content, reasoning and calls of these tokens
    WHOLE = "whole"  # the answer in one piece
    STREAM = "stream"  # the answer in pieces
    GATEWAY = "gateway"  # what stands between engine and client
