"""What most of the tables of names answer; a draw is no answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchmarks.field.contestants import importer_names, localai, vllm_rust
from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released
from gen_defaults.truth import FIELDS, same_class

NAMES_ONLY = True
VOTERS = (importer_names, localai, vllm_rust)


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Count the votes of each field, names of one class together."""
    votes = [voter.answers(models, released) for voter in VOTERS]
    found: dict[str, dict[str, str | None]] = {model.model_id: {} for model in models}
    for model_id, answer in found.items():
        for field in FIELDS:
            given = [vote.answers[model_id].get(field) for vote in votes]
            classes = Counter(name and min(same_class(field, name)) for name in given)
            (first, most), *_ = classes.most_common()
            if most * 2 > len(votes) and first is not None:
                answer[field] = first
    return Entry(", ".join(vote.version for vote in votes), found)
