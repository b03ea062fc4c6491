"""What the page stands on, in Debian's chromium: its places, the focus, an editor under the policy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browsing import chrome
from tests.pages import Seen
from tests.serving import Service, fresh, service

__all__ = ["chrome", "service"]
pytestmark = pytest.mark.slow
BUILT = Path(str(files("importer.service"))) / "web" / "built"


@pytest.fixture
def seen(chrome: Browser, service: Service) -> Iterator[Seen]:
    one = Seen(chrome, service.url)
    yield one
    one.close()


def test_each_view_is_shown_by_its_place(seen: Seen, service: Service) -> None:
    name = fresh(service, "shown")
    job = service.client.get("/v1/jobs").json()["items"][0]["id"]
    places = {
        "": "Documents", "documents": "Documents", "import": "Import", "jobs": "Jobs", "upkeep": "Upkeep",
        "gallery": "Gallery", "operations": "Operations",
        "deleted": "Deleted documents", "key": "API key", f"jobs/{job}": "Import of",
        **{f"documents/{name}{tab}": name for tab in ("", "/text", "/probes", "/history", "/releases")},
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


def test_codemirror_stands_under_the_policy_of_the_page(seen: Seen) -> None:
    """In a shadow root its styles are constructed sheets; in the document they would be stopped."""
    page = seen.go("gallery")
    (built,) = BUILT.glob("codemirror-*.js")
    assert not [url for url in seen.asked if built.name in url]  # only who edits loads it
    mounted = """async ([path, text]) => {
        const { mount } = await import(path);
        const node = document.createElement("div");
        document.getElementById("main").append(node);
        window.view = mount(node, text, "A text");
        return document.styleSheets.length;
    }"""
    before = page.evaluate("document.styleSheets.length")
    assert page.evaluate(mounted, [f"{seen.url}/page/{built.name}", "name: demo\nparameters: {}\n"]) == before
    text = page.get_by_label("A text")
    expect(text).to_contain_text("name: demo")
    assert (
        text.evaluate("(e) => getComputedStyle(e.closest('.cm-editor')).display") == "flex"
    )  # it has styles
    colour = "(e) => getComputedStyle(e).color"
    key = text.locator(".cm-line").first.locator("span").first
    assert key.evaluate(colour) != text.evaluate(colour)  # and colours for the syntax
    text.click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("x: 1")
    page.keyboard.press("Enter")
    assert page.evaluate("window.view.state.doc.line(1).text") == "x: 1"
    seen.check()
