"""The importer as a wheel, made of its own installed files: the far end runs the same code."""

from __future__ import annotations

import base64
import hashlib
import secrets
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from importer import config
from importer.config_file.store import make_folder
from importer.version import __version__

PACKAGE = Path(__file__).resolve().parents[1]
TABLES = ("parser_defaults.json", "inference_defaults.json")  # in a checkout they lie beside the package
MADE = (1980, 1, 1, 0, 0, 0)  # of every file: equal code is an equal wheel
INFO = f"importer-{__version__}.dist-info"
WHEEL = "Wheel-Version: 1.0\nGenerator: importer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY = "[console_scripts]\nimporter = importer.__main__:main\n"


def pack() -> Path:
    """Return the wheel, written once for the same code; raises DocumentError("cannot-write")."""
    files = dict(sorted(_files()))
    key = hashlib.sha256()
    for name, data in files.items():
        key.update(name.encode() + hashlib.sha256(data).digest())
    path = config.home() / "wheels" / key.hexdigest()[:16] / f"importer-{__version__}-py3-none-any.whl"
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
    about = metadata.distribution("importer").read_text("METADATA") or ""
    yield f"{INFO}/METADATA", about.encode()
    yield f"{INFO}/WHEEL", WHEEL.encode()
    yield f"{INFO}/entry_points.txt", ENTRY.encode()


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
