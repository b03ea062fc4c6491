"""The probe of images: a vision model accepts text, an image with text, an image alone, and two images."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.errors import RequestRefused, TemplateRefusedError
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import Prompt
from importer.validation.remedy import Remedy


class ImagesReason(ReasonKind):
    """The reasons of ``images``."""

    NOT_PROMISED = "not-promised", "the document says nothing of images"
    NOT_COUNTED = "not-counted", "all are answered; whether an image is seen, no count of tokens tells"
    NO_MORE = "no-more", "{more}: {tokens} tokens, {less}: {fewer}"
    UNSEEN = "unseen", "the image does not reach the prompt: {counts}"
    COUNTED = "counted", "{name} {tokens}"
    SEEN = "seen", "tokens of the prompt: {counts}"


NAME = "images"
LESSON = "Requests without an image crashed a vision model; images were dropped, and the answer was invented."
SIDE = 64  # pixels
RED, BLUE = (220, 20, 20), (20, 20, 220)
QUESTION = "What colour is the image?"
BRIEF = 16  # tokens of an answer
REMEDY = Reason(Remedy.RENDER_IMAGES)
Counted = int | None


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, no vision, or an engine without images."""
    unseeing = None if promise.images else Reason(ImagesReason.NOT_PROMISED)
    return no_chat(promise) or unseeing or promise.lacks("images")


def run(ctx: Context) -> Outcome:
    """Send four kinds of content; the length of each prompt shows whether an image reached it."""
    results: dict[str, Counted | RequestRefused] = {}
    for name, parts in ways(ctx.promise.images).items():
        try:
            results[name] = _counted(ctx, name, parts)
        except RequestRefused as refused:
            results[name] = refused
    refused_one = any(isinstance(result, RequestRefused) for result in results.values())
    return judge(results, rendered=_rendered(ctx) if refused_one else None)


def _rendered(ctx: Context) -> bool | None:
    """Return whether the template writes anything for an image; ``None`` where that is unknown."""
    if ctx.render is None:
        return None
    try:
        without, one = (ctx.render(_prompt(name, ways(1)[name])) for name in ("text only", "an image"))
    except TemplateRefusedError:
        return False
    return None if one is None else one != without


def ways(images: int) -> dict[str, list[dict[str, Any]]]:
    """Return the contents to send by name; two images only where the document allows two."""
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


def judge(results: Mapping[str, Counted | RequestRefused], *, rendered: bool | None = None) -> Outcome:
    """Judge the tokens of each prompt, or its refusal; ``rendered`` is whether the template has images."""
    counts: dict[str, Counted] = {}
    for name, result in results.items():
        if isinstance(result, RequestRefused):
            if name == "two images" and not result.broke:
                return Fail(result.reason, "configuration", Reason(Remedy.ONE_IMAGE), within=(name,))
            if name != "text only" and (not result.broke or rendered is False):
                return Fail(result.reason, "configuration", REMEDY, within=(name,))
            return Fail(result.reason, "engine", within=(name,))
        counts[name] = result
    if None in counts.values():
        return NotApplicable(Reason(ImagesReason.NOT_COUNTED))
    known = {name: count or 0 for name, count in counts.items()}
    for more, less in (("an image", "text only"), ("two images", "an image")):
        if more in known and known[more] <= known[less]:
            what = Reason(ImagesReason.NO_MORE, more=more, tokens=known[more], less=less, fewer=known[less])
            return Fail(Reason(ImagesReason.UNSEEN, counts=what), "configuration", REMEDY, len(known))
    reasons = tuple(Reason(ImagesReason.COUNTED, name=name, tokens=count) for name, count in known.items())
    return Pass(Reason(ImagesReason.SEEN, counts=reasons), trials=len(known))


def png(colour: tuple[int, int, int], side: int = SIDE) -> bytes:
    """Return a square of one colour as PNG."""
    rows = (b"\0" + bytes(colour) * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
