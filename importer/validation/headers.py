"""Headers that go with each request to a running server: their names, their values, and what no header may
change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from importer.errors import UsageError
from importer.reasons import Reason, ReasonKind


class RequestHeaderReason(ReasonKind):
    """Why a header is refused."""

    NOT_A_NAME = "not-a-name", "has no valid name"
    RESERVED = "reserved", "belongs to the request itself"
    NO_VALUE = "no-value", "has no value"
    NOT_A_VALUE = "not-a-value", "has a value that is not one line of printable ASCII"
    TWICE = "twice", "is given twice"
    BESIDE_KEY = "beside-key", "is given beside a key, which is sent under this name"


NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # a token of RFC 9110
VALUE = re.compile(r"[!-~](?:[ -~\t]{0,8190}[!-~])?")  # printable ASCII without white space at its ends
# The request's own: its length and form, its connection, its host.
RESERVED = frozenset(
    ("accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host",
     "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)  # fmt: skip
KEY = "authorization"  # the header of a key


def checked(headers: Iterable[tuple[str, str]], *, key: bool = False) -> dict[str, str]:
    """Return headers by name, ``key`` where the request has a key beside them.

    Raises UsageError("bad-header"), which never has a value.
    """
    taken: dict[str, str] = {}
    for number, (name, value) in enumerate(headers, 1):
        problem = _problem(name, value.strip(), {other.lower() for other in taken}, key=key)
        if problem is not None:  # what is no name may be a value
            shown = f"number {number}" if problem is RequestHeaderReason.NOT_A_NAME else name
            raise UsageError("bad-header", header=shown, problem=Reason(problem))
        taken[name] = value.strip()
    return taken


def _problem(name: str, value: str, taken: set[str], *, key: bool) -> RequestHeaderReason | None:
    if not NAME.fullmatch(name):
        return RequestHeaderReason.NOT_A_NAME
    if name.lower() in RESERVED:
        return RequestHeaderReason.RESERVED
    if name.lower() in taken:
        return RequestHeaderReason.TWICE
    if key and name.lower() == KEY:
        return RequestHeaderReason.BESIDE_KEY
    if not value:
        return RequestHeaderReason.NO_VALUE
    return None if VALUE.fullmatch(value) else RequestHeaderReason.NOT_A_VALUE
