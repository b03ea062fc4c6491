"""Launchers: validations on a cluster or another machine. One module each, and its form in ``target``."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from importer.launchers.base import FORMS, Launcher, Target


def get(target: Target) -> Launcher:
    """Return the launcher of a target; raises UsageError("bad-target")."""
    return cast(Launcher, import_module(FORMS[target.scheme].module).launcher(target))
