"""importer where a model's family is new: files and proof, without any row of the tables that matches it.

The tables were written with these rows at hand, so this line is the measure for new models.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from benchmarks.field.contestants import importer_proof
from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released
from gen_defaults.truth import CachedSession, Files, Prediction, Predictor, Truth, read
from importer.signals.tables import Table, parser_table
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


def left_out(
    truths: Iterable[Truth],
    table: Table,
    predictor: Callable[[Table], Predictor],
    rows: Callable[[Iterable[Truth], Table], set[str]],
) -> Iterator[tuple[Truth, Prediction]]:
    """Yield the prediction for each model without any row that matches one of its family."""
    members: dict[str, list[Truth]] = defaultdict(list)
    for truth in truths:
        members[truth.family].append(truth)
    for family in members.values():
        left = table
        while speaking := rows(family, left):  # behind a row that decides stands the next one
            left = left.without(speaking)
        predict = predictor(left)
        yield from ((truth, predict(truth.model_id)) for truth in family)
