"""A bounded child process that reads untrusted text: ``Sandbox.call(task, question)``.

``Sandbox`` is imported on its first use: a child, and a module that only declares a task, do not need it.
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
