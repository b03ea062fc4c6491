"""Sentences about gallery."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "DatabaseReason": {"form": "it has the form sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"},
    "KeyNameReason": {"line": "it is a line of at most {most} characters"},
}
