"""The score of each contestant, as one table in three forms."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.field.model import Entry
from gen_defaults.truth import FIELDS, Score, Truth, percent

NAMES = Path(__file__).with_name("names.csv")


def names() -> Mapping[tuple[str, str, str], tuple[str, ...]]:
    """Return vLLM's names of other engines' parsers, by engine, field and name; the same name has no row."""
    with NAMES.open(encoding="utf-8", newline="") as file:
        return {
            (r["engine"], r["field"], r["name"]): tuple(r["vllm"].split("|")) for r in csv.DictReader(file)
        }


@dataclass
class Line:
    """A contestant's score on some rows."""

    name: str
    version: str
    score: Score = field(default_factory=Score)
    needing: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)
    sampling: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, name: str, entry: Entry, rows: Sequence[Truth]) -> Line:
        """Judge each answer by the one definition of right, that of ``gen_defaults.truth``."""
        line, known = cls(name, entry.version), names()
        for truth in rows:
            answer = entry.answers.get(truth.model_id, {})
            meant: dict[str, Any] = {"equal": {}}
            for key in truth.accepted:
                given = answer.get(key)
                first, *rest = known.get((entry.engine, key, given), (given,)) if given else (None,)
                meant |= {key: first and first.replace("-", "_") if entry.engine != "vllm" else first}
                meant["equal"][key] = rest
                if None not in truth.accepted[key]:
                    line.needing[key] += 1
                    line.found[key] += first is not None and truth.verdict(key, meant[key], rest) == "right"
                line.silent[key] += key not in answer
            line.score.add(truth, meant)
            for key, value in truth.sampling.items():
                told = answer.get("sampling", {}).get(key)
                line.sampling["missing" if told is None else "right" if told == value else "different"] += 1
        return line

    def row(self) -> dict[str, Any]:
        """Return the cells; a field that the contestant never answers has none, nor has *both* then."""
        right, models = self.score.both
        answers = [key for key in FIELDS if self.silent[key] < self.score.verdicts[key].total()]
        cells: dict[str, Any] = {"contestant": self.name, "version": self.version}
        cells["both right"] = f"{right}/{models}" if len(answers) == len(FIELDS) else "–"
        cells["%"] = percent(right, models) if len(answers) == len(FIELDS) else "–"
        for key in FIELDS:
            named, kind = self.score.named[key], key.partition("_")[0]
            figures = (
                percent(named["right"], named.total()),
                percent(self.found[key], self.needing[key]),
                self.silent[key],
            )
            for what, figure in zip(("precision %", "recall %", "unanswered"), figures, strict=True):
                cells[f"{kind} {what}"] = figure if key in answers else "–"
        told = self.sampling["right"] + self.sampling["different"]
        return cells | {"sampling": f"{self.sampling['right']}/{self.sampling.total()}" if told else "–"}


def markdown(lines: Sequence[Line]) -> str:
    """Return a table of Markdown."""
    rows = [line.row() for line in lines]
    head = [*rows[0]]
    bars = ["---" if name in ("contestant", "version") else "--:" for name in head]
    cells = [head, bars, *([str(value) for value in row.values()] for row in rows)]
    return "".join(f"| {' | '.join(one)} |\n" for one in cells)


def as_csv(tables: Mapping[str, Sequence[Line]]) -> str:
    """Return every table, one behind the other, with the rows' name in front."""
    out = io.StringIO()
    rows = [{"rows": name, **line.row()} for name, lines in tables.items() for line in lines]
    writer = csv.DictWriter(out, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_json(head: Mapping[str, Any], tables: Mapping[str, Sequence[Line]]) -> str:
    """Return the tables, and every wrong answer."""
    data = {
        name: [{**line.row(), "wrong": line.score.wrong} for line in lines] for name, lines in tables.items()
    }
    return json.dumps({**head, "tables": data}, indent=1, ensure_ascii=False) + "\n"
