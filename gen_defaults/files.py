"""What the importer decides on a model's files: its own pipeline, on a folder instead of a Hub."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gen_defaults.truth import FIELDS, Prediction, Predictor, Truth
from importer.analysis import Analysis, Question
from importer.decide.target import Preferences, Target
from importer.engines.parsers import Tokens
from importer.errors import ImporterError
from importer.evidence import sampling
from importer.evidence.architecture import model_types
from importer.evidence.names import base_models, match
from importer.evidence.tables import Table, standing_in
from importer.hub import local
from importer.hub.snapshot import Snapshot
from importer.pipeline import Request, decide_snapshot
from importer.proof import Proof
from importer.template.study import Study
from importer.workbench import Workbench

BACKEND = "vllm"  # the names in the truth are vLLM's
COMMIT = "0" * 40


class Files:
    """Predictions for the models whose files lie in ``folder``."""

    def __init__(self, folder: Path, bench: Workbench, *, ignore_name: bool = False) -> None:
        self._root = folder / "repos"
        self._bench = bench
        self._ignore_name = ignore_name
        self._snapshots: dict[str, Snapshot] = {}
        self._proofs: dict[str, Proof] = {}

    def has(self, model_id: str) -> bool:
        """Whether the model has files."""
        return self._folder(model_id).is_dir()

    @property
    def proofs(self) -> dict[str, Proof]:
        """Model to what the engine's parsers made of its template, for the models asked so far."""
        return dict(self._proofs)

    def vendor(self, model_id: str) -> dict[str, Any]:
        """The model's ``generation_config.json``; empty where there is none that can be read."""
        try:
            return dict(self._snapshot(model_id).json(sampling.FILE)) if self.has(model_id) else {}
        except ImporterError:
            return {}

    def predictor(self, table: Table) -> Predictor:
        """What is decided with this parser table in place of the shipped one."""

        def predict(model_id: str) -> Prediction:
            with standing_in(table):
                return self._decide(model_id)

        return predict

    def deciding(self, truths: Iterable[Truth], table: Table) -> set[str]:
        """The rows that speak for these models: by name, else by the base model's name; and by type."""
        return {row for truth in truths for row in self._rows(truth.model_id, table)}

    def _rows(self, model_id: str, table: Table) -> set[str]:
        snapshot = self._snapshot(model_id)
        named = (match(table, name) for name in (model_id, *base_models(snapshot)))
        first = next((found.row.family for found in named if found is not None), None)
        typed = (table.find_type(model_type) for model_type in model_types(snapshot))
        return {row.family for row in typed if row is not None} | ({first} if first else set())

    def _decide(self, model_id: str) -> Prediction:
        request = Request(
            model_id, preferences=Preferences({"backend": BACKEND}), ignore_name=self._ignore_name
        )
        try:
            decided = decide_snapshot(self._snapshot(model_id), request, self._bench)
        except ImporterError as error:
            return {"model_id": model_id, **dict.fromkeys(FIELDS), "error": error.kind}
        if decided.proof is not None:
            self._proofs[model_id] = decided.proof
        return {"model_id": model_id, **{field: decided.decisions[field].value for field in FIELDS}}

    def _snapshot(self, model_id: str) -> Snapshot:
        """As the Hub would give it: an id, a commit, and no directory."""
        if model_id not in self._snapshots:
            found = local.resolve(model_id, self._folder(model_id))
            self._snapshots[model_id] = replace(found, model_id=model_id, revision=COMMIT, directory=None)
        return self._snapshots[model_id]

    def _folder(self, model_id: str) -> Path:
        return self._root / model_id.replace("/", "__", 1)


class Kept(Workbench):
    """Renders and proves each template once, however often its family is asked."""

    def __init__(self, *, proves: bool = True) -> None:
        super().__init__(proves=proves)
        self._studies: dict[str, Study] = {}
        self._proofs: dict[tuple[str, str, bool], Proof] = {}

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """Every proof that was made, one per template and vocabulary."""
        return tuple(self._proofs.values())

    def analyse(self, question: Question) -> Analysis:
        """What the files say; the template is rendered once."""
        label = question.snapshot.label
        found = super().analyse(replace(question, study=self._studies.get(label)))
        if found.study is not None:
            self._studies[label] = found.study
        return found

    def prove(self, study: Study, tokens: Tokens, declared: bool, target: Target, python: Path) -> Proof:
        """Ask the engine's parsers."""
        key = (study.digest, repr(tokens), declared)
        if key not in self._proofs:
            self._proofs[key] = super().prove(study, tokens, declared, target, python)
        return self._proofs[key]
