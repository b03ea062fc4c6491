"""The page's lists, what a recheck shows, and its question for a key, in Debian's chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browsing import chrome, seen
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.pages import Seen
from tests.publishing import keys_by_scopes
from tests.rechecking import WARM
from tests.serving import Service, running
from tests.serving import own_service as service

__all__ = ["chrome", "seen", "service"]
pytestmark = pytest.mark.slow


def test_a_list_is_one_job_and_the_lists_have_pages_and_filters(seen: Seen, service: Service) -> None:
    service.hub.repos["acme/second"] = Repo(BASE)
    page = seen.go("import")
    page.get_by_label("Models").fill("acme/second\nacme/nowhere\nno owner\n")
    page.get_by_label("Backend").select_option("vllm")
    page.get_by_role("button", name="Import", exact=True).click()
    seen.heading("Import of 3 models")
    expect(page.get_by_role("region", name="Jobs").get_by_text("succeeded")).to_be_visible()
    expect(page.locator(".job")).to_contain_text("1 failed")
    expect(page.get_by_role("row", name="no owner")).to_contain_text("3")
    service.hub.repos["acme/nowhere"] = Repo(BASE)
    asked = page.get_by_role("region", name="Request")
    expect(asked.get_by_role("link", name="acme/second")).to_have_attribute(
        "href", f"{service.hub.url}/acme/second"
    )
    expect(asked.get_by_role("listitem")).to_have_text(["acme/second", "acme/nowhere"])
    seen.press("Retry failed")
    expect(page.locator(".job")).to_contain_text("2 succeeded")
    expect(page.get_by_role("region", name="Jobs").get_by_text("succeeded")).to_have_count(2)
    seen.go("documents?state=draft&q=second")
    expect(page.locator("#count")).to_have_text("1 document")
    page.get_by_role("searchbox").fill("nothing like it")
    expect(page.locator("#count")).to_have_text("0 documents")
    assert page.url.endswith("#/documents?q=nothing+like+it&state=draft")
    page.go_back()
    expect(page.locator("#count")).to_have_text("1 document")
    page.get_by_role("link", name="Clear filters").click()
    expect(page.get_by_role("link", name="second", exact=True)).to_be_visible()
    seen.go("jobs?state=failed")
    expect(page.get_by_role("region", name="Jobs").get_by_text("succeeded")).to_have_count(0)
    seen.check()


def test_what_an_import_would_change_is_shown_and_imported(seen: Seen, service: Service) -> None:
    repo = service.hub.repos["acme/kept-up"] = Repo(BASE)
    assert service.imported("acme/kept-up", name="kept-up")["state"] == "succeeded"
    repo.commit(WARM)
    page = seen.go("documents/kept-up")
    page.locator(".menu > summary").click()
    page.get_by_role("button", name="Recheck").click()
    expect(page.get_by_role("heading", name="Recheck of kept-up")).to_be_visible()
    expect(page.get_by_text("An import would change the document.")).to_be_visible()
    page.get_by_role("link", name="Review kept-up").click()
    dry = page.get_by_role("region", name="An import would differ")
    expect(dry).to_contain_text("parameters.temperature")
    dry.get_by_role("button", name="Import again").click()
    page.get_by_role("link", name="Review kept-up").click()
    expect(page.get_by_role("heading", name="kept-up")).to_be_visible()
    expect(page.get_by_role("region", name="An import would differ")).to_have_count(0)
    assert service.config("kept-up")["data"]["parameters"]["temperature"] == 0.7
    seen.check()


def test_a_server_that_needs_a_key_asks_for_it(chrome: Browser, tmp_path: Path) -> None:
    made = keys_by_scopes(tmp_path, "read", "read+import+approve")
    with running(tmp_path, "--host", "0.0.0.0", "--no-validate") as service:
        seen = Seen(chrome, service.url)
        page = seen.go("import")
        page.get_by_label("API key").fill("wrong")
        page.keyboard.press("Enter")
        seen.heading("This key is unknown or revoked")
        page.get_by_label("API key").fill(made["read+import+approve"])
        page.keyboard.press("Enter")
        seen.heading("Import")
        page.get_by_label("Models").fill("acme/base")
        page.get_by_label("Backend").select_option("vllm")
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_role("link", name="Review base").click()  # its events came with the key, too
        expect(page.get_by_role("button", name="Approve")).to_be_enabled()
        page.get_by_role("link", name="Key").click()
        page.get_by_role("button", name="Forget this key").click()
        page.get_by_label("API key").fill(made["read"])
        page.keyboard.press("Enter")
        seen.go("documents/base/text")
        for name in ("Approve", "Reject", "Validate"):
            expect(page.get_by_role("button", name=name)).to_be_disabled()
        expect(page.get_by_role("textbox", name="YAML")).to_have_attribute("aria-readonly", "true")
        keys = (made["read+import+approve"], made["read"])
        assert not [url for url in seen.asked for key in keys if key in url]
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        seen.check("401")
        seen.close()
        assert not any(key in service.log() for key in keys)
