"""What travels to the far end and back: document, options and importer itself; then the result."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from importer import config
from importer.config_file import template_file
from importer.config_file.document import Report
from importer.config_file.receipt import Receipt
from importer.config_file.store import StoredDocument, load, make_folder, receipt_path, write_all
from importer.errors import LauncherError
from importer.frozen import frozen
from importer.launchers.answers import parsed
from importer.version import DISTRIBUTION, __version__

SCHEMA = 1


@frozen
class Bundle:
    """A document to run elsewhere. ``receipt`` is its receipt without the exchanges of its runs.

    ``task``  the id of the run. ``probes``  only these, and the report is partial. ``measure``  its memory
    with random weights, in place of a validation.
    """

    task: str
    name: str
    digest: str
    engine: str
    text: str
    receipt: str | None
    template: str | None
    fetch: bool = True
    score: int = 0
    time_limit: float | None = None
    probes: Sequence[str] | None = None
    measure: bool = False

    @classmethod
    def of(cls, task: str, stored: StoredDocument, engine: str, **options: Any) -> Bundle:
        """Return the bundle of a document; raises LauncherError("folder-beside") and DocumentError.

        A model in a folder beside the document would be another folder at the far end.
        """
        model = str((stored.data.get("parameters") or {}).get("model", ""))
        if Path(stored.reference).is_absolute() and not Path(model).is_absolute():
            raise LauncherError("folder-beside", name=stored.name, model=model)
        template = stored.chat_template()
        receipt = None if stored.receipt is None else _light(stored.receipt).to_text()
        text = None if template is None else template.text
        return cls(task, stored.name, stored.digest, engine, stored.text, receipt, text, **options)

    def to_bytes(self) -> bytes:
        """Return the JSON in UTF-8."""
        data = {"schema": SCHEMA} | {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(data, ensure_ascii=False).encode()

    def unpack(self, folder: Path) -> StoredDocument:
        """Write the files into an empty folder and return the document.

        Raises LauncherError("bad-bundle") where its digest is not that of the bundle, and DocumentError.
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
            raise LauncherError("bad-bundle", problem=f"{stored.digest} ≠ {self.digest}")
        return stored


def read(data: bytes) -> Bundle:
    """Return the bundle of its bytes; raises LauncherError("bad-bundle")."""
    try:
        fields = json.loads(data)
        if fields.pop("schema") != SCHEMA:
            raise LauncherError("bad-bundle", problem="schema")
        return Bundle(**fields)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise LauncherError("bad-bundle", problem=type(error).__name__) from None


def _light(receipt: Receipt) -> Receipt:
    """Return the receipt without what is large and not needed for a run."""
    runs = [_without_exchanges(run) for run in receipt.runs]
    own = runs[0] if receipt.validation is not None else None
    earlier = runs[1:] if receipt.validation is not None else runs
    return replace(receipt, validation=own, earlier=earlier, partial=None, score=None)


def _without_exchanges(run: Report) -> Report:
    return {**run, "outcomes": []}


MARK, STEP = "importer-result", "importer-step"
WIDTH = 4000  # characters of a line
LARGEST = 256 * 1024 * 1024  # bytes of a result, as of a receipt
LINE = re.compile(rf"{MARK} ([0-9]{{1,6}})/([0-9]{{1,6}}) ([A-Za-z0-9+/=]+)")


@frozen
class Result:
    """What the far end did: a report on the data of ``digest``, or the error that kept it from one.

    ``error``  its kind, its sentence and its exit code. ``machine``  host, device, card, driver, image.
    """

    task: str
    digest: str
    importer: str
    machine: Mapping[str, object]
    report: Mapping[str, object] | None = None
    error: Mapping[str, object] | None = None

    def to_lines(self) -> Iterator[str]:
        """Yield the lines that ``read`` understands."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        text = json.dumps(data, ensure_ascii=False, default=list).encode()
        packed = base64.b64encode(zlib.compress(text, 6)).decode()
        pieces = [packed[at : at + WIDTH] for at in range(0, len(packed), WIDTH)]
        for number, piece in enumerate(pieces, 1):
            yield f"{MARK} {number}/{len(pieces)} {piece}"


def read_result(output: str, task: str, digest: str, where: str) -> Result:
    """Return the result in an output of ``run-task``.

    Raises LauncherError: "bad-result" where it is not whole, "other-digest" where it is of other data.
    """
    problem = "its lines are not whole"
    try:
        text = _unpacked(output)
        problem = "it is not of the form that the importer writes"
        result = parsed(Result, text, LARGEST)
    except (ValueError, zlib.error):
        raise LauncherError("bad-result", where=where, run=task, problem=problem) from None
    if result.digest != digest or result.task != task:
        raise LauncherError("other-digest", where=where, run=task, sent=digest, got=result.digest[:100])
    told = result.error is None or isinstance(result.error.get("message"), str)
    if (result.report is None) == (result.error is None) or not told:
        raise LauncherError("bad-result", where=where, run=task, problem=problem)
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


PACKAGE = Path(__file__).resolve().parents[1]
TABLES = ("parser_defaults.json", "inference_defaults.json")  # in a checkout they lie beside the package
MADE = (1980, 1, 1, 0, 0, 0)  # of every file: equal code is an equal wheel
INFO = f"model_importer-{__version__}.dist-info"
WHEEL = "Wheel-Version: 1.0\nGenerator: importer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY = "[console_scripts]\nimporter = importer.__main__:main\n"


def pack() -> Path:
    """Return the wheel, written once for the same code; raises DocumentError("cannot-write")."""
    files = dict(sorted(_files()))
    key = hashlib.sha256()
    for name, data in files.items():
        key.update(name.encode() + hashlib.sha256(data).digest())
    path = config.home() / "wheels" / key.hexdigest()[:16] / f"model_importer-{__version__}-py3-none-any.whl"
    if path.exists():
        return path
    make_folder(path.parent)
    part = path.with_suffix(f".{secrets.token_hex(6)}.part")
    record = [f"{name},sha256={_hash(data)},{len(data)}\n" for name, data in files.items()]
    files[f"{INFO}/RECORD"] = "".join([*record, f"{INFO}/RECORD,,\n"]).encode()
    with zipfile.ZipFile(part, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, MADE), data, zipfile.ZIP_DEFLATED)
    part.replace(path)
    return path


def _files() -> Iterator[tuple[str, bytes]]:
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
            yield f"importer/{path.relative_to(PACKAGE).as_posix()}", path.read_bytes()
    for name in TABLES:
        beside = PACKAGE.parent / name
        if not (PACKAGE / "data" / name).exists() and beside.exists():
            yield f"importer/data/{name}", beside.read_bytes()
    about = metadata.distribution(DISTRIBUTION).read_text("METADATA") or ""
    yield f"{INFO}/METADATA", about.encode()
    yield f"{INFO}/WHEEL", WHEEL.encode()
    yield f"{INFO}/entry_points.txt", ENTRY.encode()


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
