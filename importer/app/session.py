"""The resources of imports: a sandbox for texts and a parser worker for each engine, all kept warm."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from importer.analysis import ANALYSE, FOR_ENGINE, Analysis, EngineQuestion, Facts, Question, too_costly
from importer.decisions.decision import Target
from importer.proof.result import Proof
from importer.sandbox import OverLimit, Sandbox
from importer.sandbox.closing import Closing

if TYPE_CHECKING:
    from importer.chat_template.samples import TemplateAnalysis
    from importer.engines.parsers import ParserWorker, Tokens


class ImportSession(Closing):
    """A sandbox and parser workers, shared by the imports of a run and by threads. A context manager.

    ``proves``   whether proofs are run with the parsers of installed engines.
    ``sandbox``  reads the repositories' texts; its owner closes it. Without one, the session opens its own.
    """

    def __init__(self, *, proves: bool = True, sandbox: Sandbox | None = None) -> None:
        self.proves = proves
        self.sandbox = sandbox or Sandbox()
        self._stack = ExitStack()
        if sandbox is None:
            self._stack.enter_context(self.sandbox)
        self._proving = Lock()
        self._workers: dict[tuple[str, str | None, str | None, Path], ParserWorker] = {}

    def close(self) -> None:
        """End the sandbox's children and the parser workers."""
        self._stack.close()

    def wake(self) -> None:
        """Start the sandbox now, so that it is ready when a snapshot has been resolved."""
        self.sandbox.start()

    def analyse(self, question: Question) -> Analysis:
        """Return the analysis of the files; raises RepositoryError, UsageError("bad-value"), SandboxError."""
        analysis = self.sandbox.call(ANALYSE, question, question.snapshot.label)
        if isinstance(analysis, OverLimit):
            raise too_costly(question.snapshot, analysis)
        return analysis

    def bind(self, bound: EngineQuestion) -> Facts:
        """Return the evidence for one engine; raises RepositoryError, SandboxError."""
        facts = self.sandbox.call(FOR_ENGINE, bound, bound.snapshot.label)
        if isinstance(facts, OverLimit):
            raise too_costly(bound.snapshot, facts)
        return facts

    def prove(
        self, study: TemplateAnalysis, tokens: Tokens, declared: bool, target: Target, python: Path
    ) -> Proof:
        """Return the proof of the engine's parsers, from the cache where this template was proved before."""
        from importer.engines.parsers import ParserWorker
        from importer.proof.cache import cached
        from importer.proof.prove import prove

        key = target.backend, target.plugin, target.frontend, python

        def ask() -> Proof:
            with self._proving:
                if key not in self._workers:
                    worker = ParserWorker(
                        target.backend, python, plugin=target.plugin, frontend=target.frontend
                    )
                    self._workers[key] = self._stack.enter_context(worker)
                return prove(study, tokens, declared, self._workers[key])

        return cached(study, tokens, declared, target, ask)
