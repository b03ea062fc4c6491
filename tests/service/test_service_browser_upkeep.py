"""The review queue of upkeep on the page: a finding is looked at, accepted, and another one rejected."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browsing import chrome, folder, seen, service
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.pages import Seen
from tests.rechecking import WARM
from tests.serving import Service

__all__ = ["chrome", "folder", "seen", "service"]
pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("service-mlx")]


def test_findings_are_looked_at_accepted_and_rejected(seen: Seen, service: Service) -> None:
    names = ["kept-up", "left-alone"]
    for name in names:
        repo = service.hub.repos[f"acme/{name}"] = Repo(BASE)
        assert service.imported(f"acme/{name}", name=name)["state"] == "succeeded"
        repo.commit(WARM)
    job = service.client.post("/v1/recheck", json={"names": names}).json()
    assert service.ended(job["id"])["result"]["outcomes"] == {"found": 2}
    page = seen.go("upkeep")
    expect(page.get_by_role("heading", name="kept-up: commit")).to_be_visible()
    expect(page.get_by_text("generation_config.json").first).to_be_visible()
    page.get_by_role("link", name="Before and after: kept-up").click()
    expect(page.get_by_role("heading", name="Finding: kept-up")).to_be_visible()
    expect(page.get_by_text("temperature: 0.7").first).to_be_visible()
    page.get_by_role("button", name="Accept: kept-up").click()
    expect(page.get_by_role("heading", name="left-alone: commit")).to_be_visible()
    expect(page.get_by_role("heading", name="kept-up: commit")).to_have_count(0)
    page.get_by_role("button", name="Reject: left-alone").click()
    expect(page.get_by_text("0 findings")).to_be_visible()
    found = [service.client.get(f"/v1/configs/{name}").json()["data"] for name in names]
    assert [data["parameters"]["temperature"] for data in found] == [0.7, 0.6]
    page.get_by_role("button", name="Recheck all documents").click()
    expect(page.get_by_role("heading", name="Recheck of")).to_be_visible()
    page.get_by_role("link", name="See what was found").click()
    expect(page.get_by_text("0 findings")).to_be_visible()
    seen.check()
