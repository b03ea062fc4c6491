"""The target of a document: an engine, its version and parsers; a device, named or this machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from importer.chat_template.conventions import CONVENTIONS, PYTHONIC, offered
from importer.chat_template.override import TemplateOverride
from importer.decisions.decision import Target
from importer.engines import capabilities, machine, registries
from importer.errors import Setting, UsageError
from importer.memory.devices import Device, named, size
from importer.reasons import Reason
from importer.signals.engine_capabilities import Machine


class TargetReason(StrEnum):
    """Why a document cannot be written for an engine."""

    NOT_ON_APPLE = "not-on-apple"
    TEMPLATE_UNKNOWN = "template-unknown"
    CALLS_UNREAD = "calls-unread"


@dataclass(frozen=True, slots=True)
class BoundTarget:
    """A target, and the Python of the engine's environment for the proof, if it is installed."""

    target: Target
    python: Path | None = None


def bind(backend: str, version: str | None = None, *, ask: bool = True) -> BoundTarget:
    """Return the target: ``version`` if there is one, else the installed engine's, else the pinned one.

    With ``ask`` the target has the installed engine's Python, if its version is the target's. Raises
    UsageError("bad-value") for a version without a registry.
    """
    from importer.engines import get, install, runs

    known = registries.versions(backend)
    if not known:
        return BoundTarget(Target(backend, version, able=capabilities.load(backend, version)))
    installed = install.find(get(backend)) if runs(backend) else None
    if version is None and installed is not None and installed.version in known:
        version = installed.version
    registry = registries.load(backend, version)
    provider = installed if ask and installed is not None and installed.version == registry.version else None
    parsers = {"tool_parser": registry.classes("tool"), "reasoning_parser": registry.classes("reasoning")}
    able = capabilities.load(backend, registry.version)
    target = Target(backend, registry.version, parsers, provider is not None, runs(backend), able)
    target = replace(target, templates=offered(backend))
    return BoundTarget(target, None if provider is None else provider.python)


def device_for(name: str | None, memory: int | None, backend: str) -> Device:
    """Return the named device, else what this machine has for the backend; with ``memory`` bytes where given.

    Raises UsageError("unknown-device") and UsageError("bad-value").
    """
    device = machine.this_machine(backend) if name is None else named(name)
    if backend == "vllm" and device.kind == "metal":
        problem = Reason(TargetReason.NOT_ON_APPLE)
        raise UsageError("bad-value", setting=Setting.DEVICE, value=name, problem=problem)
    if memory is not None:
        return device.with_memory(memory)
    return device if device.memory is not None else machine.this_machine(backend, cards=False)


def parse_device(name: str | None, memory: str | None) -> tuple[str | None, int | None]:
    """Return a device's full name and its memory in bytes of texts such as ``48GiB``; raises UsageError."""
    label = None if name is None else named(name).label
    return label, None if memory is None else size(memory)


def machine_for(name: str | None) -> Machine:
    """Return the named device, else what vLLM would run on here, as readers of evidence need it."""
    device = machine.this_machine("vllm") if name is None else named(name)
    major, _, minor = (device.capability or "").partition(".")
    capability = int(major) * 10 + int(minor) if major.isdecimal() and minor.isdecimal() else None
    return Machine(device.kind, capability, name or machine.NAME)


def platform_for(name: str | None) -> str:
    """Return the operating system of a named device, as ``sys.platform``; else this machine's."""
    kind = "cpu" if name is None else named(name).kind
    return sys.platform if kind == "cpu" else "darwin" if kind == "metal" else "linux"


def with_template(target: Target, override: TemplateOverride) -> Target:
    """Return the target with the additions of the template: for vLLM a parser of importer's.

    Raises UsageError("bad-value") for an engine that cannot be started with it.
    """
    from importer.engines.vllm import PLUGIN

    problem = None
    if not target.runs:
        problem = Reason(TargetReason.TEMPLATE_UNKNOWN, backend=target.backend)
    elif override.name in CONVENTIONS and override.name not in target.templates:
        problem = Reason(TargetReason.CALLS_UNREAD, backend=target.backend, known=target.templates)
    if problem is not None:
        raise UsageError("bad-value", setting=Setting.TEMPLATE, value=override.word, problem=problem)
    if target.backend != "vllm":
        return replace(target, templates=())
    tools = {**target.parsers["tool_parser"], PYTHONIC: "ImporterPythonicToolParser"}
    parsers = {**target.parsers, "tool_parser": tools}
    return replace(target, parsers=parsers, plugin=str(PLUGIN), templates=())
