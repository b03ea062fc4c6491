"""``importer serve``, ``worker`` and ``keys``: the service's processes and who may ask it."""

from __future__ import annotations

import argparse

from importer.cli import show
from importer.cli.importing import user
from importer.service import settings
from importer.service.settings import Found


def serve(arguments: argparse.Namespace) -> None:
    """Answer requests and run jobs until a signal ends it."""
    found = _found(arguments)
    if arguments.show_config:
        show.line(found.to_text().rstrip())
        return
    from importer.service.server import serve as run

    run(found.settings)


def worker(arguments: argparse.Namespace) -> None:
    """Run jobs until a signal ends it."""
    found = _found(arguments)
    if arguments.show_config:
        show.line(found.to_text().rstrip())
        return
    from importer.service.server import work

    work(found.settings)


def keys(arguments: argparse.Namespace) -> None:
    """Make, list or revoke API keys."""
    from importer.gallery import keys as kept
    from importer.gallery.act import Act
    from importer.gallery.opening import opened

    database = opened(_found(arguments).settings.url)
    who = user()
    with database.writing() as connection:
        if arguments.action == "create":
            made = kept.create(
                connection, arguments.name, arguments.scope or ["read"], Act(who, "create key")
            )
            show.line(made)
        elif arguments.action == "revoke":
            kept.revoke(connection, arguments.key, Act(who, "revoke key"))
            show.note(f"Revoked {arguments.key}.")
        else:
            found = kept.listed(connection)
            if arguments.json:
                for one in found:
                    show.json_line(show.json_text(one))
            else:
                rows = [tuple(show.value(v) for v in one.values()) for one in found]
                heads = ("id", "name", "scopes", "made", "by", "revoked")
                show.console().print(show.table(heads, rows))


def _found(arguments: argparse.Namespace) -> Found:
    return settings.read(vars(arguments), arguments.config)
