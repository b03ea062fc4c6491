"""A bounded child process that reads whatever a stranger wrote: ``Sandbox.call(task, question)``.

What starts children is loaded when it is asked for: a child, and who only declares a task, need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from importer.sandbox.task import OverLimit, SandboxReason, Task

if TYPE_CHECKING:
    from importer.sandbox.pool import Sandbox

__all__ = ["OverLimit", "Sandbox", "SandboxReason", "Task"]


def __getattr__(name: str) -> Any:
    if name != "Sandbox":
        raise AttributeError(name)
    from importer.sandbox.pool import Sandbox

    return Sandbox
