"""A bounded child process that reads whatever a stranger wrote: ``Sandbox.call(task, question)``."""

from __future__ import annotations

from importer.sandbox.pool import Sandbox
from importer.sandbox.task import OverLimit, SandboxReason, Task

__all__ = ["OverLimit", "Sandbox", "SandboxReason", "Task"]
