"""Rendering a template: what is asked of the sandbox, what comes back, and a renderer that asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from importer.reasons import Reason
from importer.sandbox import OverLimit, Task
from importer.sandbox.closing import Closing

if TYPE_CHECKING:
    from importer.sandbox import Sandbox

CPU_SECONDS = 2.0  # for one exchange, which takes 0.1 s with a real template
SETTING_UP = 1.0  # seconds of processor time that a question may take beside its rendering


@dataclass(frozen=True, slots=True)
class RenderJob:
    """One conversation to render; ``later`` is so many seconds after the time at which the clock stands."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool = False
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    later: float = 0


class RefusalReason(StrEnum):
    """Why a rendering gives no text."""

    RAISED = "raised"
    LENGTH = "length"
    MEMORY = "memory"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Rendered:
    """What the template wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class RenderRefused:
    """Why there is no text: ``syntax``, ``refused`` by the template, a ``limit``, or no ``memory``.

    ``broke`` says that it raised without ``raise_exception``: nobody meant to refuse.
    """

    reason: Reason
    kind: Literal["syntax", "refused", "limit", "memory"]
    broke: bool = False

    @property
    def words(self) -> str:
        """Return what the template or Jinja itself said, if it was one of them."""
        return str(self.reason.fields["words"]) if self.reason.kind is RefusalReason.RAISED else ""


Result = Rendered | RenderRefused


@dataclass(frozen=True, slots=True)
class RenderResult:
    """The answer to one exchange.

    ``results``    one per job, in order.
    ``variables``  what a caller may set, each with the constants it is compared with.
    """

    results: tuple[Result, ...]
    variables: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenderExchange:
    """A template and every conversation to render with it.

    ``variables``  strings known by name (``bos_token`` …); a job's own ``kwargs`` win over them.
    ``mutable``    lets the template change its own lists, which transformers refuses.
    ``seconds``    of processor time; once they are out, the remaining jobs are refused.
    """

    template: str
    jobs: Sequence[RenderJob]
    variables: Mapping[str, Any] = field(default_factory=dict)
    mutable: bool = False
    seconds: float = CPU_SECONDS


RENDER = Task(
    "importer.chat_template.render:RENDER", "importer.chat_template.render_worker:render",
    RenderExchange, RenderResult,
    CPU_SECONDS + SETTING_UP, warm="importer.chat_template.render_worker:warm",
)  # fmt: skip


class Renders(Protocol):
    """What renders: ``Renderer`` from outside, ``worker.Local`` within a task of the sandbox."""

    def render(
        self,
        template: str,
        jobs: Sequence[RenderJob],
        variables: Mapping[str, Any] | None = None,
        *,
        mutable: bool = False,
    ) -> RenderResult:
        """Render every job in one exchange; what the template does wrong is a result with a reason."""


class Renderer(Closing):
    """Renders in a sandbox. Use as a context manager; a template that kills a child costs only itself.

    ``sandbox``  that others use too; without one it has its own.
    """

    def __init__(self, sandbox: Sandbox | None = None, *, cpu_seconds: float = CPU_SECONDS) -> None:
        from importer.sandbox.pool import Sandbox  # a child, which declares this task, starts none

        self._cpu_seconds = cpu_seconds
        self.sandbox = sandbox or Sandbox()

    def render(
        self,
        template: str,
        jobs: Sequence[RenderJob],
        variables: Mapping[str, Any] | None = None,
        *,
        mutable: bool = False,
    ) -> RenderResult:
        """Render every job in one exchange. Raises SandboxError where no child could answer."""
        exchange = RenderExchange(template, jobs, variables or {}, mutable, self._cpu_seconds)
        seconds = self._cpu_seconds + SETTING_UP
        answer = self.sandbox.call(RENDER, exchange, "the chat template", seconds)
        if isinstance(answer, OverLimit):
            return RenderResult((RenderRefused(answer.reason, "limit"),) * len(jobs))
        return answer

    def close(self) -> None:
        """End the children; the next call starts another."""
        self.sandbox.close()
