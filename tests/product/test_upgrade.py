"""What each release has written is read by this commit: documents, receipts, the service's database.

Until a version is out, ``python -m tests.releasing`` writes its folder anew.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from importer.document.store import Store
from importer.version import __version__
from tests.hubserver import HubServer
from tests.releasing import NAMES, RELEASES, restored
from tests.serving import Service

VERSIONS = sorted(path.name for path in RELEASES.iterdir())


def test_this_version_has_its_folder() -> None:
    assert __version__ in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_documents_and_receipts_of_a_release_are_read(version: str) -> None:
    store = Store(RELEASES / version / "models")
    assert sorted(store.names()) == [*NAMES]
    for name in NAMES:
        stored = store.load(name)
        stored.check()
        assert stored.need_receipt().decisions["tool_parser"]
        assert stored.reference == f"acme/{name}"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_service_goes_on_with_the_database_of_a_release(version: str, tmp_path: Path) -> None:
    restored(version, tmp_path / "gallery.sqlite")
    with HubServer({}) as hub, closing(Service(tmp_path, hub)) as service:
        service.start("--log-level", "warning")
        listed = service.client.get("/v1/configs").json()
        found = {row["name"]: row["validation"] for row in listed["items"]}
        assert found == {NAMES[0]: "passed", NAMES[1]: "never"}
        assert service.client.get(f"/v1/configs/{NAMES[0]}/receipt").status_code == 200
        index = service.client.get("/gallery/index.yaml").text
        assert f"name: {NAMES[0]}" in index
        assert f"name: {NAMES[1]}" not in index
        assert service.approve(NAMES[1]).status_code == 200
