"""What can be typed behind ``serve``, ``worker`` and ``keys``: an option for each setting."""

from __future__ import annotations

import argparse
from typing import Any


def add(sub: argparse._SubParsersAction[Any]) -> None:
    """Add the service's commands."""
    serve = sub.add_parser("serve", help="the gallery service: REST, jobs, review, a gallery for LocalAI")
    worker = sub.add_parser("worker", help="run the service's jobs on this machine, too")
    for p in (serve, worker):
        _settings(p)
        p.add_argument("--show-config", action="store_true", help="print all settings and their sources")
    actions = sub.add_parser("keys", help="API keys").add_subparsers(
        dest="action", metavar="create|list|revoke", required=True
    )
    create = actions.add_parser("create", help="make a key; it is shown this once")
    create.add_argument("name", metavar="NAME", help="whose it is")
    create.add_argument(
        "--scope", action="append", choices=("read", "import", "approve", "admin"), help="repeatable"
    )
    listed = actions.add_parser("list", help="all keys, without their secrets")
    listed.add_argument("--json", action="store_true", help="one line of JSON per key")
    revoke = actions.add_parser("revoke", help="a key counts no longer")
    revoke.add_argument("key", metavar="ID")
    for p in (create, listed, revoke):
        p.add_argument("--database", help="sqlite:///FILE or postgresql://…")
        p.add_argument("--config", metavar="FILE", help="settings as TOML")


def _settings(parser: argparse.ArgumentParser) -> None:
    """One option for each setting; nothing is checked here, so that every source is checked alike."""
    from importer.service.settings import all_fields, default

    parser.add_argument("--config", metavar="FILE", help="settings as TOML, by the options' names")
    for one in all_fields():
        name, kind = f"--{one.name.replace('_', '-')}", type(default(one))
        says, more = (
            str(one.metadata["help"]),
            f" (default: {default(one)})" if default(one) not in ("", []) else "",
        )
        if kind is bool:
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=None, help=says)
        elif kind is list:
            parser.add_argument(name, action="append", metavar="NAME", help=says)
        else:
            parser.add_argument(name, metavar="N" if kind is int else "TEXT", help=says + more)
