"""The grammars of vLLM and SGLang: some tool parsers force their own format on every call."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

SHOWN = 30  # characters before the place


def forbidden(request: Any, text: str) -> str | None:
    """Return the first character of ``text`` that the request's structural tag forbids, with the text
    before it.
    """
    outputs = getattr(request, "structured_outputs", None)
    return forbidden_by(getattr(outputs, "structural_tag", None), text)


def forbidden_by(tag: object, text: str) -> str | None:
    """Return the first character of ``text`` that the structural tag forbids, with the text before it."""
    if not isinstance(tag, str):
        return None
    import xgrammar

    try:
        matcher = xgrammar.GrammarMatcher(compiler().compile_structural_tag(tag))
    except RuntimeError:  # a tag of tokens: it has no form over bytes
        return None
    for place, character in enumerate(text):
        if not matcher.accept_string(character):
            return f"{character!r} after {text[max(0, place - SHOWN) : place]!r}"
    return None


@lru_cache(maxsize=1)
def compiler() -> Any:
    """Return a compiler over single bytes: a grammar allows texts, in any tokens."""
    import xgrammar

    bytes_and_end = [bytes([number]) for number in range(256)] + [b"</s>"]
    return xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(bytes_and_end, stop_token_ids=[256]))
