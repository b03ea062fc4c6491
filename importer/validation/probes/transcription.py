"""The probe of transcription: a recording is accepted, and text comes back."""

from __future__ import annotations

import io
import math
import struct
import wave

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import Expectations, other_task
from importer.validation.outcome import Fail, Outcome, Pass

NAME = "transcription"
LESSON = (
    "Models for speech were listed as chat models, and the server had no audio package or no path for sound."
)
TASKS = frozenset({"transcription"})
PATH = "/v1/audio/transcriptions"
RATE, SECONDS, PITCH = 16_000, 1, 440  # samples a second, seconds, hertz


class TranscriptionReason(ReasonKind):
    """The reasons of ``transcription``."""

    NO_TEXT = "no-text", "the answer has no text"
    TEXT = "text", "text {text!r}"


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: the model transcribes nothing."""
    return other_task(promise, TASKS)


def run(ctx: Context) -> Outcome:
    """Send a second of a tone; what the model hears in it is not judged."""
    answer = ctx.client.upload(PATH, {"model": ctx.model, "temperature": "0"}, tone(), ctx.log)
    text = answer.get("text") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        return Fail(Reason(TranscriptionReason.NO_TEXT), "engine")
    return Pass(Reason(TranscriptionReason.TEXT, text=text.strip()[:80]))


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
