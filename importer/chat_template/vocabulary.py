"""Tokens that a repository's small files declare: markers, and the strings that templates use by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from importer.frozen import frozen
from importer.hub.snapshot import Snapshot

NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


LISTS = ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens")


CONFIG = "tokenizer_config.json"


SPECIAL = "special_tokens_map.json"


ADDED = "added_tokens.json"


NUMBER = re.compile(r"[0-9]{1,9}")


@frozen
class Token:
    """A declared token: its text, whether decoding may skip it, its id where the file has one."""

    content: str
    special: bool
    id: int | None = None


@frozen
class Vocabulary:
    """The added tokens of a repository.

    ``tokens``    each text once, in the order of ids where these are known.
    ``sources``   the files that name any.
    ``declared``  whether the list is complete: only ``added_tokens_decoder`` and ``added_tokens.json`` list
                  tokens that are not special too.
    ``named``     the strings that a template uses by name: ``bos_token``, ``eos_token`` …
    ``stops``     tokens at which generation ends, by ``eos_token_id`` of the generation config and by name.
    """

    tokens: tuple[Token, ...] = ()
    sources: tuple[str, ...] = ()
    declared: bool = False
    named: Mapping[str, str] = field(default_factory=dict)
    stops: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, object]:
        """Return the variables of a template; without any file, usual strings for the first two tokens."""
        absent = (
            {"bos_token": "", "eos_token": ""} if self.sources else {"bos_token": "<s>", "eos_token": "</s>"}
        )
        special = [t.content for t in self.tokens if t.special]
        return {"additional_special_tokens": special, **absent, **self.named}

    @property
    def contents(self) -> frozenset[str]:
        """Return the declared texts."""
        return frozenset(t.content for t in self.tokens)


def read_vocabulary(snapshot: Snapshot) -> Vocabulary:
    """Return the tokens that the tokenizer's small files declare; missing files are no error."""
    config, special, added = (snapshot.json(p) for p in (CONFIG, SPECIAL, ADDED))
    decoder = list(_decoder(config.get("added_tokens_decoder")))
    plain = [Token(c, special=False, id=i) for c, i in added.items() if isinstance(i, int) and c]
    marked = {CONFIG: [*decoder, *_special(config)], SPECIAL: list(_special(special)), ADDED: plain}
    tokens = _merge(token for group in marked.values() for token in group)
    named = {k: text for k in NAMED if (text := _text(config.get(k)) or _text(special.get(k)))}
    return Vocabulary(
        tokens=tokens,
        sources=tuple(path for path, group in marked.items() if group),
        declared=bool(decoder or plain),
        named=named,
        stops=_stops(snapshot, tokens, named),
    )


def _text(value: Any) -> str:
    """Return the text of a token, from a text or from an object with ``content``."""
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _decoder(table: Any) -> Iterator[Token]:
    if not isinstance(table, Mapping):
        return
    for key, entry in table.items():
        text = _text(entry)
        if text:
            special = isinstance(entry, Mapping) and entry.get("special") is True
            yield Token(text, special, int(key) if NUMBER.fullmatch(key) else None)


def _special(table: Mapping[str, object]) -> Iterator[Token]:
    values = [table.get(k) for k in NAMED]
    for key in LISTS:
        listed = table.get(key)
        values += (
            listed.values() if isinstance(listed, Mapping) else listed if isinstance(listed, list) else []
        )
    yield from (Token(text, special=True) for v in values if (text := _text(v)))


def _merge(tokens: Iterable[Token]) -> tuple[Token, ...]:
    """Return each text once; a known id and the flag *special* win over their absence."""
    merged: dict[str, Token] = {}
    for token in tokens:
        old = merged.get(token.content, token)
        number = old.id if old.id is not None else token.id
        merged[token.content] = Token(token.content, old.special or token.special, number)
    return tuple(sorted(merged.values(), key=lambda t: (t.id is None, t.id or 0)))


def _stops(snapshot: Snapshot, tokens: tuple[Token, ...], named: Mapping[str, str]) -> tuple[str, ...]:
    by_id = {t.id: t.content for t in tokens if t.id is not None}
    ids: list[Any] = []
    for path in ("generation_config.json", "config.json"):
        value = snapshot.json(path).get("eos_token_id")
        ids += value if isinstance(value, list) else [value]
    named_ids = [by_id[i] for i in ids if isinstance(i, int) and i in by_id]
    eos = [named["eos_token"]] if "eos_token" in named else []
    return tuple(dict.fromkeys([*named_ids, *eos]))
