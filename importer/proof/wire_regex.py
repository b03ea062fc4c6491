r"""Regular expressions of learnt text, in the syntax that Python's and Rust's engines share.

vLLM's Rust frontend compiles a response template with Rust's ``regex``: no look-around, no group twice, and
a delimiter must begin with literal text. ``\\<`` is an anchor there, so only characters with a meaning in
both are escaped.
"""

from __future__ import annotations

import re

ANY_ID = "\ue000"  # in place of a call's id, or of a name that is repeated
ANY_NUMBER = "\ue001"  # in place of a count, such as a call's index
NAME = r"[\w.\-]+"
SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
PIECE = re.compile(rf"(\s+)|([{ANY_ID}{ANY_NUMBER}])")
STRING = r'"(?:[^"\\]|\\.)*"'
DEPTH = 6  # levels of nested brackets; neither engine's syntax for recursion is shared


def escaped(text: str) -> str:
    """Return the expression of exactly this text."""
    return SPECIAL.sub(lambda m: "\\" + m[0], text).replace("\n", r"\n").replace("\t", r"\t")


def flexible(text: str) -> str:
    """Return the expression of learnt text: any white space where some stands, any id, any number."""
    return "".join(_pieces(text, r"\s*"))


def beside_value(text: str) -> str:
    """Return the expression of text that touches a value: its white space is optional, no other is taken."""
    return "".join(_pieces(text, None))


def _pieces(text: str, space: str | None) -> list[str]:
    written = []
    end = 0
    for match in PIECE.finditer(text):
        written.append(escaped(text[end : match.start()]))
        if match[1]:
            written.append(space or "".join(f"{escaped(c)}?" for c in match[1]))
        else:
            written.append(NAME if match[2] == ANY_ID else r"\d+")
        end = match.end()
    return [*written, escaped(text[end:])]


def optional(text: str) -> str:
    """Return the expression of learnt text that may be absent; empty for no text."""
    return f"(?:{flexible(text)})?" if text.strip() else ""


def json_value() -> str:
    """Return the expression of one JSON value, nested to a bounded depth."""
    nested = rf'[\[{{](?:[^\[\]{{}}"]|{STRING})*[\]}}]'
    for _ in range(DEPTH):
        nested = rf'[\[{{](?:[^\[\]{{}}"]|{STRING}|{nested})*[\]}}]'
    return rf'{STRING}|{nested}|[^\[\]{{}}",\s()]+'
