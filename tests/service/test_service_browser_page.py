"""What the page stands on, in Debian's chromium: its places, its keys, its forms and the focus."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browsing import chrome, folder, seen
from tests.pages import PHONE, Seen
from tests.serving import Service, fresh
from tests.serving import own_service as service
from tests.tiers import one_of_each

__all__ = ["chrome", "folder", "seen", "service"]
pytestmark = pytest.mark.slow
TYPING = 250  # milliseconds without a key before a search begins


def test_each_view_is_shown_by_its_place(seen: Seen, service: Service) -> None:
    name = fresh(service, "shown")
    job = service.client.get("/v1/jobs").json()["items"][0]["id"]
    places = {
        "": "Documents", "documents": "Documents", "import": "Import", "jobs": "Jobs",
        "gallery": "Gallery",
        "deleted": "Deleted documents", "key": "API key", f"jobs/{job}": "Import of",
        **{f"documents/{name}{tab}": name for tab in ("", "/decisions", "/text", "/probes", "/history")},
        "nowhere": "Something went wrong", "gallery/odd": "Something went wrong",
    }  # fmt: skip
    for place, title in places.items():
        page = seen.go(place)
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)
        assert page.title().startswith(title)
    seen.check()


# A field of each view that may have text in it when one leaves.
WRITTEN = {
    "documents": "Search", "import": "Models, one on each line",
}  # fmt: skip
# In one turn of the page, for a search waits: what is written, then where one goes.
WRITE = """(field) => {
    field.focus();
    field.value = "rea";
    field.dispatchEvent(new Event("input", {bubbles: true}));
    %s
}"""
LEAVING = {
    "link": "document.querySelector(`header a[href='#/gallery']`).focus(); document.activeElement.click();",
    "address": "location.hash = '#/gallery';",
    "back": "history.back();",
}


@pytest.mark.parametrize("way", one_of_each(LEAVING))
def test_a_view_that_is_left_with_a_search_pending_stays_left(seen: Seen, service: Service, way: str) -> None:
    fresh(service, f"left-{way}")
    for place, name in WRITTEN.items():
        page = seen.go("gallery")
        page.get_by_role("navigation").get_by_role("link", name=place.title(), exact=True).click()
        seen.heading(place.title())
        page.get_by_label(name, exact=True).evaluate(WRITE % LEAVING[way])
        page.wait_for_timeout(2 * TYPING)
        assert page.url.endswith("#/gallery"), (place, page.url)
        seen.heading("Gallery")
        seen.check()


def test_a_model_is_imported_with_a_plan_for_a_device(seen: Seen, service: Service) -> None:
    page = seen.go("import?device=8xh100")
    expect(page.get_by_label("Device", exact=True)).to_have_value("h100")  # another name of h100-80g
    expect(page.get_by_label("Number of devices")).to_have_value("8")
    page = seen.go("import?references=acme/base&backend=vllm&name=planned")
    page.get_by_text("Device and plan").click()
    groups = page.locator("#device optgroup")
    assert groups.evaluate_all("all => all.map((one) => one.label)")[:3] == ["Processors", "NVIDIA", "AMD"]
    page.get_by_label("Device", exact=True).select_option(label="H200 (140 GiB)")
    page.get_by_label("Number of devices").fill("2")
    page.get_by_label("Optimise for").select_option(label="many answers at a time")
    page.get_by_label("Concurrent requests").fill("64")
    page.get_by_label("Tokens per request").fill("256")
    assert seen.grave() == []
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("link", name="Review planned")).to_be_visible()
    asked = service.client.get("/v1/configs/planned/receipt").json()["request"]
    assert [asked[key] for key in ("device", "goal", "concurrency", "context")] == [
        "2xh200", "throughput", 64, 256,
    ]  # fmt: skip
    found = service.config("planned")["data"]
    assert (found["max_model_len"], found["engine_args"]["data_parallel_size"]) == (256, 2)
    seen.check()


def test_a_question_is_not_a_failure(seen: Seen, service: Service) -> None:
    """One import and a list that wait for the choice of a backend: everywhere the same words."""
    body = {"references": ["acme/base", "other/base"]}
    asks, many = (
        service.client.post("/v1/imports", json=one).json()["id"]
        for one in ({"reference": "acme/chat"}, body)
    )
    assert [service.ended(one)["state"] for one in (asks, many)] == ["waiting", "waiting"]
    page = seen.go("jobs?state=waiting")
    expect(
        page.get_by_role("region", name="Jobs").get_by_role("row").filter(has_text="waiting for you")
    ).to_have_count(2)
    expect(page.locator(".working")).to_have_text("? 3 waiting for you")
    page = seen.go(f"jobs/{many}")
    seen.heading("Import of 2 models")
    expect(page.get_by_role("button", name="Retry failed")).to_have_count(0)
    page.get_by_role("group", name="Choose the backend for the 2 imports").get_by_role(
        "button", name="vllm"
    ).click()
    expect(page.locator(".job")).to_contain_text("2 succeeded")
    page = seen.go(f"jobs/{asks}")
    expect(page.locator(".job")).to_contain_text("acme/chat runs on vllm and mlx. Choose one.")
    expect(page.locator(".steps .waiting")).to_contain_text("decide")
    expect(page.locator(".trouble:not(.asks), .failed")).to_have_count(0)
    assert seen.grave() == []
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".job")).to_contain_text("cancelled")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("group", name="Choose the backend").get_by_role("button", name="vllm").press("Enter")
    expect(page.get_by_role("link", name="Review chat")).to_be_visible()
    expect(page.locator(".working")).to_have_count(0)
    seen.check()


@pytest.mark.nightly
def test_views_documents_and_lists_are_reached_by_name(chrome: Browser, service: Service) -> None:
    fresh(service, "by-name")
    for size in ({"width": 1280, "height": 900}, PHONE):
        seen = Seen(chrome, service.url, viewport=size)
        page = seen.go("gallery")
        page.keyboard.press("Control+k")
        field = page.get_by_role("combobox", name="Go to")
        expect(field).to_be_focused()
        expect(page.get_by_role("option").first).to_have_text("Documentsview")
        page.keyboard.type("by-n")
        expect(page.get_by_role("option", selected=True)).to_have_text("by-namedocument")
        assert seen.grave() == []
        page.keyboard.press("Enter")
        seen.heading("by-name")
        page.get_by_role("button", name="Go to").click()
        page.keyboard.type("waiting")
        page.get_by_role("option", name="Jobs waiting for you").click()
        seen.heading("Jobs")
        assert page.url.endswith("#/jobs?state=waiting")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Ctrl K")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        seen.check()
        seen.close()
