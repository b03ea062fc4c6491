"""The probe of models that embed, rank, classify, transcribe or complete; and images in a prompt."""

from __future__ import annotations

import base64
import io
import math
import struct
import wave
import zlib
from collections.abc import Mapping, Sequence
from math import isclose, isfinite, sqrt
from typing import Any

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import RequestRefused, TemplateRefusedError
from importer.validation.expectations import Expectations
from importer.validation.outcome import (
    Fail,
    Outcome,
    Pass,
    Stage,
    differs,
    holding,
    needless,
    not_done,
    note,
    quoted,
)
from importer.validation.probe import Run, probe
from importer.validation.prompts import Prompt
from importer.validation.remedy import Need, Remedy, template

TEXTS = ("A boat is on the lake.", "The invoice is due on Friday.", "A boat is on the lake.")
APART = 0.04  # of their length: what two rows of one text differ by; batches round otherwise
UNIT = 0.01  # distance of a length from one
SETTING = Reason(Remedy.CORRECT_SETTING, key="importer.outputs")


def _embedding(ctx: Context) -> Outcome:
    """Embed two texts, the first of them twice, and judge the vectors."""
    if ctx.promise.outputs.get("each") == "token":
        return _each_token(ctx)
    answer = ctx.client.post("/v1/embeddings", {"model": ctx.model, "input": list(TEXTS)}, ctx.log)
    outputs = ctx.promise.outputs
    return judge_embedding(vectors(answer, "embedding"), outputs.get("dimensions"), outputs.get("normalized"))


def _each_token(ctx: Context) -> Outcome:
    body = {"model": ctx.model, "input": list(TEXTS), "task": "token_embed"}
    rows = vectors(ctx.client.post("/pooling", body, ctx.log), "data")
    return _no_rows(rows) or holding(f"a vector for each of {len(rows[0])} tokens")


def vectors(answer: Any, key: str) -> list[Any]:
    """Return the value of ``key`` of each row under ``data``, in the order of their index."""
    data = answer.get("data") if isinstance(answer, dict) else None
    rows = [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []
    return [row.get(key) for row in sorted(rows, key=lambda row: row.get("index") or 0)]


def _no_rows(rows: list[Any]) -> Fail | None:
    if len(rows) == len(TEXTS) and all(isinstance(row, list) and row for row in rows):
        return None
    return differs("rows of numbers", len(rows), len(TEXTS))


def judge_rows(rows: list[Any], promised: int | None) -> Outcome:
    """Judge a row of numbers for each text; ``promised`` is its size, where the document has it."""
    if (none := _no_rows(rows)) is not None:
        return none
    if not all(isinstance(x, int | float) and isfinite(x) for row in rows for x in row):
        return differs("a row", "a value that is no number", "numbers", Stage.DRAWN)
    sizes = {len(row) for row in rows}
    if len(sizes) > 1 or (promised is not None and sizes != {promised}):
        return differs("values of a row", max(sizes), promised or min(sizes), Stage.START, SETTING)
    first, again = rows[0], rows[2]
    apart = norm([a - b for a, b in zip(first, again, strict=True)]) / (norm(first) or 1.0)
    if apart > APART:
        return differs("two rows of one text", f"{apart:.1%} apart", "alike")
    return holding(f"{len(first)} values, length {norm(first):.3f}")


def judge_embedding(rows: list[Any], dimensions: int | None, normalized: bool | None) -> Outcome:
    """Judge the vectors of ``TEXTS`` against the document's size and length, where it has them."""
    outcome = judge_rows(rows, dimensions)
    if isinstance(outcome, Pass) and rows[0] == rows[1]:
        return differs("the vectors of two texts", "one", "two", Stage.DRAWN)
    if isinstance(outcome, Pass) and normalized is True and abs(norm(rows[0]) - 1) > UNIT:
        return differs("the length of a vector", round(norm(rows[0]), 3), 1, Stage.START, SETTING)
    return outcome


def norm(vector: list[float]) -> float:
    """Return the length of a vector."""
    return sqrt(sum(x * x for x in vector))


QUERY = "Which city is the capital of France?"
DOCUMENTS = (
    "Bananas are rich in potassium.",
    "Paris is the capital of France.",
    "The invoice is due on Friday.",
)
BEST = 1
CLOSE = 1e-2  # relative difference of two scores of one pair; batches round otherwise


def _rerank(ctx: Context) -> Outcome:
    """Rank three documents twice."""
    body = {"model": ctx.model, "query": QUERY, "documents": list(DOCUMENTS)}
    first, again = (scores(ctx.client.post("/rerank", body, ctx.log)) for _ in range(2))
    return judge_rerank(first, again)


def scores(answer: Any) -> list[tuple[int, float]]:
    """Return index and score of each document, in the order of the answer; empty for another shape."""
    results = answer.get("results") if isinstance(answer, dict) else None
    rows = [row for row in results if isinstance(row, dict)] if isinstance(results, list) else []
    found = [(row.get("index"), row.get("relevance_score")) for row in rows]
    return [(i, float(s)) for i, s in found if isinstance(i, int) and isinstance(s, int | float)]


def judge_rerank(first: list[tuple[int, float]], again: list[tuple[int, float]]) -> Outcome:
    """Judge two rankings of ``DOCUMENTS``."""
    for ranking in (first, again):
        scored = [score for _, score in ranking]
        if sorted(i for i, _ in ranking) != [*range(len(DOCUMENTS))]:
            return differs("scores", len(ranking), len(DOCUMENTS))
        if not all(map(isfinite, scored)):
            return differs("scores", scored, "numbers", Stage.DRAWN)
        if scored != sorted(scored, reverse=True):
            return differs("scores", scored, "the best first")
    one, other = dict(first), dict(again)
    if not all(isclose(one[i], other[i], rel_tol=CLOSE, abs_tol=1e-4) for i in one):
        return differs("the scores of a second request", other, one)
    if first[0][0] != BEST:
        return not_done("the model puts another document first", quoted(DOCUMENTS[first[0][0]]), trials=2)
    return holding(f"the right document is first, with {first[0][1]:.3f}", 2)


def _classes(ctx: Context) -> Outcome:
    """Classify the texts; of a model with values for each token those of the first token."""
    body = {"model": ctx.model, "input": list(TEXTS)}
    if ctx.promise.kind == "classifier" and ctx.promise.outputs.get("each") != "token":
        rows = vectors(ctx.client.post("/classify", body, ctx.log), "probs")
    else:
        each = vectors(ctx.client.post("/pooling", body, ctx.log), "data")
        rows = [row[0] if isinstance(row, list) and row and isinstance(row[0], list) else row for row in each]
    return judge_rows(rows, ctx.promise.outputs.get("labels"))


PATH = "/v1/audio/transcriptions"
RATE, SECONDS, PITCH = 16_000, 1, 440  # samples a second, seconds, hertz


def _transcription(ctx: Context) -> Outcome:
    """Send a second of a tone; what the model hears in it is not judged."""
    answer = ctx.client.upload(PATH, {"model": ctx.model, "temperature": "0"}, tone(), ctx.log)
    text = answer.get("text") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        return differs("a transcript", "no text", "a text")
    return holding(f"text {text.strip()[:80]!r}")


def tone() -> bytes:
    """Return a WAV file with one second of a tone."""
    samples = (math.sin(2 * math.pi * PITCH * i / RATE) for i in range(RATE * SECONDS))
    data = b"".join(struct.pack("<h", int(x * 12_000)) for x in samples)
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(RATE)
        recording.writeframes(data)
    return file.getvalue()


TEXT = "The capital of France is"
LENGTH = 16  # tokens of a completion


def _completion(ctx: Context) -> Outcome:
    """Request a few tokens more."""
    body = {"model": ctx.model, "prompt": TEXT, "max_tokens": LENGTH, **ctx.promise.client_sampling}
    text = ctx.client.completion(body, ctx.log).content
    if not text.strip():
        return not_done("the model had nothing to add")
    return holding(f"went on {text.strip()[:80]!r}")


OUTPUTS: Mapping[str, Run] = {
    "embedding": _embedding, "reranker": _rerank, "classifier": _classes, "reward": _classes,
    "transcription": _transcription,
}  # fmt: skip


def needs_task_output(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: the model chats."""
    return note("the model chats") if promise.chats and promise.kind not in OUTPUTS else None


@probe(
    "task-output",
    "Models that embed, rank, transcribe or complete were served as chats: 404, another size, or no path.",
    needs=needs_task_output,
    tasks=OUTPUTS,
)
def task_output(ctx: Context) -> Outcome:
    """Judge vectors, scores, classes, a transcript, or how a base model goes on."""
    return OUTPUTS.get(ctx.promise.kind, _completion)(ctx)


SIDE = 64  # pixels
RED, BLUE = (220, 20, 20), (20, 20, 220)
QUESTION = "What colour is the image?"
BRIEF = 16  # tokens of an answer
BESIDE = 8  # tokens that a template writes beside an image
REMEDY = template(Need.RENDER_IMAGES)
Counted = int | None


def images(ctx: Context) -> Outcome:
    """Send four kinds of content; the length of each prompt shows whether an image reached it."""
    results: dict[str, Counted | RequestRefused] = {}
    for name, parts in ways(ctx.promise.images).items():
        try:
            results[name] = _counted(ctx, name, parts)
        except RequestRefused as refused:
            results[name] = refused
    refused_one = any(isinstance(result, RequestRefused) for result in results.values())
    return judge_images(results, rendered=_rendered(ctx) if refused_one else None)


def _rendered(ctx: Context) -> bool | None:
    """Return whether the template writes anything for an image; ``None`` where that is unknown."""
    if ctx.render is None:
        return None
    try:
        without, one = (ctx.render(_prompt(name, ways(1)[name])) for name in ("text only", "an image"))
    except TemplateRefusedError:
        return False
    return None if one is None else one != without


def ways(images: int) -> dict[str, list[dict[str, object]]]:
    """Return the contents to send by name; two images only where the document allows two."""
    text: dict[str, object] = {"type": "text", "text": QUESTION}
    red, blue = (_image(colour) for colour in (RED, BLUE))
    sent = {"text only": [text], "an image": [red, text], "an image only": [red]}
    return sent if images < 2 else sent | {"two images": [red, blue, text]}


def _image(colour: tuple[int, int, int]) -> dict[str, object]:
    data = base64.b64encode(png(colour)).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _counted(ctx: Context, name: str, parts: Sequence[Mapping[str, object]]) -> Counted:
    return ctx.ask(_prompt(name, parts), max_tokens=BRIEF).usage.prompt


def _prompt(name: str, parts: Sequence[Mapping[str, object]]) -> Prompt:
    content: Any = QUESTION if name == "text only" else list(parts)
    return Prompt(f"images: {name}", ({"role": "user", "content": content},))


def judge_images(results: Mapping[str, Counted | RequestRefused], *, rendered: bool | None = None) -> Outcome:
    """Judge the tokens of each prompt, or its refusal; ``rendered`` is whether the template has images."""
    counts: dict[str, Counted] = {}
    for name, result in results.items():
        if isinstance(result, RequestRefused):
            if name == "two images" and not result.broke:
                limit = Reason(Remedy.CORRECT_SETTING, key="limit_mm_per_prompt")
                return Fail(result.reason, Stage.START, limit, within=(name,))
            if name != "text only" and (not result.broke or rendered is False):
                return Fail(result.reason, Stage.TEMPLATE, REMEDY, within=(name,))
            return Fail(result.reason, Stage.WHOLE, within=(name,))
        counts[name] = result
    if None in counts.values():
        return needless("all are answered; whether an image is seen, no count of tokens tells")
    known = {name: count or 0 for name, count in counts.items()}
    for more, less in (("an image", "text only"), ("two images", "an image")):
        if more in known and known[more] <= known[less]:
            what, least = f"prompt_tokens with {more}", f"more than {known[less]}, those with {less}"
            return differs(what, known[more], least, Stage.TEMPLATE, REMEDY, trials=len(known))
    one = known["an image"] - known["text only"] if "two images" in known else 0
    if one and known["two images"] - known["an image"] not in range(one - BESIDE, one + BESIDE + 1):
        both = known["two images"] - known["text only"]
        return differs(
            "prompt_tokens of two images of one size", both, 2 * one, Stage.PROMPT, trials=len(known)
        )
    shown = ", ".join(f"{name} {count}" for name, count in known.items())
    return holding(f"tokens of the prompt: {shown}", len(known))


def png(colour: tuple[int, int, int], side: int = SIDE) -> bytes:
    """Return a square of one colour as PNG."""
    rows = (b"\0" + bytes(colour) * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
