"""What travels: the document and the options there, the result back. Each is one line of base64.

On stdin the first line is the task; its end is that of this side. On stdout each line of the far end is a
``Frame``: ``importer-run KIND TEXT``. Any other line is of a login, a program or a log.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from importer.document import template_file
from importer.document.receipt import Receipt
from importer.document.records import Report
from importer.document.store import StoredDocument, load, receipt_path, write_all
from importer.errors import RemoteError
from importer.frozen import frozen

LARGEST = 64 * 2**20  # bytes of a task and of a result, packed and unpacked
MOST_VALUES = 1_000_000  # of a result's JSON
MARK = "importer-run"
# One without an end goes to the last byte: else each of its quotes would be tried as a beginning.
STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class Frame(NamedTuple):
    """A line of the far end: ``hello`` with its version, ``step`` with a text, or ``result``."""

    kind: str
    text: str

    def line(self) -> bytes:
        """Return the line; an empty one before it ends what another program has begun."""
        return f"\n{MARK} {self.kind} {self.text}\n".encode("utf-8", "replace")

    @classmethod
    def read(cls, line: bytes) -> Frame | None:
        """Return the frame of a line, ``None`` for any other line."""
        if not line.startswith(MARK.encode()):
            return None
        mark, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
        kind, _, text = rest.partition(" ")
        return cls(kind, text) if mark == MARK and kind in ("hello", "step", "result") else None


@frozen
class Bundle:
    """A document to run elsewhere. ``receipt`` is its receipt without the exchanges of its runs.

    ``probes``  only these, and the report is partial. Everything may be read at the far end, so that it holds
    no secret.
    """

    name: str
    digest: str
    engine: str
    text: str
    receipt: str | None
    template: str | None
    fetch: bool = True
    thorough: bool = False
    time_limit: float | None = None
    probes: Sequence[str] | None = None

    @classmethod
    def of(cls, stored: StoredDocument, engine: str, **options: Any) -> Bundle:
        """Return the bundle of a document; raises RemoteError("folder-beside") and DocumentError.

        A model in a folder beside the document would be another folder at the far end.
        """
        model = str((stored.data.get("parameters") or {}).get("model", ""))
        if Path(stored.reference).is_absolute() and not Path(model).is_absolute():
            raise RemoteError("folder-beside", name=stored.name, model=model)
        template = stored.chat_template()
        receipt = None if stored.receipt is None else _light(stored.receipt).to_text()
        text = None if template is None else template.text
        return cls(stored.name, stored.digest, engine, stored.text, receipt, text, **options)

    def pack(self) -> str:
        """Return the line without its end."""
        return _packed(self)

    @classmethod
    def unpack(cls, line: bytes) -> Bundle:
        """Return the bundle of a line; raises RemoteError("bad-bundle")."""
        try:
            return cls(**json.loads(_unpacked(line)))
        except (ValueError, TypeError, RecursionError, zlib.error) as error:
            raise RemoteError("bad-bundle", problem=type(error).__name__) from None

    def write(self, folder: Path) -> StoredDocument:
        """Write the files into an empty folder and return the document.

        Raises RemoteError("bad-bundle") where its digest is not that of the bundle, and DocumentError.
        """
        path = folder / f"{Path(self.name).name}.yaml"
        contents = {path: self.text}
        if self.receipt is not None:
            contents[receipt_path(path)] = self.receipt
        if self.template is not None:
            contents[template_file.place(path)] = self.template
        write_all(contents)
        stored = load(path)
        if stored.digest != self.digest:
            raise RemoteError("bad-bundle", problem=f"{stored.digest} ≠ {self.digest}")
        return stored


@frozen
class Result:
    """What the far end did: a report on the data of ``digest``, or the error that kept it from one.

    ``error``  its kind, its sentence and its exit code. ``machine``  host, device, card, driver.
    """

    digest: str
    machine: Mapping[str, object]
    report: Mapping[str, object] | None = None
    error: Mapping[str, object] | None = None

    def pack(self) -> str:
        """Return the text of its frame."""
        return _packed(self)

    @classmethod
    def unpack(cls, text: str) -> Result:
        """Return the result of a frame's text; raises ValueError."""
        try:
            data = _unpacked(text.encode())
            bare = STRINGS.sub(b"", data)
            if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MOST_VALUES:
                raise ValueError(MOST_VALUES)
            values = json.loads(data)
            json.dumps(values, ensure_ascii=False, allow_nan=False).encode()  # what no reader could take
            result = cls(**values)
        except (TypeError, RecursionError, zlib.error) as problem:
            raise ValueError(str(problem)) from None
        error, report = result.error, result.report
        told = error is None or (isinstance(error, dict) and isinstance(error.get("message"), str))
        typed = isinstance(result.digest, str) and isinstance(result.machine, dict)
        if not (told and typed and (report is None or isinstance(report, dict))):
            raise ValueError(type(report))
        if (report is None) == (error is None):
            raise ValueError(error)
        return result


def _packed(made: Bundle | Result) -> str:
    data = {one.name: getattr(made, one.name) for one in fields(made)}
    text = json.dumps(data, ensure_ascii=False, default=list).encode("utf-8", "replace")
    return base64.b64encode(zlib.compress(text, 6)).decode()


def _unpacked(line: bytes) -> bytes:
    """Return what was packed into a line; raises ValueError, zlib.error."""
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b64decode(line.strip(), validate=True), LARGEST)
    if not unpacker.eof:
        raise ValueError(LARGEST)
    return data


def _light(receipt: Receipt) -> Receipt:
    """Return the receipt without what is large and not needed for a run."""
    runs: list[Report] = [{**run, "outcomes": []} for run in receipt.runs]
    own = runs[0] if receipt.validation is not None else None
    earlier = runs[1:] if receipt.validation is not None else runs
    return replace(receipt, validation=own, earlier=earlier, partial=None)
