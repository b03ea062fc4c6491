"""The report as one HTML page: it loads nothing, runs nothing, and needs no network.

``page.html.jinja`` is the page, ``pieces.html.jinja`` its macros. With autoescape, every value is text.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from importer.reports import pictures, report_model
from importer.reports.html import drawing
from importer.reports.report_model import ReportModel
from importer.sentences import moment, plain

if TYPE_CHECKING:
    from jinja2 import Environment

CSS = files(__name__).joinpath("page.css").read_text(encoding="utf-8")
DIGEST = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{DIGEST}'; base-uri 'none'; form-action 'none'"


def write(sheet: ReportModel) -> str:
    """Return the page of a document; the same sheet makes the same bytes."""
    return environment().get_template("page.html.jinja").render(sheet=sheet)


@cache
def environment() -> Environment:
    """Return the environment of the templates; jinja2 is imported with the first page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=PackageLoader(__name__, "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    made.filters |= {
        "anchor": drawing.anchor,
        "duration": report_model.duration,
        "indented": drawing.indented,
        "moment": moment,
        "pace": report_model.pace,
        "split": report_model.split,
        "trials": drawing.trials,
        "value": report_model.value,
    }
    made.globals |= {
        "bar": drawing.bar,
        "matrix_columns": pictures.columns,
        "matrix_rows": pictures.rows,
        "pictures_of_memory": pictures.of_memory,
        "pictures_of_runs": pictures.of_runs,
        "proof_maps": pictures.proof_maps,
        "policy": POLICY,
        "style": Markup(CSS),  # noqa: S704 - a file of importer; escaped, its hash would differ
    }
    return made


def _finalize(value: Any) -> Any:
    """Return a value as text with control characters escaped; markup of the templates stays."""
    return value if hasattr(value, "__html__") else plain(str(value))
