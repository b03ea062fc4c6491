"""Markers in rendered text, and the tokens that a repository's small files declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from importer.frozen import frozen
from importer.hub.snapshot import Snapshot

# Shapes of the markers in chat templates; declared tokens count too.
SHAPE = re.compile(
    r"<\|(?:open|close)\|>\w{1,140}+<\|sep\|>"  # a tag spelled with three tokens
    r"|<[|｜][^<>\n]{1,60}[|｜]>"  # <|im_start|>, <｜tool▁calls▁begin｜>
    r"|<[^<>\s]{1,60}>"  # <tool_call>, </seed:think>, <|channel>, <tool_call|>
    r"|\[/?[A-Z][A-Z_]{1,40}\]"  # [TOOL_CALLS], [/THINK]
)
LONGEST = 160  # no marker is longer
THINK = re.compile(r"[<\[](?=[^<>\[\]\s]*?(?:think|thought|reason))[^<>\[\]\s]*+[>\]]", re.IGNORECASE)
# Ends of turns that no file declares: exact names, because closing markers of calls look similar.
ENDS = re.compile(
    r"(?:<[|｜](?:im_end|endoftext|eo[tm](?:_id)?|end|return|calls?|role_end|end_of_msg)[|｜]>"
    r"|<[|｜]?end[_▁]of[_▁](?:text|turn|sentence|msg|message)(?:_token)?[|｜]?>"
    r"|<[|｜]?(?:\w+[:_])?eos(?::\w+)?[|｜]?>"
    r"|</s>|<turn\|>|<\|tool_response>|\[e~\[)$",
    re.IGNORECASE,
)


class Marks:
    """The markers of one template: shapes, and the tokens its repository declares."""

    def __init__(self, declared: Iterable[str] = ()) -> None:
        # A token of letters and digits only is a word piece, not a marker.
        self._words = {d for d in declared if 1 < len(d) <= LONGEST and not d.isalnum()}
        self._lengths: dict[str, list[int]] = {}  # by the first two characters, the longest first
        for length, begun in sorted({(len(w), w[:2]) for w in self._words}, reverse=True):
            self._lengths.setdefault(begun, []).append(length)

    def boundary(self, text: str, index: int) -> int:
        """Return the largest position at or before ``index`` outside the markers of ``text``."""
        low = index
        while True:
            low = max(0, low - LONGEST)
            high = min(len(text), index + LONGEST)
            spans = [*self._shapes(text, low, high), *self._declared(text, low, high)]
            while (moved := min((s for s, e in spans if s < index < e), default=index)) < index:
                index = moved
            if (
                low == 0 or index - low >= LONGEST
            ):  # a marker that begins before ``low`` ends before ``index``
                return index

    def prefix(self, left: str, right: str) -> int:
        """Return the length of the common prefix, cut at a boundary of both texts."""
        index = common_prefix(left, right)
        while True:
            moved = self.boundary(left, self.boundary(right, index))
            if moved == index:
                return index
            index = moved

    def suffix(self, left: str, right: str) -> str:
        """Return the common suffix, from a boundary of both texts."""
        length = common_prefix(left[::-1], right[::-1])
        walks = [
            (len(text), _Walk(spans(text, max(0, len(text) - length - LONGEST), len(text))))
            for text in (left, right)
            for spans in (self._shapes, self._declared)
        ]
        before = -1
        while length != before:
            before = length
            for end, walk in walks:
                length = end - walk.free(end - length)
        return left[len(left) - length :]

    def _shapes(self, text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        return (m.span() for m in SHAPE.finditer(text, low, high))

    def _declared(self, text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of declared tokens between ``low`` and ``high``: at each place the longest."""
        while self._lengths and low < high:
            for length in self._lengths.get(text[low : low + 2], ()):
                if low + length <= high and text[low : low + length] in self._words:
                    yield low, low + length
                    low += length
                    break
            else:
                low += 1


class _Walk:
    """One pass through spans that do not overlap, for ascending positions."""

    def __init__(self, spans: Iterator[tuple[int, int]]) -> None:
        self._spans = spans
        self._next = next(spans, None)
        self._end = 0  # of the last span that begins before the position

    def free(self, at: int) -> int:
        """Return the first position from ``at`` on outside all spans."""
        while self._next is not None and self._next[0] < at:
            self._end = self._next[1]
            self._next = next(self._spans, None)
        return max(at, self._end)


def common_prefix(left: str, right: str) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def last_marker(text: str) -> str:
    """Return ``text`` from its last marker on; empty without a marker."""
    matches = list(SHAPE.finditer(text))
    return text[matches[-1].start() :] if matches else ""


def first_marker(text: str) -> str:
    """Return the first marker of ``text``; empty without a marker."""
    match = SHAPE.search(text)
    return match.group() if match else ""


@lru_cache(maxsize=256)
def mirror(marker: str) -> str:
    """Return the closing marker of an opening one, or the opening of a closing one, by its spelling."""
    for opening, closing in (("<|open|>", "<|close|>"), ("<", "</"), ("[", "[/")):
        if closing != "</" and marker.startswith(closing):
            return opening + marker[len(closing) :]
        if closing == "</" and marker.startswith("</"):
            return "<" + marker[2:]
    for opening, closing in (("<|open|>", "<|close|>"), ("START", "END"), ("begin", "end"), ("start", "end")):
        if opening in marker:
            return marker.replace(opening, closing)
        if closing in marker:
            return marker.replace(closing, opening)
    if re.fullmatch(r"<\|[^|]+>", marker):
        return f"<{marker[2:-1]}|>"
    return marker[0] + "/" + marker[1:]


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
    def variables(self) -> dict[str, Any]:
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
    marked = {
        CONFIG: [*decoder, *_special(config)],
        SPECIAL: list(_special(special)),
        ADDED: plain,
    }
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


def _special(table: Mapping[str, Any]) -> Iterator[Token]:
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
