"""Serve a document for a person: the engine as a validation starts it, without probes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from importer.app import approvals
from importer.app.run_settings import for_engine
from importer.app.validate import ready, weights_of
from importer.document.store import StoredDocument
from importer.hub.local import AllowedFolders
from importer.progress import Progress

if TYPE_CHECKING:
    from importer.engines.process import EngineServer


@contextmanager
def serving(
    stored: StoredDocument,
    engine_name: str,
    places: AllowedFolders,
    *,
    fetch: bool,
    port: int | None,
    progress: Progress,
) -> Iterator[EngineServer]:
    """Serve the document on loopback, with this machine's own limits; the engine has ended after the block.

    ``fetch``  the weights where they are not on this disk. ``port``  ``None`` for a free one. Raises
    DocumentError("needs-approval"), EngineError and HubError.
    """
    from importer.engines import get, install
    from importer.engines.process import serve

    approvals.need(stored, ())
    engine = get(engine_name)
    installed = install.need(engine)
    weights = weights_of(stored, None, places, fetch=fetch, progress=progress)
    ready(stored, engine_name, places, weights=weights, port=port)
    document, _ = for_engine(stored, engine.name, weights)
    template = stored.chat_template()
    with serve(
        engine, installed.python, document, weights, port=port, progress=progress, template=template
    ) as served:
        yield served
