"""What an import needs running: a template renderer, and a parser worker per engine, all kept warm."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self

from importer.decide.target import Target
from importer.proof.result import Proof

if TYPE_CHECKING:
    from importer.engines.parsers import ParserWorker, Tokens
    from importer.template.given import Given
    from importer.template.render import Renderer
    from importer.template.source import Template
    from importer.template.study import Study
    from importer.template.vocabulary import Vocabulary


class Workbench:
    """Shared by all imports of a run; safe to use from several threads. A context manager.

    ``proves``  whether the parsers of an installed engine are asked.
    """

    def __init__(self, *, proves: bool = True) -> None:
        self.proves = proves
        self._stack = ExitStack()
        self._rendering, self._proving = Lock(), Lock()
        self._renderer: Renderer | None = None
        self._workers: dict[tuple[str, str | None], ParserWorker] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def wake(self) -> Renderer:
        """Start the renderer now: it is awake by the time a template has been found."""
        from importer.template.render import Renderer

        with self._rendering:
            if self._renderer is None:
                self._renderer = self._stack.enter_context(Renderer())
                self._renderer.start()
        return self._renderer

    def study(self, template: Template, vocabulary: Vocabulary) -> Study:
        """Render every case of a template."""
        from importer.template.learn import learn

        renderer = self.wake()
        with self._rendering:
            return learn(template, vocabulary, renderer)

    def dress(self, given: Given, own: Template | None, vocabulary: Vocabulary) -> Template:
        """The template that the user gave; raises UsageError("bad-value")."""
        from importer.template.given import template_of

        renderer = self.wake()
        with self._rendering:
            return template_of(given, own, vocabulary, renderer)

    def prove(self, study: Study, tokens: Tokens, declared: bool, target: Target, python: Path) -> Proof:
        """Ask the engine's parsers; from the cache where this template was asked before."""
        from importer.engines.parsers import ParserWorker
        from importer.proof.cache import cached
        from importer.proof.prove import prove

        key = target.backend, target.plugin

        def ask() -> Proof:
            with self._proving:
                if key not in self._workers:
                    worker = ParserWorker(target.backend, python, plugin=target.plugin)
                    self._workers[key] = self._stack.enter_context(worker)
                return prove(study, tokens, declared, self._workers[key])

        return cached(study, tokens, declared, target, ask)
