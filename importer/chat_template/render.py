"""Rendering of templates in the sandbox: jobs, results and the renderer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol

from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.sandbox import OverLimit, Task
from importer.sandbox.task import Closing

if TYPE_CHECKING:
    from importer.sandbox import Sandbox

CLOCK = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)  # the time of every rendering
CPU_SECONDS = 2.0  # for one exchange; real templates need 0.1 s
SETTING_UP = 1.0  # seconds of processor time of a call beside its rendering


def now() -> float:
    """Return the seconds from ``CLOCK`` to this machine's local time, that engines hand to templates."""
    return (datetime.now(UTC).astimezone().replace(tzinfo=UTC) - CLOCK).total_seconds()


def date_at(later: float) -> str:
    """Return the date ``later`` seconds after ``CLOCK``, as year, month and day."""
    return (CLOCK + timedelta(seconds=later)).date().isoformat()


@frozen
class RenderJob:
    """One conversation to render; ``later`` is in seconds after the fixed time of the clock."""

    messages: Sequence[Mapping[str, object]]
    tools: Sequence[Mapping[str, object]] | None = None
    add_generation_prompt: bool = False
    kwargs: Mapping[str, object] = field(default_factory=dict)
    later: float = 0


class RefusalReason(ReasonKind):
    """Reasons why a rendering gives no text."""

    RAISED = "{words}"
    LENGTH = "writes more than {limit:,} characters"
    MEMORY = "needs more memory than a rendering may take"
    TIME = "took more than {seconds:g} s of processor time"


@frozen
class Rendered:
    """The rendered text."""

    text: str


@frozen
class RenderRefused:
    """A failed rendering: ``syntax``, ``refused`` by the template, a ``limit``, or no ``memory``.

    ``broke`` is whether the template failed without ``raise_exception``, by accident.
    """

    reason: Reason
    kind: Literal["syntax", "refused", "limit", "memory"]
    broke: bool = False

    @property
    def words(self) -> str:
        """Return the message of the template or of Jinja; empty for other failures."""
        return str(self.reason.fields["words"]) if self.reason.kind is RefusalReason.RAISED else ""


Result = Rendered | RenderRefused


@frozen
class RenderResult:
    """The results of one exchange.

    ``results``    one for each job, in order.
    ``variables``  that a caller may set, each with the constants it is compared with.
    """

    results: tuple[Result, ...]
    variables: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@frozen
class RenderExchange:
    """A template and every conversation to render with it.

    ``variables``  named strings (``bos_token`` …); a job's own ``kwargs`` have precedence.
    ``mutable``    lets the template change its own lists; transformers rejects that.
    ``seconds``    of processor time; once they are used up, the remaining jobs fail.
    """

    template: str
    jobs: Sequence[RenderJob]
    variables: Mapping[str, object] = field(default_factory=dict)
    mutable: bool = False
    seconds: float = CPU_SECONDS


RENDER = Task(
    "importer.chat_template.render:RENDER", "importer.chat_template.render_worker:render",
    RenderExchange, RenderResult,
    CPU_SECONDS + SETTING_UP, warm="importer.chat_template.render_worker:warm",
)  # fmt: skip


class Renders(Protocol):
    """The interface of renderers: ``Renderer`` outside, ``render_worker.Local`` in a task of the sandbox."""

    def render(
        self,
        template: str,
        jobs: Sequence[RenderJob],
        variables: Mapping[str, object] | None = None,
        *,
        mutable: bool = False,
    ) -> RenderResult:
        """Render every job in one exchange; failures of the template are results with reasons."""


class Recorder:
    """A renderer that keeps a digest of every text it returns, in their order."""

    def __init__(self, renderer: Renders) -> None:
        self._renderer, self._hash = renderer, hashlib.sha256()

    @property
    def digest(self) -> str:
        """Return the digest of the texts so far; a refused one counts as empty."""
        return self._hash.hexdigest()

    def render(
        self,
        template: str,
        jobs: Sequence[RenderJob],
        variables: Mapping[str, object] | None = None,
        *,
        mutable: bool = False,
    ) -> RenderResult:
        """Render every job in one exchange, as the renderer behind it does."""
        answer = self._renderer.render(template, jobs, variables, mutable=mutable)
        for result in answer.results:
            text = result.text if isinstance(result, Rendered) else ""
            self._hash.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
        return answer


class Renderer(Closing):
    """Renders in a sandbox; a context manager. A template that kills a child affects no other template.

    ``sandbox`` may be shared; the default is a sandbox of its own.
    """

    def __init__(self, sandbox: Sandbox | None = None, *, cpu_seconds: float = CPU_SECONDS) -> None:
        from importer.sandbox.pool import Sandbox  # a child imports this module and starts no sandbox

        self._cpu_seconds = cpu_seconds
        self.sandbox = sandbox or Sandbox()

    def render(
        self,
        template: str,
        jobs: Sequence[RenderJob],
        variables: Mapping[str, object] | None = None,
        *,
        mutable: bool = False,
    ) -> RenderResult:
        """Render every job in one exchange.

        Raises SandboxError where no child returns a result.
        """
        exchange = RenderExchange(template, jobs, variables or {}, mutable, self._cpu_seconds)
        seconds = self._cpu_seconds + SETTING_UP
        answer = self.sandbox.call(RENDER, exchange, "the chat template", seconds)
        if isinstance(answer, OverLimit):
            return RenderResult((RenderRefused(answer.reason, "limit"),) * len(jobs))
        return answer

    def close(self) -> None:
        """End the children; the next call starts a new one."""
        self.sandbox.close()
