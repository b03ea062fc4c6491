"""What the page stands on, in Debian's chromium: its places and the focus."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browsing import chrome, seen
from tests.pages import Seen
from tests.serving import Service, fresh, service

__all__ = ["chrome", "seen", "service"]
pytestmark = pytest.mark.slow


def test_each_view_is_shown_by_its_place(seen: Seen, service: Service) -> None:
    name = fresh(service, "shown")
    job = service.client.get("/v1/jobs").json()["items"][0]["id"]
    places = {
        "": "Documents", "documents": "Documents", "import": "Import", "jobs": "Jobs", "upkeep": "Upkeep",
        "gallery": "Gallery", "operations": "Operations",
        "deleted": "Deleted documents", "key": "API key", f"jobs/{job}": "Import of",
        **{f"documents/{name}{tab}": name for tab in ("", "/decisions", "/text", "/probes", "/releases")},
        "nowhere": "That did not work", "gallery/odd": "That did not work",
    }  # fmt: skip
    for place, title in places.items():
        page = seen.go(place)
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)
        assert page.title().startswith(title)
    seen.check()


def test_what_is_written_outlasts_a_filter_and_the_focus_stays(seen: Seen, service: Service) -> None:
    fresh(service, "filtered")
    page = seen.go("documents")
    draft = page.locator("[name=state][value=draft]")
    draft.press("Space")
    page.wait_for_url("**/#/documents?state=draft")
    expect(page.locator("main")).to_have_attribute("aria-busy", "false")
    assert page.evaluate("document.activeElement.value") == "draft"
    expect(draft).to_be_checked()
    seen.check()
