"""Types of arguments that are paths: argparse ends with the usage, status 2, before anything is done."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path


def folder(text: str) -> Path:
    """Return a folder that is there; raises ArgumentTypeError."""
    return _there(text, "folder", Path(text).is_dir())


def file(text: str) -> Path:
    """Return a file that is there; raises ArgumentTypeError."""
    return _there(text, "file", Path(text).is_file())


def output(text: str) -> Path:
    """Return the path of a file to write, in a folder that is there; raises ArgumentTypeError."""
    path = Path(text)
    folder(str(path.parent))
    if path.is_dir():
        raise ArgumentTypeError(f"{text} is a folder")
    return path


def _there(text: str, what: str, there: bool) -> Path:
    if not there:
        raise ArgumentTypeError(f"there is no {what} {text}")
    return Path(text)
