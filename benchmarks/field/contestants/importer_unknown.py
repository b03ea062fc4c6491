"""importer where a model's family is new: files and proof, without any row of the tables that matches it.

The tables were written with these rows at hand, so this line is the measure for new models.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.field.contestants import importer_proof
from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released
from gen_defaults.score import left_out
from gen_defaults.truth import CachedSession, Files, read
from importer.signals.tables import parser_table
from importer.version import __version__


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Decide each family again without its rows."""
    folder = models[0].repositories
    assert folder
    version = importer_proof.parsers()
    wanted = {model.model_id for model in models}
    truths = [truth for truth in read() if truth.model_id in wanted]
    with CachedSession() as session:
        files = Files(folder, session)
        made = left_out(truths, parser_table(), files.predictor, files.deciding)
        return Entry(f"{__version__}, {version}", {truth.model_id: answer for truth, answer in made})
