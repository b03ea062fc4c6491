"""The token that begins a text: whether a chat's prompt has it, as other prompts have."""

from __future__ import annotations

import json

from importer import backends
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import read_vocabulary
from importer.hub.snapshot import Snapshot, listed, mapping
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, warning
from importer.signals.reasons import TokenNumberReason

KEY = "begin_token"
SETTINGS = "tokenizer_config.json"
TOKENIZER, PROCESSOR = "tokenizer.json", b'"post_processor"'
HEAD = 256 * 1024  # bytes: the post-processor stands before the vocabulary
SWITCH = "add_bos_token"  # of transformers: whether the tokenizer puts the token before a text


def lacking(snapshot: Snapshot, study: TemplateAnalysis | None, engine: str) -> str | None:
    """Return the token, where neither the template writes it nor the server of chats adds it.

    A server tokenises a rendered chat as it is, for most templates write the token themselves.
    """
    token = read_vocabulary(snapshot).named.get("bos_token")
    if study is None or not study.samples or not token or backends.of(engine).begins_chats:
        return None
    return None if any(one.prompt.lstrip().startswith(token) for one in study.samples) else token


def declared(snapshot: Snapshot) -> bool | None:
    """Return whether the tokenizer's settings put the token before a text; ``None`` where they are silent."""
    value = snapshot.json(SETTINGS).get(SWITCH)
    return value if isinstance(value, bool) else None


def added(head: bytes, token: str) -> bool:
    """Return whether the post-processor at the beginning of a tokenizer puts the token before a text."""
    start = head.find(PROCESSOR)
    begin = head.find(b"{", start)
    if start < 0 or begin < 0:
        return False
    try:
        found, _ = json.JSONDecoder().raw_decode(head[begin:].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    steps = [found, *listed(mapping(found).get("processors"))]
    firsts = (next(iter(listed(mapping(step).get("single"))), None) for step in steps)
    return any(mapping(mapping(one).get("SpecialToken")).get("id") == token for one in firsts)


def evidence(token: str, engine: str, file: str) -> Evidence:
    """Return the warning that prompts of chats begin otherwise than other texts."""
    reason = Reason(TokenNumberReason.NO_BEGIN, token=token, engine=engine, file=file)
    return Evidence(Rule.TOKENIZER, KEY, token, file, warning(reason), token)
