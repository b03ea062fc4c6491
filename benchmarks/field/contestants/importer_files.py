"""importer on the small files, without an engine."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released
from gen_defaults.truth import CachedSession, Files
from importer.signals.tables import parser_table
from importer.version import __version__


def answers(models: Sequence[Model], released: Released, *, proves: bool = False) -> Entry:
    """Decide each model; one that is refused gets no parser."""
    folder = models[0].repositories
    assert folder
    with CachedSession(proves=proves) as session:
        predict = Files(folder, session).predictor(parser_table())
        return Entry(__version__, {model.model_id: predict(model.model_id) for model in models})
