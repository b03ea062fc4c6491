"""Measure the memory of real configurations on the card at hand: one line of JSON for each, to be kept.

``python -m benchmarks measured FOLDER`` takes each folder in it with a ``config.json`` and a tokenizer, with
or without weights. A line has the estimate before the start, and what the engine reported or how it failed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gen_defaults.paths import folder
from importer.app.api import import_model
from importer.app.measure import measure
from importer.document.store import Store
from importer.engines import get
from importer.errors import ImporterError
from importer.hub.local import ANYWHERE
from importer.progress import silent

DEVICE = "this-machine"


def main(arguments: Sequence[str]) -> int:
    """Print a line for each folder: name, estimate, measurement, or the failure with its sentence."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks measured", description=__doc__)
    parser.add_argument("folder", type=folder, metavar="FOLDER")
    for config in sorted(parser.parse_args(arguments).folder.glob("*/config.json")):
        print(json.dumps(line(config.parent), ensure_ascii=False), flush=True)
    return 0


def line(model: Path) -> dict[str, object]:
    """Return the record of one configuration."""
    record: dict[str, object] = {"name": model.name, "engine": get("vllm").name}
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = import_model(str(model), folder=folder, backend="vllm", device=DEVICE)
            store = Store(Path(folder))
            stored = store.load(made.name)
            record |= {"document": stored.data, "fit": stored.need_receipt().fit}
            start = partial(measure, engine_name="vllm", places=ANYWHERE, progress=silent)
            record["measured"] = start(stored).to_json()
        except ImporterError as error:
            record |= {"kind": error.kind, "problem": error.sentence()}
    return record
