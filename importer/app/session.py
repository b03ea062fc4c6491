"""The resources of imports: a sandbox for texts and a parser worker for each engine, all kept warm."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from importer.analysis import ANALYSE, FOR_ENGINE, Analysis, EngineQuestion, Facts, Question, too_costly
from importer.decisions.decision import PYTHON, Frontend, Target
from importer.decisions.parsers import Unavailable
from importer.errors import ImporterError
from importer.hub.local import ANYWHERE, AllowedFolders
from importer.progress import Progress
from importer.proof.result import Proof
from importer.reasons import Reason
from importer.sandbox import OverLimit, Sandbox
from importer.sandbox.task import Closing

if TYPE_CHECKING:
    from importer.chat_template.find import Template
    from importer.chat_template.study import TemplateAnalysis
    from importer.chat_template.vocabulary import Vocabulary
    from importer.engines.install import Installed
    from importer.engines.parsers import ParserWorker
    from importer.engines.tokens import Tokens
    from importer.engines.worker_process import Budget
    from importer.proof.result import FrontendPrompts

BUDGETS = 64  # more than imports that are under way at a time


class ImportSession(Closing):
    """A sandbox and parser workers, shared by the imports of a run and by threads. A context manager.

    ``proves``   whether proofs are run with the parsers of engines.
    ``consents`` is asked once before parsers are fetched from the package index; without it they are.
    ``sandbox``  reads the repositories' texts; its owner closes it. Without one, the session opens its own.
    ``places``   folders from which adapters may be read.
    Raises UsageError("bad-value") for an invalid ``IMPORTER_PARSERS``.
    """

    def __init__(
        self,
        *,
        proves: bool = True,
        sandbox: Sandbox | None = None,
        consents: Callable[[str], bool] = lambda _engine: True,
        places: AllowedFolders = ANYWHERE,
    ) -> None:
        self.proves, self.places = proves, places
        if proves and "IMPORTER_PARSERS" in os.environ:  # before anything is fetched or decided
            from importer.engines import parser_sources

            parser_sources.mode()
        self._consents = cache(consents)
        self._fetching = Lock()
        self.sandbox = sandbox or Sandbox()
        self._stack = ExitStack()
        if sandbox is None:
            self._stack.enter_context(self.sandbox)
        self._proving = Lock()
        self._budgets: dict[str, Budget] = {}  # of the last imports, by template
        self._workers: dict[tuple[str, str | None, Path], ParserWorker] = {}

    def close(self) -> None:
        """End the sandbox's children and the parser workers."""
        self._stack.close()

    def analyse(self, question: Question) -> Analysis:
        """Return the analysis of the files; raises RepositoryError, UsageError("bad-value"), SandboxError."""
        analysis = self.sandbox.call(ANALYSE, question, question.snapshot.label)
        if isinstance(analysis, OverLimit):
            raise too_costly(question.snapshot, analysis)
        if analysis.study is not None:  # each import has a budget of its own
            self._budgets.pop(analysis.study.digest, None)
        return analysis

    def bind(self, bound: EngineQuestion) -> Facts:
        """Return the evidence for one engine; raises RepositoryError, SandboxError."""
        facts = self.sandbox.call(FOR_ENGINE, bound, bound.snapshot.label)
        if isinstance(facts, OverLimit):
            raise too_costly(bound.snapshot, facts)
        return facts

    def parsers_of(
        self, backend: str, version: str, progress: Progress, *, offline: bool = False
    ) -> Installed | Reason | None:
        """Return an engine's parsers without the engine, fetched where that is allowed; why they were not
        fetched, or ``None`` where there are none.
        """
        from importer.engines import parser_sources
        from importer.hub import endpoint

        if parser_sources.mode() == parser_sources.OFF:
            return None
        found = parser_sources.find(backend, version)
        fetches = parser_sources.mode() == parser_sources.AUTO and not (offline or endpoint.offline())
        if found is not None or not fetches or version not in parser_sources.versions(backend):
            return found
        with self._fetching:
            why = parser_sources.failed_lately(backend, version)
            if why is None and self._consents(f"{backend} {version}"):
                try:
                    return parser_sources.fetch(backend, version, progress)
                except ImporterError as error:  # the import goes on without a proof
                    parser_sources.note_failure(backend, version, why := error.message)
        wanted = f"{backend}{parser_sources.SUFFIX}=={version}"
        return None if why is None else Reason(Unavailable.NOT_FETCHED, problem=why, parsers=wanted)

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
        """Return the proof of the engine's parsers, from the cache where this template was proved before.

        ``derives`` derives a response template where no parser reads the calls.
        """
        from importer.proof.cache import cached

        def ask() -> Proof:
            from importer.proof.prove import prove

            with self._proving:
                worker = self._worker(study, target.backend, python, target.frontend)
                return prove(study, tokens, declared, worker, derives=derives)

        return cached(study, tokens, declared, target, python, ask, derives=derives)

    def prompts(
        self,
        template: Template,
        words: Vocabulary,
        study: TemplateAnalysis,
        tokens: Tokens,
        target: Target,
        python: Path,
        *,
        images: bool,
    ) -> tuple[FrontendPrompts, ...]:
        """Return the prompts of the engine's frontends beside ours, from the cache where they are known.

        ``images`` is whether the model sees images. Raises SandboxError.
        """
        from importer.engines.tokens import RENDERING
        from importer.proof.cache import cached_prompts
        from importer.proof.tokens import rendering_tokens

        if target.backend not in RENDERING:
            return ()
        tokens = rendering_tokens(tokens, template, words)
        path: Path | None = None
        if target.frontend is not None:
            from importer.engines.rust_renderer import RustRenderer, program

            path = program(python)

        def ask() -> tuple[FrontendPrompts, ...]:
            from importer.chat_template.render import Renderer
            from importer.proof.prompts import Ours, compare

            ours = Ours(template, words, Renderer(self.sandbox), study, images)
            with self._proving:
                own = None if target.frontend is None else PYTHON
                worker = self._worker(study, target.backend, python, own)
                rust = () if path is None else (RustRenderer(path),)
                return tuple(compare(ours, tokens, engine) for engine in (worker, *rust))

        return cached_prompts(study, tokens, target, python, [] if path is None else [path], images, ask)

    def _worker(
        self, study: TemplateAnalysis, backend: str, python: Path, frontend: Frontend | None
    ) -> ParserWorker:
        """Return the warm worker of an engine, with the budget of this import; for one thread at a time."""
        from importer.engines.parsers import ParserWorker
        from importer.engines.worker_process import Budget

        for past in list(self._budgets)[: -BUDGETS + 1]:
            self._budgets.pop(past, None)
        key = backend, frontend, python
        if key not in self._workers:
            worker = ParserWorker(backend, python, frontend=frontend)
            self._workers[key] = self._stack.enter_context(worker)
        self._workers[key].budget = self._budgets.setdefault(study.digest, Budget())
        return self._workers[key]
