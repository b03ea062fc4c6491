"""A model that sees takes text, an image with text, an image alone, and two images."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import RequestRefused, TemplateRefusedError
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import Prompt
from importer.validation.remedy import Remedy


class ImagesReason(StrEnum):
    """What ``images`` finds."""

    NOT_PROMISED = "not-promised"
    NOT_COUNTED = "not-counted"
    NO_MORE = "no-more"
    UNSEEN = "unseen"
    COUNTED = "counted"
    SEEN = "seen"


NAME = "images"
LESSON = "Requests without an image crashed a vision model; images were dropped, and the answer was invented."
SIDE = 64  # pixels
RED, BLUE = (220, 20, 20), (20, 20, 220)
QUESTION = "What colour is the image?"
BRIEF = 16  # tokens of an answer
REMEDY = Reason(Remedy.RENDER_IMAGES)
Counted = int | None


def needs(promise: Expectations) -> Reason | None:
    """Return a model that sees, and an engine that shows it something."""
    unseeing = None if promise.images else Reason(ImagesReason.NOT_PROMISED)
    return no_chat(promise) or unseeing or promise.lacks("images")


def run(ctx: Context) -> Outcome:
    """Ask in four ways; the prompt's length tells whether an image was shown."""
    found: dict[str, Counted | RequestRefused] = {}
    for name, parts in ways(ctx.promise.images).items():
        try:
            found[name] = _counted(ctx, name, parts)
        except RequestRefused as refused:
            found[name] = refused
    refused_one = any(isinstance(told, RequestRefused) for told in found.values())
    return judge(found, rendered=_rendered(ctx) if refused_one else None)


def _rendered(ctx: Context) -> bool | None:
    """Return whether the model's template writes anything for an image; ``None`` where nobody can tell."""
    if ctx.render is None:
        return None
    try:
        without, one = (ctx.render(_prompt(name, ways(1)[name])) for name in ("text only", "an image"))
    except TemplateRefusedError:
        return False
    return None if one is None else one != without


def ways(images: int) -> dict[str, list[dict[str, Any]]]:
    """Return what is sent; two images only where the document allows two."""
    text: dict[str, Any] = {"type": "text", "text": QUESTION}
    red, blue = (_image(colour) for colour in (RED, BLUE))
    sent = {"text only": [text], "an image": [red, text], "an image only": [red]}
    return sent if images < 2 else sent | {"two images": [red, blue, text]}


def _image(colour: tuple[int, int, int]) -> dict[str, Any]:
    data = base64.b64encode(png(colour)).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _counted(ctx: Context, name: str, parts: Sequence[Mapping[str, Any]]) -> Counted:
    return ctx.ask(_prompt(name, parts), max_tokens=BRIEF).usage.prompt


def _prompt(name: str, parts: Sequence[Mapping[str, Any]]) -> Prompt:
    content: Any = QUESTION if name == "text only" else list(parts)
    return Prompt(f"images: {name}", ({"role": "user", "content": content},))


def judge(found: Mapping[str, Counted | RequestRefused], *, rendered: bool | None = None) -> Outcome:
    """Return tokens of each prompt, or how it was refused; ``rendered`` says whether the template shows
    images.
    """
    counts: dict[str, Counted] = {}
    for name, told in found.items():
        if isinstance(told, RequestRefused):
            if name == "two images" and not told.broke:
                return Fail(told.reason, "configuration", Reason(Remedy.ONE_IMAGE), within=(name,))
            if name != "text only" and (not told.broke or rendered is False):
                return Fail(told.reason, "configuration", REMEDY, within=(name,))
            return Fail(told.reason, "engine", within=(name,))
        counts[name] = told
    if None in counts.values():
        return NotApplicable(Reason(ImagesReason.NOT_COUNTED))
    known = {name: count or 0 for name, count in counts.items()}
    for more, less in (("an image", "text only"), ("two images", "an image")):
        if more in known and known[more] <= known[less]:
            what = Reason(ImagesReason.NO_MORE, more=more, tokens=known[more], less=less, fewer=known[less])
            return Fail(Reason(ImagesReason.UNSEEN, counts=what), "configuration", REMEDY, len(known))
    told_all = tuple(Reason(ImagesReason.COUNTED, name=name, tokens=count) for name, count in known.items())
    return Pass(Reason(ImagesReason.SEEN, counts=told_all), trials=len(known))


def png(colour: tuple[int, int, int], side: int = SIDE) -> bytes:
    """Return a square of one colour."""
    rows = (b"\0" + bytes(colour) * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
