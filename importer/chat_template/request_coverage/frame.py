"""Check the frame of a prompt: what the template itself writes around the texts of a request."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator

from importer.chat_template.request_coverage.findings import WayInFinding, WayInKind

UNSEEN = frozenset({"Cf", "Cc", "Co"})  # Unicode's formats, controls and private characters
SPACES = "\n\r\t"


def check(question: str, prompt: str, history: str, ends: Collection[str]) -> Iterator[WayInFinding]:
    """Yield what a prompt has that no model is trained with.

    ``question``  the one text of the request. ``history``  the same template's text before an earlier answer.
    ``ends``      tokens at which generation ends.
    """
    own = prompt.replace(question, "")
    unseen = sorted({c for c in own if unicodedata.category(c) in UNSEEN and c not in SPACES})
    if unseen:
        words = ", ".join(f"U+{ord(character):04X}" for character in unseen)
        yield WayInFinding(WayInKind.UNSEEN, conversation="bare", words=words)
    # A token that begins the answer in the history, too, is a header: some files name it among the ends.
    closed = [end for end in ends if prompt.rstrip().endswith(end) and not history.rstrip().endswith(end)]
    if closed:
        yield WayInFinding(WayInKind.CLOSED, conversation="bare", words=max(closed, key=len))
