"""Control tokens of Mistral's own tokenizer, beside those that a parser needs to read its format."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from importer.hub.snapshot import listed, text
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import TokenNumberReason

FILE = "tekken.json"
TAIL = 512 * 1024  # bytes: a thousand control tokens stand behind the vocabulary, in 100 KB
NAME = b'"special_tokens"'


def read(tail: bytes) -> frozenset[str] | None:
    """Return the control tokens by the end of the file; ``None`` where it has no whole list of them."""
    start = tail.rfind(NAME)
    begin = tail.find(b"[", start)
    if start < 0 or begin < 0 or tail[start + len(NAME) : begin].strip() != b":":
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(tail[begin:].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    tokens = (text(one.get("token_str")) for one in listed(found) if isinstance(one, Mapping))
    return frozenset(token for token in tokens if token) or None


def evidence(
    facts: Sequence[Evidence], needed: Mapping[str, Collection[str]], tokens: frozenset[str]
) -> list[Evidence]:
    """Return a fact for each parser that something names, and whose tokens the tokenizer lacks."""
    named = dict.fromkeys((e.key, str(e.value)) for e in facts if e.rule.names_parsers and e.value in needed)
    return [
        Evidence(
            Rule.LACKING_TOKENS, key, parser, FILE,
            Reason(TokenNumberReason.NO_CONTROL, parser=parser, tokens=tuple(needed[parser]), file=FILE),
        )
        for key, parser in named
        if not tokens.issuperset(needed[parser])
    ]  # fmt: skip
