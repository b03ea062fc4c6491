"""The far end of a launcher: validate the document of a bundle on this machine, and say what it ran on."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path
from typing import Any

from importer.app.validate import validate_document
from importer.config_file.store import Store
from importer.engines import get, install
from importer.engines.machine import cards_named, this_machine
from importer.errors import ImporterError
from importer.hub.local import ANYWHERE
from importer.launchers.bundle import Bundle
from importer.launchers.result import Result
from importer.progress import Progress
from importer.validation.registry import named
from importer.version import __version__

IMAGE = "IMPORTER_IMAGE"  # a launcher names the image here, where there is one


def run_task(bundle: Bundle, progress: Progress) -> Result:
    """Validate the document of a bundle and return its report, or the error that kept it from one.

    Raises LauncherError("bad-bundle") where the document is not the one that was sent.
    """
    facts = machine(bundle.engine)
    with tempfile.TemporaryDirectory(prefix="importer-task-") as folder:
        stored = bundle.unpack(Path(folder))
        try:
            stored.check()
            install.need(get(bundle.engine))
            report = validate_document(
                stored, Store(Path(folder)), bundle.engine, ANYWHERE,
                fetch=bundle.fetch, port=None, progress=progress,
                probes=None if bundle.probes is None else named(bundle.probes),
                score=bundle.score, time_limit=bundle.time_limit,
            )  # fmt: skip
        except ImporterError as error:
            told = {"kind": error.kind, "message": error.sentence(), "exit_code": error.exit_code}
            return Result(bundle.task, stored.digest, __version__, facts, error=told)
    return Result(bundle.task, stored.digest, __version__, facts, report=report)


def machine(engine: str) -> dict[str, Any]:
    """Return the host, the device that the engine runs on, its driver, and the image if one is named."""
    device, cards = this_machine(engine), cards_named()
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": {"kind": device.kind, "name": device.name, "count": device.count, "memory": device.memory},
        "cards": [name for name, _ in cards],
        "driver": cards[0][1] if cards else None,
        "image": os.environ.get(IMAGE) or None,
    }
