"""The report as one HTML page: it loads nothing, runs nothing, and needs no network.

``page.html.jinja`` is the page, ``pieces.html.jinja`` its macros. With autoescape, every value is text.

The first page of a gallery's site: every entry, searched and filtered in the browser, without a server.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from importer.frozen import frozen
from importer.reports import pictures, report_model
from importer.reports.report_model import ProbeOutcome, ReportModel
from importer.sentences import moment, plain

if TYPE_CHECKING:
    from jinja2 import Environment


def trials(outcome: ProbeOutcome) -> str:
    """Return the share of agreeing trials as text."""
    return report_model.trials(outcome.agreed, outcome.trials, outcome.interval)


def anchor(probe: str) -> str:
    """Return the anchor of a probe in the page."""
    return "probe-" + re.sub(r"[^a-z0-9-]", "-", probe.lower())


def indented(data: Any) -> str:
    """Return a request as JSON over several lines."""
    return json.dumps(data, indent=1, ensure_ascii=False)


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
    from jinja2.filters import do_mark_safe

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
        "anchor": anchor,
        "duration": report_model.duration,
        "indented": indented,
        "moment": moment,
        "pace": report_model.pace,
        "split": report_model.split,
        "trials": trials,
        "value": report_model.value,
    }
    made.globals |= {
        "matrix_columns": pictures.columns,
        "matrix_rows": pictures.rows,
        "figures_of_memory": pictures.of_memory,
        "figures_of_runs": pictures.of_runs,
        "proof_maps": pictures.proof_maps,
        "policy": POLICY,
        "style": do_mark_safe(CSS),  # a file of importer; escaped, its hash would differ
    }
    return made


def _finalize(value: Any) -> Any:
    """Return a value as text with control characters escaped; markup of the templates stays."""
    return value if hasattr(value, "__html__") else plain(str(value))


def api(description: Mapping[str, Any]) -> str:
    """Return the page of an API by its OpenAPI document."""
    return environment().get_template("api.html.jinja").render(api=description)


FACETS = ("tools", "thinking", "license", "backend", "validation")
SIZES = (8, 16, 24, 48, 80)  # GB that weights may have, for a choice
SCRIPT = """
const search = document.getElementById("search"), rows = [...document.querySelectorAll("article")];
const facets = [...document.querySelectorAll("select[name]")], size = document.getElementById("size");
function show() {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.dataset.text.toLowerCase();
    row.hidden = !(words.every(word => text.includes(word))
      && (!size.value || (row.dataset.weights && Number(row.dataset.weights) <= Number(size.value)))
      && facets.every(facet => !facet.value || row.dataset[facet.name] === facet.value));
    shown += !row.hidden;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length}`;
}
addEventListener("input", show);
show();
"""
SCRIPT_DIGEST = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()


@frozen
class GalleryCard:
    """A model on the page; the search looks in ``text``; ``page`` and ``entry`` are relative URLs.

    ``tools``, ``thinking``  a parser and its status each, such as ``hermes (proved)``; empty without one.
    ``weights``              bytes, ``None`` where they are unknown.
    ``shown``                sentences on inputs, context, memory and validation, as an entry has them.
    """

    name: str
    model: str
    link: str
    backend: str
    tools: str
    thinking: str
    license: str
    weights: int | None
    review: str
    validation: str
    description: str
    shown: tuple[str, ...]
    page: str
    entry: str
    text: str

    @property
    def facets(self) -> dict[str, str]:
        """Return the value of each facet; a parser counts by its presence."""
        chosen = {name: str(getattr(self, name)) for name in FACETS}
        return chosen | {name: "yes" if chosen[name] else "no" for name in ("tools", "thinking")}


def page(cards: Sequence[GalleryCard]) -> str:
    """Return the page; its policy allows its own style and script alone."""
    from jinja2.filters import do_mark_safe

    script = do_mark_safe(SCRIPT)  # of this module; escaped, its hash would differ
    values = {name: sorted({card.facets[name] for card in cards} - {""}) for name in FACETS}
    policy = f"{POLICY}; script-src 'sha256-{SCRIPT_DIGEST}'"
    return (
        environment()
        .get_template("gallery.html.jinja")
        .render(cards=cards, facets=values, sizes=SIZES, gallery_policy=policy, gallery_script=script)
    )
