"""The target of a document: an engine, its version and parsers; a device, named or this machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from importer import backends, config
from importer.chat_template.conventions import CONVENTIONS, offered
from importer.chat_template.override import TemplateOverride
from importer.decisions.decision import PYTHON, RUST, Frontend, Target
from importer.engines import machine, registries
from importer.errors import Setting, UsageError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.memory.devices import Device, named, size, unsuited
from importer.reasons import Fields, Reason, ReasonKind
from importer.signals import quantisation
from importer.signals.architecture import model_types
from importer.signals.engine_capabilities import Machine
from importer.signals.evidence import TASKS
from importer.signals.reasons import KINDS

if TYPE_CHECKING:
    from importer.engines.install import Installed

HERE = "this-machine"  # the name of this machine for --device
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
HARMONY = "gpt_oss"  # vllm-rs 0.33: ``chat/src/backend/hf.rs``


def _weights_for_mlx(fields: Fields) -> str:
    original = fields["original"][0] if fields["original"] else "the original repository"
    return (
        f"{fields['backend']} does not read weights in MLX's own quantisation; import {original} for it, or "
        "choose one of Apple's devices"
    )


class TargetReason(ReasonKind):
    """Why a document cannot be written for an engine."""

    TEMPLATE_UNKNOWN = "how {backend} is started with another chat template is not known"
    CALLS_UNREAD = "{backend} reads none of its calls; it reads {known}"
    FRONTEND_OF_VLLM = "only vLLM has several frontends, and the document is for {backend}"
    WEIGHTS_FOR_MLX = (_weights_for_mlx,)
    OTHER_KIND = (
        lambda fields: (
            f"importer starts {fields['backend']} for models that generate text; this is "
            f"{KINDS[fields['of']]}, and {' or '.join(fields['served'])} serves it"
        ),
    )
    REQUIRED = "a document for one device alone requires a device"


@frozen
class BoundTarget:
    """A target, and the Python of the engine's environment for the proof, if it is installed."""

    target: Target
    python: Path | None = None


def bind(
    backend: str,
    version: str | None = None,
    *,
    ask: bool = True,
    frontend: Frontend | None = None,
    kind: str | None = None,
    parsers_of: Callable[[str, str], Installed | Reason | None] = lambda _backend, _version: None,
) -> BoundTarget:
    """Return the target: ``version`` if there is one, else the installed engine's, else the pinned one.

    ``frontend`` is vLLM's, by default the one in Python. ``kind`` is that of the device: ``cuda`` has a build
    of vLLM with versions of its own. With ``ask`` the target has the Python of an installed engine of the
    target's version, else that of its parsers alone (``parsers_of``). Of a version without a registry, before
    the newest known one, the names of parsers are not known. Raises UsageError("bad-value") for a later one,
    and for one without the frontend.
    """
    from importer.engines import runs

    check_frontend(backend, frontend)
    known = registries.versions(backend)
    if not known or (frontend != RUST and registries.is_unlisted(backend, version)):
        able = registries.load_capabilities(backend, version)
        return BoundTarget(Target(backend, version, runs=runs(backend), able=able))
    builds = backends.of(backend).builds or (backend,)
    build = _build(builds, kind, frontend)
    installed = [one for name in builds if runs(backend) and (one := _installed(name)) is not None]
    own = next((i.version for i in installed if i.engine == build and i.version in known), None)
    if frontend == RUST and own not in registries.versions(f"{backend}-{RUST}"):
        own = None  # else the newest with this frontend
    pinned = None if frontend == RUST else registries.PINNED.get(build)
    registry = registries.load(backend, version or own or pinned, frontend if frontend == RUST else None)
    provider: Installed | Reason | None = None
    if ask:
        provider = next((one for one in installed if one.version == registry.version), None)
        if provider is None and frontend != RUST:
            provider = parsers_of(backend, registry.version)
    unfetched, found = (provider, None) if isinstance(provider, Reason) else (None, provider)
    able = registries.load_capabilities(backend, registry.version)
    target = Target(backend, registry.version, _names(registry), found is not None, runs(backend), able)
    target = replace(
        target, templates=offered(backend), unfetched=unfetched, **_of_frontend(backend, registry, frontend)
    )
    return BoundTarget(target, None if found is None else found.python)


def for_model(target: Target, snapshot: Snapshot) -> Target:
    """Return the target with what vLLM's Rust frontend does by itself for this model."""
    if target.frontend != RUST:
        return target
    guessed = registries.load(target.backend, target.version, RUST).guess(
        "reasoning", snapshot.model_id or str(snapshot.directory)
    )
    return replace(target, guessed=guessed, built_in=HARMONY in model_types(snapshot))


def check_frontend(backend: str, frontend: Frontend | None) -> None:
    """Raise UsageError("bad-value") for the frontend of another engine."""
    if frontend is not None and not backends.of(backend).frontends:
        problem = Reason(TargetReason.FRONTEND_OF_VLLM, backend=backend)
        raise UsageError("bad-value", setting=Setting.FRONTEND, value=frontend, problem=problem)


def _build(builds: Sequence[str], kind: str | None, frontend: Frontend | None) -> str:
    """Return the build of an engine that serves on a kind of device, by default on this machine."""
    cards = kind in {"cuda", "rocm"} or frontend == RUST or (kind is None and machine.has_gpu())
    return builds[0 if cards else -1]


def _installed(build: str) -> Installed | None:
    from importer.engines import get, install

    return install.find(get(build))


def _names(registry: registries.Registry) -> dict[str, dict[str, str]]:
    return {"tool_parser": registry.classes("tool"), "reasoning_parser": registry.classes("reasoning")}


def _of_frontend(backend: str, registry: registries.Registry, frontend: Frontend | None) -> dict[str, Any]:
    """Return the members of a target that follow from its frontend; none for a version with one only."""
    if not registries.frontends(backend, registry.version):
        return {}
    chosen = frontend or PYTHON
    other = registries.load(backend, registry.version, PYTHON if chosen == RUST else RUST)
    return {"frontend": chosen, "elsewhere": _names(other), "joint": registry.joint}


def device_for(name: str | None, memory: int | None, backend: str) -> Device:
    """Return the named device, else what this machine has for the backend; with ``memory`` bytes where given.

    Raises UsageError("unknown-device"), and UsageError("bad-value") for a device that the backend cannot use.
    """
    device = machine.this_machine(backend) if is_here(name) else named(str(name))
    if (kind := unsuited(backend, device)) is not None:
        problem = Reason(kind, backend=backend)
        raise UsageError("bad-value", setting=Setting.DEVICE, value=name, problem=problem)
    if memory is not None:
        return device.with_memory(memory)
    return device if device.memory is not None else machine.this_machine(backend, cards=False)


def check_weights(snapshot: Snapshot, backend: str, machine: Machine) -> None:
    """Raise UsageError("bad-value") for a named card, where the weights are in MLX's own quantisation."""
    on_card = machine.is_named_card and not backends.of(backend).on_apple
    quantised = quantisation.read(snapshot) if on_card else None
    if quantised is not None and quantised.method == quantisation.MLX:
        from importer.signals.family import base_models

        made_from = tuple(m for m in base_models(snapshot) if REPOSITORY.fullmatch(m))
        problem = Reason(TargetReason.WEIGHTS_FOR_MLX, backend=backend, original=made_from)
        raise UsageError("bad-value", setting=Setting.DEVICE, value=machine.name, problem=problem)


def check_kind(kind: object, backend: str) -> None:
    """Raise UsageError("bad-value") for an engine that does not serve models of this kind."""
    if kind not in TASKS or backends.of(backend).tasks:
        return
    served = tuple(one.name for one in backends.BACKENDS.values() if one.tasks)
    problem = Reason(TargetReason.OTHER_KIND, backend=backend, of=str(kind), served=served)
    raise UsageError("bad-value", setting=Setting.BACKEND, value=backend, problem=problem)


def is_here(name: str | None) -> bool:
    """Return whether the name is that of this machine; no name is."""
    return name is None or re.sub(r"[\s_-]+", "", name.lower()) == HERE.replace("-", "")


def parse_device(
    name: str | None, memory: int | str | None, *, per_device: bool = False
) -> tuple[str | None, int | None]:
    """Return a device's full name and its memory, bytes or a text such as ``48GiB``, in bytes; raises
    UsageError.

    ``per_device`` is of a document for the device alone, which needs one: that of the settings counts, too.
    """
    name = name or config.default("device") if per_device else name
    if per_device and name is None:
        raise UsageError(
            "bad-value", setting=Setting.DEVICE, value=None, problem=Reason(TargetReason.REQUIRED)
        )
    label = None if name is None else HERE if is_here(name) else named(name).label
    return label, size(memory) if isinstance(memory, str) else memory


def machine_for(name: str | None) -> Machine:
    """Return the named device, else what vLLM would run on here, as readers of evidence need it."""
    if is_here(name) and not machine.has_gpu():
        return Machine("cpu", None, machine.NAME, name is not None)  # the memory does not matter to readers
    device = machine.this_machine(backends.DEFAULT) if is_here(name) else named(str(name))
    major, _, minor = (device.capability or "").partition(".")
    capability = int(major) * 10 + int(minor) if major.isdecimal() and minor.isdecimal() else None
    kinds = {"cuda": "cuda", "metal": "metal", "cpu": "cpu"}  # cards of other makers count as AMD's
    kind = cast("Literal['cpu', 'cuda', 'rocm', 'metal']", kinds.get(device.kind, "rocm"))
    return Machine(kind, capability, machine.NAME if is_here(name) else str(name), name is not None)


def platform_for(name: str | None) -> str:
    """Return the operating system of a named device, as ``sys.platform``; else this machine's."""
    kind = "cpu" if is_here(name) else named(str(name)).kind
    return sys.platform if kind == "cpu" else "darwin" if kind == "metal" else "linux"


def with_template(target: Target, override: TemplateOverride) -> Target:
    """Return the target, that offers no other template; raises UsageError("bad-value") for an engine that
    cannot be started with this one.
    """
    problem = None
    if not target.runs:
        problem = Reason(TargetReason.TEMPLATE_UNKNOWN, backend=target.backend)
    elif override.name in CONVENTIONS and override.name not in target.templates:
        problem = Reason(TargetReason.CALLS_UNREAD, backend=target.backend, known=target.templates)
    if problem is not None:
        raise UsageError("bad-value", setting=Setting.TEMPLATE, value=override.word, problem=problem)
    return replace(target, templates=())
