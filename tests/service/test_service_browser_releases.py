"""Releases on the page: what is served, a release, a roll-back and a withdrawal, in chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browsing import chrome, folder, imported, seen, service, state
from tests.pages import Seen
from tests.publishing import published, validated
from tests.serving import Service

__all__ = ["chrome", "folder", "seen", "service"]
pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("service-mlx")]


def test_releases_are_shown_rolled_back_to_and_withdrawn(seen: Seen, service: Service) -> None:
    name = imported(service, "released")
    published(service, name)
    patch = {"parameters": {"temperature": 0.31}}
    service.client.patch(f"/v1/configs/{name}", json=patch, headers={"If-Match": "*"}).raise_for_status()
    validated(service, name)
    page = seen.go(f"documents/{name}/decisions")
    state(page, "stale")
    expect(page.get_by_text("Release 1 is published; the working copy is not")).to_be_visible()
    row = page.get_by_role("row", name="parameters.temperature")
    expect(row.get_by_text("0.31", exact=True)).to_be_visible()
    expect(row.get_by_text("edited", exact=True)).to_be_visible()
    expect(row.get_by_text("imported: ")).to_be_visible()
    expect(row.get_by_text("served: ")).to_be_visible()
    expect(row.get_by_text("by local")).to_be_visible()
    page.get_by_role("link", name="Review", exact=True).click()
    expect(page.get_by_role("region", name="What LocalAI's entry lacks")).to_contain_text(
        "The commit is not pinned"
    )
    service.approve(name, publish=False).raise_for_status()
    page.reload()
    state(page, "ready")
    page.get_by_label("Note").fill("a day in staging")
    page.get_by_role("button", name="Release", exact=True).click()
    state(page, "published")
    page.get_by_role("link", name="Releases").click()
    table = page.get_by_role("region", name="Releases").last
    expect(table.get_by_text("a day in staging")).to_be_visible()
    expect(table.get_by_text("0.31")).to_be_visible()
    page.get_by_role("button", name="Roll back to it: release 1").click()
    expect(page.get_by_text("The gallery serves release 1.")).to_be_visible()
    page.get_by_role("button", name="Withdraw: release 1").click()
    expect(page.get_by_text("The gallery serves no release of this document.")).to_be_visible()
    assert service.client.get(f"/gallery/{name}.yaml").status_code == 404
    seen.check()
