"""One page that holds everything: it loads nothing, runs nothing, and is read without a network."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from importer.reports.html import pieces
from importer.reports.html.markup import Content, Markup, el, join, verbatim
from importer.reports.report_model import ReportModel

CSS = files(__name__).joinpath("page.css").read_text(encoding="utf-8")
DIGEST = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{DIGEST}'; base-uri 'none'; form-action 'none'"


def write(sheet: ReportModel) -> str:
    """The page of a document; the same sheet makes the same bytes."""
    troubles = pieces.troubles(sheet)
    sections: dict[str, Content] = {
        "What did not pass": troubles,
        "Runs": pieces.runs(sheet) if sheet.runs else el("p", "It was never run."),
        "Probes": pieces.matrix(sheet) if sheet.runs else None,
        "Decisions": pieces.decisions(sheet) if sheet.decisions else None,
        "Each probe": pieces.probes(sheet) if sheet.runs else None,
        "The document": pieces.document(sheet),
    }
    body = join(
        el("a", "To the outcomes", href="#main", class_="skip"),
        el("header", pieces.head(sheet)),
        el(
            "main",
            (section(title, content) for title, content in sections.items() if content is not None),
            id="main",
        ),
        el(
            "footer",
            f"Written by importer {sheet.importer or ''} from the document and its receipt.",
        ),
    )
    return page(f"{sheet.name}: validation {sheet.validation}", body)


def section(title: str, content: Content) -> Markup:
    """A part of a page under its title."""
    name = title.lower().replace(" ", "-")
    return el("section", el("h2", title, id=name), content, aria_labelledby=name)


def page(title: str, body: Markup) -> str:
    """A whole page; a policy in it forbids whatever is not its own style, should anything slip in."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("style", verbatim(CSS)),
    )
    return f"<!doctype html>\n{el('html', head, el('body', body), lang='en')}\n"
