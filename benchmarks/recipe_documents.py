"""Documents of the models in a folder: one for each hardware of a recipe, with or without its settings."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.recipe_settings import read_script
from gen_defaults.truth import CachedSession, folder_of, of_hub
from importer.app.decide import decide_snapshot
from importer.app.import_ import Plan, build_plan
from importer.app.import_request import ImportRequest
from importer.app.preferences import parse
from importer.app.session import ImportSession
from importer.chat_template.override import FILE, TemplateOverride
from importer.document.name_allocator import Names
from importer.document.store import Store
from importer.document.template_file import ChatTemplate
from importer.errors import ImporterError
from importer.exports import get
from importer.exports.base import ExportRefused, Options
from importer.hub.snapshot import Snapshot
from importer.memory.plans import Goal
from importer.sentences import render

BACKEND = "vllm"


@dataclass(frozen=True, slots=True)
class Command:
    """An exported command: flags by name, variables, and the plan that it came from."""

    flags: Mapping[str, Any]
    env: Mapping[str, str]
    plan: Plan

    @property
    def replicas(self) -> int:
        """Return the number of servers beside each other."""
        plans = getattr(self.plan.fit, "plans", ())
        return int(plans[0].split.replicas) if plans else 1

    @property
    def layout_reason(self) -> str:
        """Return why the cards are used so."""
        plans = getattr(self.plan.fit, "plans", ())
        if plans and plans[0].why:
            return "; ".join(render(reason) for reason in plans[0].why)
        return self.plan.fit.message


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no command: the kind of the failure, and its sentence."""

    kind: str
    message: str


class Documents:
    """Imports of the models whose files lie in ``folder``, as if they came from the Hub; nothing is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._snapshots: dict[str, Snapshot] = {}

    def __enter__(self) -> Documents:
        self._session = self._stack.enter_context(CachedSession(proves=False))
        # A session that keeps the study of a template by its model would mix up a model's own and another.
        self._foreign = self._stack.enter_context(ImportSession(proves=False))
        self._store = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def models(self) -> Iterator[str]:
        """Yield the ids of the models with files."""
        for path in sorted(self._folder.iterdir()):
            if path.is_dir() and "__" in path.name:
                yield path.name.replace("__", "/", 1)

    def command(
        self,
        model: str,
        device: str | None,
        values: Mapping[str, Any],
        template: str | None = None,
        goal: Goal | None = None,
    ) -> Command | Refused:
        """Return the exported command of a model with these settings, fitted to the device for the goal.

        ``template``  the text of a chat template in place of the model's own.
        """
        try:
            plan = self._plan(model, device, values, template, goal)
            kept = None if template is None else ChatTemplate(Path(FILE), template)
            exported = get("vllm-command").export(plan.built.data, plan.receipt(), Options(template=kept))
        except ImporterError as error:
            return Refused(error.kind, str(error.message))
        if isinstance(exported, ExportRefused):
            return Refused(str(exported.reason.kind), str(exported.reason))
        flags, env = read_script(next(iter(exported.files.values())))
        return Command(flags, env, plan)

    def _plan(
        self,
        model: str,
        device: str | None,
        values: Mapping[str, Any],
        template: str | None = None,
        goal: Goal | None = None,
    ) -> Plan:
        """Return the plan of a document. Raises ImporterError."""
        override = None if template is None else TemplateOverride(FILE, FILE, template)
        request = ImportRequest(
            model, preferences=parse(values, BACKEND), device=device, offline=True, template=override
        )
        if goal is not None:
            request = replace(request, goal=goal)
        session = self._session if template is None else self._foreign
        decided = decide_snapshot(self.snapshot(model), request, session)
        return build_plan(decided, Names(Store(self._store)))

    def snapshot(self, model: str) -> Snapshot:
        """Return the snapshot of a model's files."""
        if model not in self._snapshots:
            self._snapshots[model] = of_hub(model, self._folder / folder_of(model))
        return self._snapshots[model]
