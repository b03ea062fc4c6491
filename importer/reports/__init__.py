"""Reports of a validation. ``FORMATS`` has one line for each; a format opens and starts nothing."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import cast

from importer.errors import UsageError
from importer.frozen import frozen
from importer.registry import Registry
from importer.reports.report_model import ReportModel, Write


@frozen
class ReportFormat:
    """The reader of a format, the ending of its files, and the module with its ``write``."""

    reader: str
    ending: str
    module: str

    def write(self, sheet: ReportModel) -> str:
        """Return the report's text; raises DocumentError("never-validated") where it needs a run."""
        function = cast(Write, import_module(self.module).write)
        return function(sheet)


FORMATS = Registry[ReportFormat]("renderers", {
    "terminal": ReportFormat("a person at a terminal", ".txt", "importer.reports.terminal"),
    "json": ReportFormat("a program", ".json", "importer.reports.json_report"),
    "junit": ReportFormat("a CI system", ".xml", "importer.reports.junit"),
    "html": ReportFormat("a browser: one page to read and send on", ".html", "importer.reports.html"),
}, ReportFormat, lambda part: import_module(part.module).write)  # fmt: skip


def of_file(name: str) -> ReportFormat:
    """Return the format for the ending of a file name; raises UsageError("unknown-report")."""
    ending = PurePath(name).suffix.lower()
    for _, known_format in FORMATS.every():
        if known_format.ending == ending:
            return known_format
    known = ", ".join(f"{known_format.ending} ({name})" for name, known_format in FORMATS.every())
    raise UsageError("unknown-report", name=name, known=known)
