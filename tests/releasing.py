"""What a release leaves on disk: ``python -m tests.releasing`` writes it for this version, until that is out.

Documents with their receipts, and a service's database as SQL. Every later commit reads each version's.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from importer import import_model
from importer.version import __version__
from tests.commandline import BASE
from tests.hubserver import HubServer, Repo
from tests.publishing import validated
from tests.serving import Service

RELEASES = Path(__file__).parent / "fixtures" / "releases"
NAMES = ("base", "second")  # one is approved, validated and released, one waits


def main() -> int:
    """Write the folder of this version anew."""
    place = RELEASES / __version__
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder, HubServer({f"acme/{n}": Repo(BASE) for n in NAMES}) as hub:
        os.environ |= {
            "HF_ENDPOINT": hub.url,
            "IMPORTER_HOME": folder,
            "HF_HOME": folder,
            "IMPORTER_PARSERS": "off",
        }
        for name in NAMES:
            import_model(f"acme/{name}", backend="vllm", folder=place / "models")
        with closing(Service(Path(folder), hub)) as service:
            service.start("--rate", "0", "--log-level", "warning")
            for name in NAMES:
                service.imported(f"acme/{name}", name=name)
            validated(service, NAMES[0])
            service.approve(NAMES[0], publish=True).raise_for_status()
            service.stop()
        with closing(sqlite3.connect(f"{folder}/gallery.sqlite")) as database:
            (place / "gallery.sql").write_text("".join(f"{line}\n" for line in database.iterdump()), "utf-8")
    print(f"wrote {place}")
    return 0


def restored(version: str, path: Path) -> Path:
    """Return a database with what a version had written."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript((RELEASES / version / "gallery.sql").read_text("utf-8"))
    return path


if __name__ == "__main__":
    sys.exit(main())
