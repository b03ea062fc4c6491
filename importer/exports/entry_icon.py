"""The icon of an entry: a square with the first letters of the organisation, as an address that holds it.

LocalAI's page loads an icon by its address. The Hub names the picture of an organisation only in an answer of
its own, and not whether a name is an organisation or a user. A picture of the Hub would also be requested by
each browser that opens a gallery. So the picture is importer's, and needs no request.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

WORD = re.compile(r"[A-Za-z0-9]+", re.ASCII)
SAFE = "'=/:(),.-"  # characters that an address may hold as they are


def icon(model: str) -> str:
    """Return a ``data:`` address of an SVG for the owner of ``OWNER/NAME``; the same one each time."""
    owner = model.partition("/")[0]
    words = WORD.findall(owner) or ["?"]
    letters = (words[0][0] + words[1][0] if len(words) > 1 else words[0][:2]).upper()
    hue = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:2], "big") % 360
    picture = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 64 64'>"
        f"<rect width='64' height='64' rx='12' fill='hsl({hue},45%,35%)'/>"
        "<text x='32' y='42' font-family='sans-serif' font-size='28' text-anchor='middle' fill='white'>"
        f"{letters}</text></svg>"
    )
    return f"data:image/svg+xml,{quote(picture, safe=SAFE)}"
