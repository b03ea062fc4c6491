"""The result of a run at the far end: JSON in lines of its standard output, bound to id and digest.

Every launcher can bring back text lines, and each cluster cuts long ones; so the result is compressed and
written in short lines, each with its number. Other lines between them do not matter.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from importer.errors import LauncherError
from importer.launchers.answers import parsed

MARK, STEP = "importer-result", "importer-step"
WIDTH = 4000  # characters of a line
LARGEST = 256 * 1024 * 1024  # bytes of a result, as of a receipt
LINE = re.compile(rf"{MARK} ([0-9]{{1,6}})/([0-9]{{1,6}}) ([A-Za-z0-9+/=]+)")


@dataclass(frozen=True, slots=True)
class Result:
    """What the far end did: a report on the data of ``digest``, or the error that kept it from one.

    ``error``  its kind, its sentence and its exit code. ``machine``  host, device, card, driver, image.
    """

    task: str
    digest: str
    importer: str
    machine: Mapping[str, Any]
    report: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    def to_lines(self) -> Iterator[str]:
        """Yield the lines that ``read`` understands."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        text = json.dumps(data, ensure_ascii=False, default=list).encode()
        packed = base64.b64encode(zlib.compress(text, 6)).decode()
        pieces = [packed[at : at + WIDTH] for at in range(0, len(packed), WIDTH)]
        for number, piece in enumerate(pieces, 1):
            yield f"{MARK} {number}/{len(pieces)} {piece}"


def read(output: str, task: str, digest: str, where: str) -> Result:
    """Return the result in an output of ``run-task``.

    Raises LauncherError: "bad-result" where it is not whole, "other-digest" where it is of other data.
    """
    try:
        result = parsed(Result, _unpacked(output), LARGEST)
    except (ValueError, zlib.error) as error:
        raise LauncherError("bad-result", where=where, run=task, problem=type(error).__name__) from None
    if result.digest != digest or result.task != task:
        raise LauncherError("other-digest", where=where, run=task, sent=digest, got=result.digest[:100])
    told = result.error is None or isinstance(result.error.get("message"), str)
    if (result.report is None) == (result.error is None) or not told:
        raise LauncherError("bad-result", where=where, run=task, problem="ValueError")
    return result


def has_result(output: str) -> bool:
    """Return whether an output has all lines of a result."""
    try:
        _unpacked(output)
    except (ValueError, zlib.error):
        return False
    return True


def last_step(output: str) -> str | None:
    """Return the newest line of progress in an output."""
    steps = [line for line in output.splitlines() if line.startswith(f"{STEP} ")]
    return steps[-1][len(STEP) + 1 :][:300] if steps else None


def _unpacked(output: str) -> bytes:
    pieces, total = dict[int, str](), 0
    for match in LINE.finditer(output):
        pieces[int(match[1])], total = match[3], int(match[2])
    if not total or pieces.keys() != {*range(1, total + 1)}:
        raise ValueError(total)
    try:
        packed = base64.b64decode("".join(pieces[n] for n in range(1, total + 1)), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, LARGEST)
    if not unpacker.eof:
        raise ValueError(LARGEST)
    return text
