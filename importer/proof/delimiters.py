"""Delimiters of calls in a response template: the call's own, or the next call's opening."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from importer.chat_template.markers import SHAPE
from importer.proof.frames import Frame
from importer.proof.wire_regex import ANY_ID, ANY_NUMBER, escaped, flexible, optional

Field = dict[str, Any]
SECTION = "section"  # of a candidate: the marks around all calls, for the field of the answer


def delimited(around: Frame, head: str, body: Field) -> Iterator[Field]:
    """Yield the body with its delimiters: the call's own, else the next call's opening cut in two."""
    opening, close = around.open.lstrip(), around.close.lstrip()
    if close and opening:
        opened = _outer(around) + flexible(opening) + head
        ends = _marked(close) if body["content"] == "json" else flexible(close)
        yield {**_opened(opened), "close_pattern": ends + _apart(around), **body, **_silent(around)}
    elif close and around.outer_open.strip():
        either = "|".join(flexible(t.strip()) for t in (around.outer_open, around.separator) if t.strip())
        ends = rf"(?:\s*{flexible(around.outer_close.strip())})?" if around.outer_close.strip() else ""
        yield {**_opened(rf"(?:{either})\s*" + head), "close_pattern": flexible(close) + ends, **body}
    elif opening:
        yield from _cut(around, opening, head, body)


def _apart(around: Frame) -> str:
    """Return the expression of what parts two calls; in a stream one character alone is waited for."""
    text = around.separator.strip()
    return rf"(?:\s*{escaped(text)})?\s*" if len(text) == 1 else r"\s*"


def _silent(around: Frame) -> Field:
    """Return the marks of the section around calls, that belong to no call and to no answer."""
    texts = (around.outer_open.strip(), around.separator.strip(), around.outer_close.strip())
    literal = [t for t in texts if SHAPE.search(t) and not _varies(t)]
    return {SECTION: literal} if literal else {}


def _marked(close: str) -> str:
    """Return the expression of a call's end; text before its marker may be missing, as in a broken call."""
    marker = SHAPE.search(close)
    if marker is None or not close[: marker.start()].strip():
        return flexible(close)
    return rf"(?:{flexible(close[: marker.start()].rstrip())}\s*)?{flexible(close[marker.start() :])}"


def _cut(around: Frame, opening: str, head: str, body: Field) -> Iterator[Field]:
    """Yield the body where nothing closes a call but the next one: its marker is cut in two.

    The first half closes a call, the second half opens the next; a delimiter that consumes nothing is not in
    the language of both engines.
    """
    marker = SHAPE.search(opening)
    start, stop = marker.span() if marker else (0, len(opening.rstrip()))
    middle = (start + stop) // 2
    ends = [e for e in (opening[:middle].strip(), around.outer_close.strip()) if e]
    if middle - start < 2:
        yield {**_opened(_outer(around) + flexible(opening) + head), **body, **_silent(around)}
        return
    first = f"(?:{_outer(around)}{flexible(opening[:middle])})?"
    literal = not any(_varies(e) for e in ends)
    closes: Field = {"close": ends} if literal else {"close_pattern": "|".join(flexible(e) for e in ends)}
    yield {**_opened(first + flexible(opening[middle:]) + head), **closes, **body, **_silent(around)}


def ended_by_next(around: Frame, head: str, body: Field) -> Iterator[Field]:
    """Yield the body closed only where another call or the section's end follows, else by the text's end."""
    close, opening = around.close.lstrip(), around.open.lstrip()
    ends = [t.strip() for t in (around.separator, around.outer_close) if t.strip()]
    if not close or not opening:
        return
    opened = _opened(_outer(around) + flexible(opening) + head)
    if ends:
        after = "|".join(flexible(e) for e in ends)
        yield {**opened, "close_pattern": rf"{_spaced(close)}\s*(?:{after})\s*", **body}
    else:  # white space parts two calls, or nothing does; it never stands between brackets of one value
        apart = r"\s+" if around.separator else ""
        yield {**opened, **({"close_pattern": _spaced(close) + apart} if apart else {}), **body}


def _spaced(text: str) -> str:
    """Return the expression of brackets with any white space between them."""
    return r"\s*".join(escaped(c) for c in text if not c.isspace())


def _outer(around: Frame) -> str:
    """Return the expression of a section's opening without a marker, such as the bracket of a list."""
    text = around.outer_open.strip()
    if SHAPE.search(text) and not _varies(text):
        return ""
    return optional(text)[:-2] + r"\s*)?" if text else ""


def _opened(pattern: str) -> Field:
    return {"open_pattern": pattern}


def _varies(text: str) -> bool:
    """Return whether another call would write the text otherwise."""
    return ANY_ID in text or ANY_NUMBER in text
