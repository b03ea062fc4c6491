"""Pools by their names, and whether a caller may use one; addresses come from the settings."""

from __future__ import annotations

from importer import launchers
from importer.errors import ServiceError, UsageError
from importer.launchers.target import parse
from importer.service import pool_setting
from importer.service.domain.grants import Caller
from importer.service.pool_setting import Pool
from importer.service.settings import Settings


def pool(settings: Settings, name: str) -> Pool:
    """Return the pool of a name, or of a target where the operator allows any.

    Raises ServiceError("unknown-pool"), UsageError("bad-target").
    """
    known = pool_setting.read(settings.pool)
    if name in known:
        return known[name]
    if not settings.any_target:
        raise ServiceError("unknown-pool", name=name[:100], known=", ".join(known) or "none")
    target = parse(name)
    launchers.get(target)
    return Pool(name, target, "admin")


def usable(settings: Settings, name: str, who: Caller) -> str:
    """Return the name of a pool that a caller may use.

    Raises ServiceError: "unknown-pool", "wrong-scope"; UsageError("bad-target").
    """
    try:
        found = pool(settings, name)
    except UsageError:
        who.needs("admin")
        raise
    who.needs(found.scope)
    return found.name
