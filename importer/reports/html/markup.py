"""Building markup from values: whatever is put in is text, unless it was built here; nothing can be live.

Only the elements and attributes below can be made. None of them loads, runs or sends anything, and an address
is a place in the same page.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from importer.reports.report_model import plain

ELEMENTS = {
    "a", "article", "body", "code", "dd", "details", "div", "dl", "dt", "footer", "h1", "h2", "h3", "head",
    "header", "html", "li", "main", "meta", "p", "pre", "rect", "section", "span", "strong", "style",
    "summary", "svg", "table", "tbody", "td", "th", "thead", "title", "tr", "ul",
}  # fmt: skip
VOID = {"meta"}
ATTRIBUTES = {
    "aria-hidden", "aria-label", "aria-labelledby", "charset", "class", "content", "height", "href",
    "http-equiv", "id", "lang", "name", "open", "role", "scope", "tabindex", "viewBox", "width", "x", "y",
}  # fmt: skip
Content = object  # a value, None, or any of these in an iterable


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def el(_name: str, /, *content: Content, **attributes: object) -> Markup:
    """An element; ``class_`` and ``aria_label`` stand for ``class`` and ``aria-label``; None leaves one out.

    Raises ValueError for what a page must not hold.
    """
    if _name not in ELEMENTS:
        raise ValueError(f"no page of ours has an element {_name!r}")
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    inner = "" if _name in VOID else f"{join(*content)}</{_name}>"
    return Markup(f"<{_name}{given}>{inner}")


def join(*content: Content) -> Markup:
    """One after the other; text is escaped."""
    return Markup("".join(_parts(content)))


def verbatim(text: str) -> Markup:
    """Style of our own, which must not be escaped; never anything that was read. Raises ValueError."""
    if "<" in text:
        raise ValueError("a style holds no markup")
    return Markup(text)


def _parts(content: Iterable[Content]) -> Iterable[str]:
    for part in content:
        if part is None:
            continue
        if isinstance(part, Markup):
            yield part
        elif isinstance(part, str):
            yield html.escape(plain(part))
        elif isinstance(part, Iterable):
            yield from _parts(part)
        else:
            yield html.escape(plain(str(part)))


def _attribute(key: str, value: object) -> str:
    name = "class" if key == "class_" else key if key == "viewBox" else key.replace("_", "-")
    text = str(value)
    if name not in ATTRIBUTES or (name == "href" and not text.startswith("#")):
        raise ValueError(f"no element of ours has {name}={text!r}")
    return f' {name}="{html.escape(plain(text))}"'
