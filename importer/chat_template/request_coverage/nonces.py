"""Nonces: words that stand nowhere else, and texts with everything that templates are known to alter."""

from __future__ import annotations

import hashlib

LETTERS = b"abcdefghijkmnpqrstuvwxyz"
LETTER_OF = bytes(LETTERS[byte % len(LETTERS)] for byte in range(256))
NAMED = "_7"  # the end of each name
# Between two nonces: markup, quotes, every end at which a text may be cut, odd numbers and letters.
ODD = (
    ' <b>5 < 6 & "seven" it\'s: one, two; three? Four! Five. Six\n'
    "next line, 10,000.50 Zürich 東京 🙂\n\nNext paragraph. "
)
SHORT_ODD = ' <i>5 < 6 & "seven" it\'s Zürich 東京 '  # for a value of one line
LONG = "0123456789 lorem ipsum dolor\n"
TIMES = 290  # lines of a long text
EDGES = ("\n   ", "   \n")  # white space around a text


def nonce(place: str) -> str:
    """Return a word of ten letters in mixed case, the same for the same place every day."""
    word = hashlib.sha256(place.encode()).digest()[:10].translate(LETTER_OF).decode()
    # Capitals inside show a change of case; a small first letter keeps the word a plain identifier.
    return word[:2] + word[2].upper() + word[3:5] + word[5].upper() + word[6:8] + word[8].upper() + word[9]


def name(place: str) -> str:
    """Return a name that every engine accepts for a function or a parameter."""
    return nonce(place) + NAMED


def text(place: str, odd: str = ODD) -> str:
    """Return a text that begins and ends with nonces of its own, and odd characters between them."""
    return f"{nonce(place)}{odd}{nonce(place + ' end')}"


def ends(place: str) -> tuple[str, str]:
    """Return the first and the last word of ``text(place)``."""
    return nonce(place), nonce(place + " end")


def long_text(place: str) -> str:
    """Return a text of more than 8,000 characters between its nonces."""
    return f"{nonce(place)}\n{LONG * TIMES}{nonce(place + ' end')}"


def number(place: str) -> int:
    """Return a negative number of seven digits."""
    return -(1_000_003 + int.from_bytes(hashlib.sha256(place.encode()).digest()[:3]) % 8_000_000)
