"""How live models called, by the receipts of a folder, for a person.

A row has the parser that the table names, what validations saw, and its source: a change of
``parser_defaults.json`` is made by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gen_defaults.paths import folder as existing
from importer.document.receipt import Receipt
from importer.document.store import receipt_at
from importer.errors import ImporterError
from importer.signals.family import match
from importer.signals.observed import CallForm, proposed
from importer.signals.tables import Table, shipped

RECEIPTS = "*.receipt.json"
UNKNOWN = "not known"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the folder."""
    parser.add_argument(
        "folder", type=existing, metavar="DIR", help="a folder with documents and their receipts"
    )


def main(options: argparse.Namespace) -> int:
    """Print a row for each model of the Hub with observed calls; return 0."""
    found = dict(rows(options.folder, shipped()))
    sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return 0


def rows(folder: Path, table: Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each model of the Hub that a validation saw calling, with its row; unreadable receipts are named
    on stderr.
    """
    for path in sorted(folder.rglob(RECEIPTS)):
        try:
            receipt = receipt_at(path)
        except (OSError, ImporterError) as error:
            sys.stderr.write(f"gen_defaults: {path.name} is left out: {error}\n")
            continue
        seen = (receipt.validation or {}).get("observed") or receipt.request.get("observed") or ()
        if receipt.model_id and seen:
            yield receipt.model_id, row(receipt, [CallForm.from_json(form) for form in seen], table)


def row(receipt: Receipt, forms: list[CallForm], table: Table) -> dict[str, Any]:
    """Return what was seen of one model beside the table; the first form is the one that was served."""
    matched, own, best = match(table, receipt.model_id or ""), forms[0], proposed(forms)
    engine, started = receipt.engine, (receipt.validation or {}).get("started", UNKNOWN)
    found = {
        "family": matched.row.family if matched else None,
        "table": matched.parsers.get("tool_parser", UNKNOWN) if matched else UNKNOWN,
        "served": _form(own),
        "source": f"{engine['name']} {engine['version']}, {started}, commit {receipt.revision}",
    }
    return found if best is own else {**found, "better": _form(best)}


def _form(form: CallForm) -> dict[str, Any]:
    """Return the settings of a form and its share of right calls."""
    how = {"template": form.template} if form.template else {}
    choice = {"tool_choice": form.choice} if form.choice != "auto" else {}
    return {"tool_parser": form.parser, **how, **choice, "calls": f"{form.right} of {form.asked}"}
