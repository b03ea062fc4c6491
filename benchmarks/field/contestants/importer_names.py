"""importer's two tables, by the name alone."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released
from gen_defaults import sampling
from importer.signals.family import match
from importer.signals.tables import parser_table, sampling_table
from importer.version import __version__

NAMES_ONLY = True


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Match each name."""
    found = {}
    for model in models:
        matched = match(parser_table(), model.model_id)
        row = sampling.row_for(model.model_id, parser_table(), sampling_table())
        found[model.model_id] = {
            **(matched.parsers if matched else {}),
            "sampling": row.values if row else {},
        }
    return Entry(__version__, found)
