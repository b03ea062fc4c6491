"""The setting of pools: names of places outside of this machine, who may use them, and their commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from importer.errors import UsageError
from importer.frozen import frozen
from importer.service import messages
from importer.storage import jobs, keys
from importer.transport.command import RemoteCommand, parse_command

FORM = re.compile(r"(?P<name>[a-z0-9][a-z0-9._-]{0,40})(?::(?P<scope>[a-z]+))?=(?P<command>.+)")
SCOPE = "import"  # of a caller that may use a pool, unless its setting names another


@frozen
class Pool:
    """A pool; ``scope`` is what a caller needs to use it. Its command is known to the operator alone."""

    name: str
    command: RemoteCommand
    scope: str = SCOPE


def read_pool_setting(texts: Sequence[str]) -> dict[str, Pool]:
    """Return the pools of a setting by name; raises ValueError with a text, and UsageError("bad-target")."""
    found = dict[str, Pool]()
    for text in texts:
        match = FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not NAME=COMMAND or NAME:SCOPE=COMMAND")
        name, scope = match["name"], match["scope"] or SCOPE
        if name in found:
            raise ValueError(f"{name} stands twice")
        if scope not in keys.SCOPES:
            raise ValueError(f"{scope} is no scope, which are {', '.join(keys.SCOPES)}")
        command = replace(parse_command(match["command"]), where=f"{jobs.PREFIX}{name}")
        found[name] = Pool(name, command, scope)
    return found


def fault(texts: list[str]) -> str | None:
    """Return what is wrong with a setting."""
    try:
        read_pool_setting(texts)
    except ValueError as error:
        return str(error)
    except UsageError as error:
        return messages.text(error.details["problem"])
    return None
