"""The first page of a gallery's site: every entry, searched and filtered in the browser, without a server."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from importer.frozen import frozen
from importer.reports.html import POLICY, environment

FACETS = ("backend", "license", "proof", "validation")
SCRIPT = """
const search = document.getElementById("search"), rows = [...document.querySelectorAll("tbody tr")];
const facets = [...document.querySelectorAll("select")];
function show() {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.dataset.text.toLowerCase();
    row.hidden = !(words.every(word => text.includes(word))
      && facets.every(facet => !facet.value || row.dataset[facet.name] === facet.value));
    shown += !row.hidden;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length}`;
}
addEventListener("input", show);
show();
"""
DIGEST = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()


@frozen
class GalleryRow:
    """A row of the page; the search looks in ``text``; ``page`` and ``entry`` are relative URLs.

    ``proof``  the weakest status of the parsers; empty without a parser.
    """

    name: str
    model: str
    link: str
    backend: str
    parsers: str
    proof: str
    license: str
    size: str
    validation: str
    page: str
    entry: str
    text: str


def page(rows: Sequence[GalleryRow]) -> str:
    """Return the page; its policy allows its own style and script alone."""
    from markupsafe import Markup

    values = {name: sorted({getattr(row, name) for row in rows} - {""}) for name in FACETS}
    policy = f"{POLICY}; script-src 'sha256-{DIGEST}'"
    script = Markup(SCRIPT)  # noqa: S704 - of this module; escaped, its hash would differ
    return (
        environment()
        .get_template("gallery.html.jinja")
        .render(rows=rows, facets=values, gallery_policy=policy, gallery_script=script)
    )
