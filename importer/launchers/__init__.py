"""Launchers: validations on a cluster or another machine. One module each, and one line in ``REGISTRY``."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from importer.errors import UsageError
from importer.launchers.base import Launcher
from importer.launchers.target import PlaceReason, Target
from importer.reasons import Reason

# The module of each scheme; its ``launcher(target)`` returns the Launcher.
REGISTRY = {
    "ray": "ray",
    "ssh": "ssh",
    "slurm": "slurm",
    "k8s": "kubernetes",
}


def get(target: Target) -> Launcher:
    """Return the launcher of a target; raises UsageError("bad-target")."""
    name = REGISTRY.get(target.scheme)
    if name is None:
        raise UsageError("bad-target", target=target.text, problem=Reason(PlaceReason.NO_LAUNCHER))
    return cast(Launcher, import_module(f"{__name__}.{name}").launcher(target))
