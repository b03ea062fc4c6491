"""Models with known parsers, predictions for them, and the score of the predictions.

A row has the ``model_id`` and its ``family``. ``tool_parser`` and ``reasoning_parser`` hold the accepted
names of vLLM with ``|`` between, an empty one accepts none. ``contested`` names fields that are not scored:
*tool*, *reasoning*. ``sampling`` may hold the vendor's values as ``key=value``. The models' small files,
where there are any, lie in ``<org>__<name>/`` of a folder of their own.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from importer.analysis import Analysis, Question
from importer.app.decide import decide_snapshot
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.decision import Preferences, Target
from importer.engines import registries
from importer.engines.tokens import Tokens
from importer.errors import ImporterError
from importer.hub import local
from importer.hub.snapshot import Snapshot
from importer.proof import Proof
from importer.proof.result import FrontendPrompts
from importer.signals import sampling
from importer.signals.architecture import model_types
from importer.signals.family import base_models, match
from importer.signals.tables import Table, standing_in

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "benchmarks" / "field" / "truth.csv"
COLUMNS = ("model_id", "family", "tool_parser", "reasoning_parser", "contested")
ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
FIELDS = ("tool_parser", "reasoning_parser")
BACKEND = "vllm"  # the names in the truth are vLLM's
Prediction = Mapping[str, Any]
Predictor = Callable[[str], Prediction]


@dataclass(frozen=True, slots=True)
class Truth:
    """One model: for each scored field the accepted names, ``None`` among them where none is right."""

    model_id: str
    family: str
    accepted: Mapping[str, tuple[str | None, ...]]
    sampling: Mapping[str, float] = field(default_factory=dict)
    source: str = ""

    def verdict(self, name: str, predicted: str | None, equal: Collection[str] = ()) -> str:
        """Return ``right``, ``missing``, ``spurious`` or ``different``; a name of the same class is right.

        ``equal`` are other parsers that count as the predicted one.
        """
        meant = {None} if predicted is None else {*same_class(name, predicted), *equal}
        if meant & {*self.accepted[name]}:
            return "right"
        if predicted is None:
            return "missing"
        return "spurious" if self.accepted[name][0] is None else "different"


@dataclass(slots=True)
class Score:
    """Counts over many models."""

    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: {f: Counter() for f in FIELDS})
    named: dict[str, Counter[str]] = field(default_factory=lambda: {f: Counter() for f in FIELDS})
    families: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    wrong: list[str] = field(default_factory=list)

    @property
    def both(self) -> tuple[int, int]:
        """Return the number of models with every scored field right, and of all models."""
        return sum(r for r, _ in self.families.values()), sum(n for _, n in self.families.values())

    def add(self, truth: Truth, prediction: Prediction) -> None:
        """Count one prediction."""
        equal = prediction.get("equal", {})
        verdicts = {
            name: truth.verdict(name, prediction.get(name), equal.get(name, ())) for name in truth.accepted
        }
        for name, verdict in verdicts.items():
            predicted = prediction.get(name)
            self.verdicts[name][verdict] += 1
            if predicted is not None:
                self.named[name][verdict] += 1
            want = " or ".join(a or "none" for a in truth.accepted[name])
            if verdict != "right":
                self.wrong.append(
                    f"{truth.model_id}: {name} {predicted or 'none'}, should be {want} ({verdict})"
                )
        family = self.families[truth.family]
        family[0] += all(v == "right" for v in verdicts.values())
        family[1] += 1


@cache
def same_class(name: str, parser: str) -> tuple[str, ...]:
    """Return the names under which vLLM's newest release has this parser, itself first."""
    entry = registries.load(BACKEND).entries[registries.KINDS[name]].get(parser)
    return (parser, *(entry.aliases if entry else ()))


def read(path: Path = ROWS) -> list[Truth]:
    """Return every model of a table; raises OSError, and ValueError with the line of a mistake."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            truths = [_truth(row, f"line {rows.line_num}") for row in _whole(rows)]
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    ids = Counter(truth.model_id for truth in truths)
    twice = [model_id for model_id, times in ids.items() if times > 1]
    if twice or not truths:
        problem = f"it has {twice[0]} twice" if twice else "it lists no model"
        raise ValueError(f"{path} cannot be read: {problem}")
    return truths


def _whole(rows: csv.DictReader[str]) -> Iterator[dict[str, str]]:
    lacking = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if lacking:
        raise ValueError(f"it has no column {' and no '.join(lacking)}")
    for row in rows:
        if None in row or None in row.values():
            raise ValueError(f"line {rows.line_num} has another number of cells than the first")
        yield row


def measure(truths: Iterable[Truth], predict: Predictor) -> Score:
    """Predict every model and count."""
    score = Score()
    for truth in truths:
        score.add(truth, predict(truth.model_id))
    return score


def percent(part: int, whole: int) -> float:
    """Return a percentage, rounded to a tenth; 0 for 0 of 0."""
    return round(100 * part / whole, 1) if whole else 0.0


def _truth(row: Mapping[str, str], place: str) -> Truth:
    if not ID.fullmatch(row["model_id"]) or not row["family"]:
        raise ValueError(f"{place}: a model is named like org/name, and has a family")
    scored = [f for f in FIELDS if f.partition("_")[0] not in row["contested"].split()]
    accepted = {f: tuple(name or None for name in row[f].split("|")) for f in scored}
    pairs = (pair.partition("=") for pair in row.get("sampling", "").split())
    values = {key: float(value) for key, _, value in pairs}
    return Truth(row["model_id"], row["family"], accepted, values, row.get("source", ""))


COMMIT = "0" * 40


class Files:
    """Predictions for the models whose files lie in ``repositories``."""

    def __init__(self, repositories: Path, bench: ImportSession) -> None:
        self._root = repositories
        self._bench = bench
        self._snapshots: dict[str, Snapshot] = {}
        self._proofs: dict[str, Proof] = {}

    def has(self, model_id: str) -> bool:
        """Return whether the model has files."""
        return self._folder(model_id).is_dir()

    @property
    def proofs(self) -> dict[str, Proof]:
        """Return the proof of each model that was proved so far."""
        return dict(self._proofs)

    def vendor(self, model_id: str) -> dict[str, Any]:
        """Return the model's ``generation_config.json``; empty where there is none that can be read."""
        try:
            return dict(self._snapshot(model_id).json(sampling.FILE)) if self.has(model_id) else {}
        except ImporterError:
            return {}

    def predictor(self, table: Table) -> Predictor:
        """Return a predictor with this parser table in place of the shipped one."""

        def predict(model_id: str) -> Prediction:
            with standing_in(table):
                return self._decide(model_id)

        return predict

    def deciding(self, truths: Iterable[Truth], table: Table) -> set[str]:
        """Return the rows that match these models: by name, else by the base model's name; and by type."""
        return {row for truth in truths for row in self._rows(truth.model_id, table)}

    def _proved_equal(self, proof: Proof, values: Prediction) -> dict[str, tuple[str, ...]]:
        """Return for each field the parsers that the proof cannot tell apart from the chosen one."""
        facts = {fact.key: fact.value.equal for fact in proof.evidence()}
        return {name: facts[name].get(value, ()) for name, value in values.items()}

    def _rows(self, model_id: str, table: Table) -> set[str]:
        snapshot = self._snapshot(model_id)
        named = (match(table, name) for name in (model_id, *base_models(snapshot)))
        first = next((matched.row.family for matched in named if matched is not None), None)
        typed = (table.find_type(model_type) for model_type in model_types(snapshot))
        return {row.family for row in typed if row is not None} | ({first} if first else set())

    def _decide(self, model_id: str) -> Prediction:
        request = ImportRequest(model_id, preferences=Preferences({"backend": BACKEND}))
        try:
            decided = decide_snapshot(self._snapshot(model_id), request, self._bench)
        except ImporterError as error:
            return {"model_id": model_id, **dict.fromkeys(FIELDS), "error": error.kind}
        made = {field: decided.decisions[field] for field in FIELDS}
        values = {field: one.value for field, one in made.items() if one.status != "unknown"}
        if decided.proof is None:
            return {"model_id": model_id, **values}
        self._proofs[model_id] = decided.proof
        return {"model_id": model_id, **values, "equal": self._proved_equal(decided.proof, values)}

    def _snapshot(self, model_id: str) -> Snapshot:
        """Return the snapshot as of the Hub: with an id and a commit, without a directory."""
        if model_id not in self._snapshots:
            self._snapshots[model_id] = of_hub(model_id, self._folder(model_id))
        return self._snapshots[model_id]

    def _folder(self, model_id: str) -> Path:
        return self._root / folder_of(model_id)


def folder_of(model_id: str) -> str:
    """Return the name of the folder with a model's files."""
    return model_id.replace("/", "__", 1)


def of_hub(model_id: str, folder: Path) -> Snapshot:
    """Return the files of a folder as a snapshot of the Hub: with an id and a commit, without a directory."""
    return replace(local.resolve(model_id, folder), model_id=model_id, revision=COMMIT, directory=None)


class CachedSession(ImportSession):
    """Renders and proves each template once, for any number of predictions."""

    def __init__(self, *, proves: bool = True) -> None:
        super().__init__(proves=proves)
        self._studies: dict[str, TemplateAnalysis] = {}
        self._proofs: dict[tuple[str, str, bool], Proof] = {}

    def analyse(self, question: Question) -> Analysis:
        """Return the analysis of the files; the template is rendered once."""
        label = question.snapshot.label
        analysis = super().analyse(replace(question, study=self._studies.get(label)))
        if analysis.study is not None:
            self._studies[label] = analysis.study
        return analysis

    def prompts(self, *_: Any, **__: Any) -> tuple[FrontendPrompts, ...]:
        """Return no prompts: they change no parser."""
        return ()

    def prove(
        self,
        study: TemplateAnalysis,
        tokens: Tokens,
        declared: bool,
        target: Target,
        python: Path,
        *,
        derives: bool = False,
    ) -> Proof:
        """Prove each template once."""
        key = (study.digest, repr(tokens), declared)
        if key not in self._proofs:
            self._proofs[key] = super().prove(study, tokens, declared, target, python, derives=derives)
        return self._proofs[key]
