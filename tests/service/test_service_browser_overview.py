"""The overview and its actions in Debian's chromium, with 10,000 documents."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from sqlalchemy import insert

from benchmarks.overview import ENTRIES, document
from importer.storage import tables
from importer.storage.document_rows import changed, rendered
from tests.browsing import chrome, editor, folder, seen
from tests.pages import PHONE, WIDE, Seen, picture
from tests.publishing import gallery_of, published
from tests.serving import Service, fresh, running

__all__ = ["chrome", "folder", "seen"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser-overview")]
REAL = ("real-one", "real-two", "real-three")
# Milliseconds from the beginning of the navigation until the first row is painted, and nodes of the page.
FIRST_ROW = """() => new Promise((done) => {
    const look = () => document.querySelector('.item')
        ? requestAnimationFrame(() => done([performance.now(), document.querySelectorAll('*').length]))
        : requestAnimationFrame(look);
    look();
})"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with 10,000 documents, three of them imported."""
    with running(tmp_path_factory.mktemp("overview")) as one:
        for name in REAL:
            fresh(one, name)
        published(one, REAL[2])
        seeded(one)
        yield one


def seeded(service: Service) -> None:
    """Rows of an overview, as many as a large gallery has."""
    chosen = random.Random(1)
    rows = [document(number, chosen) for number in range(ENTRIES - len(REAL))]
    columns = {name: None for row in rows for name in row}
    with gallery_of(service) as gallery, gallery.database.writing() as connection:
        whole = dict.fromkeys(tables.configs.columns.keys())
        listed = [one | {"row": rendered({**whole, **one})} for one in ({**columns, **row} for row in rows)]
        connection.execute(insert(tables.configs), listed)
        changed(connection)


def test_ten_thousand_are_searched_filtered_and_sorted_with_the_address(seen: Seen, service: Service) -> None:
    everything = f"{service.client.get('/v1/configs').json()['total']:,} documents"
    page = seen.go()
    count, items = page.locator("#count"), page.locator(".item")
    milliseconds, nodes = page.evaluate(FIRST_ROW)
    print(f"first row {milliseconds:.0f} ms, paint {page.evaluate(PAINTED):.0f} ms, {nodes} nodes")
    expect(count).to_have_text(everything)
    expect(items).to_have_count(50)
    assert nodes < 4000
    expect(items.first.locator(".needs").first).to_have_text("will not start")  # needs attention first
    state = page.locator("[name=state][value=draft]")
    expect(state).to_be_visible()  # counts come behind the rows
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    page.keyboard.type("real", delay=20)  # nothing is pressed: it searches as one types
    expect(count).to_have_text("3 documents")
    assert page.url.endswith("#/documents?q=real")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    for _ in range(100):  # a list that comes late takes the focus away
        state.focus()
        page.wait_for_timeout(100)
        if state.evaluate("box => box === document.activeElement"):
            break
    expect(state).to_be_focused()
    page.keyboard.press("Space")
    expect(count).to_have_text("2 documents")
    assert page.evaluate("document.activeElement.value") == "draft"
    page.get_by_label("Sort by").select_option("name")
    expect(items.first.get_by_role("link").first).to_have_text("real-one")
    assert page.url.endswith("#/documents?q=real&state=draft&sort=name")
    page.reload()
    expect(count).to_have_text("2 documents")
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("real")
    expect(state).to_be_checked()
    page.get_by_role("link", name="Remove the filter State: draft").press("Enter")
    expect(count).to_have_text("3 documents")
    page.go_back()
    expect(count).to_have_text("2 documents")
    page.get_by_role("searchbox", name="Search").fill("nothing like it")
    expect(page.get_by_text("No document matches")).to_be_visible()
    page.get_by_role("link", name="Clear filters").last.click()
    expect(count).to_have_text(everything)
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("")
    page.get_by_label("My device").select_option("h100-80g")
    expect(page.locator(".fits")).to_contain_text("fit,")
    page.get_by_label("Only what fits").check()
    expect(count).not_to_have_text(everything)
    assert "device=h100-80g" in page.url
    page.get_by_role("link", name="Next page").press("Enter")
    expect(count).to_contain_text("next page")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    seen.check()


def test_documents_are_chosen_by_keys_and_one_action_is_on_all_of_them(seen: Seen, service: Service) -> None:
    for name in ("go-a", "go-b", "go-c", "go-d"):
        fresh(service, name)
    page = seen.go("documents?q=go-&sort=name")
    expect(page.locator(".item")).to_have_count(4)
    seen.tab("Select go-a")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert seen.focused() == "Select go-c"
    page.keyboard.press("Shift+Space")
    bulk = page.get_by_role("region", name="Actions on the selected documents")
    expect(bulk.get_by_role("status")).to_have_text("3 selected")
    bulk.get_by_role("button", name="Recheck").press("Enter")
    expect(page.get_by_role("heading", name="Recheck: 3 done.")).to_be_focused()
    page.get_by_role("button", name="Close the results").click()
    page.get_by_label("Select all on this page").check()
    bulk.get_by_role("button", name="Delete").press("Enter")
    dialog = page.get_by_role("dialog", name="Delete 4 documents?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(bulk.get_by_role("button", name="Delete")).to_be_focused()
    assert service.client.get("/v1/configs/go-a").status_code == 200
    page.keyboard.press("Enter")
    expect(dialog).to_be_visible()
    for _ in range(6):
        page.keyboard.press("Tab")  # the focus stays in the question
        assert page.evaluate(
            "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    service.edit("go-d", {"description": "Another."})  # one has changed since it was seen
    dialog.get_by_role("button", name="Delete them").click()
    expect(page.get_by_role("heading", name="Delete: 3 done, 1 refused.")).to_be_focused()
    expect(page.locator("#count")).to_have_text("1 document")
    page.get_by_role("link", name="Deleted documents").click()
    page.get_by_role("button", name="Undelete: go-a").press("Enter")
    expect(page.get_by_text("go-a is restored.")).to_be_visible()
    assert service.client.get("/v1/configs/go-a").status_code == 200
    seen.check("412")


def test_one_document_is_copied_saved_restored_and_deleted(seen: Seen, service: Service) -> None:
    name = fresh(service, "single")
    seen.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = seen.go(f"documents/{name}")
    page.locator(".menu > summary").press("Enter")
    served = f'[{{"name":"importer","url":"{seen.url}/gallery/index.yaml"}}]'
    for button, expected in {
        "Copy: the digest": service.config(name)["digest"],
        "Copy: the GALLERIES line": f"export GALLERIES='{served}'",
    }.items():
        page.get_by_role("button", name=button).press("Enter")
        expect(page.locator("#said")).to_have_text("Copied.")
        assert page.evaluate("navigator.clipboard.readText()") == expected
    page.get_by_role("button", name="Copy: the command").click()
    words = page.evaluate("navigator.clipboard.readText()")
    revision = service.config(name)["revision"]
    assert words == f"importer acme/base --revision {revision} --name {name} --backend vllm"
    with page.expect_download() as saved:
        page.get_by_role("button", name="YAML").click()
    assert saved.value.suggested_filename == f"{name}.yaml"
    assert Path(saved.value.path()).read_text() == service.config(name)["text"]
    assert page.get_by_role("link", name="this commit").get_attribute("href") == (
        f"{service.hub.url}/acme/base/tree/{revision}"
    )
    change = {"parameters": {"temperature": 0.33}}
    service.edit(name, change)
    page = seen.go(f"documents/{name}/history")
    page.get_by_label("Actions on version 1").press("Enter")
    page.get_by_role("button", name="Restore version 1").press("Enter")
    expect(page.locator("#said")).to_contain_text("as it was in version 1")
    assert service.config(name)["data"]["parameters"]["temperature"] == 0.6
    page.get_by_role("link", name="Documents", exact=True).click()
    expect(page.locator("#said")).to_be_empty()  # what was said of it went with it
    page = seen.go(f"documents/{name}")
    page.locator(".menu > summary").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete it").press("Enter")
    seen.heading("Documents")
    expect(page.locator("#said")).to_have_text("single is deleted.")
    assert service.client.get(f"/v1/configs/{name}").status_code == 404
    seen.check()


@pytest.mark.nightly
def test_a_service_that_is_away_is_told(chrome: Browser, service: Service) -> None:
    away = Seen(chrome, service.url)
    page = away.go("documents?q=real")
    away.context.set_offline(True)
    page.get_by_label("Sort by").select_option("name")
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached.")
    away.context.set_offline(False)
    page.go_back()
    expect(page.locator("#count")).to_have_text("3 documents")
    away.close()


CUT = 700  # pixels of a picture that has much in it
VIEWS = (
    "documents", "documents?q=real", "deleted", "import", "jobs", "gallery",
    "key", "nowhere",
)  # fmt: skip
TABS = ("review", "decisions", "text", "probes", "memory", "history")
PICTURED = {
    ("documents", False, False): "overview", ("documents", False, True): "overview-dark",
    ("documents", True, False): "overview-phone",
}  # place, on a phone, in the dark  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
def test_axe_finds_nothing_grave_in_any_view(
    chrome: Browser, service: Service, folder: Path, phone: bool
) -> None:
    """Each view is judged in the light and in the dark."""
    job = service.client.get("/v1/jobs").json()["items"][0]["id"]
    size = PHONE if phone else WIDE
    seen = Seen(chrome, service.url, viewport=size)
    found = {}
    for place in (*VIEWS, *(f"documents/{REAL[0]}/{tab}" for tab in TABS), f"jobs/{job}"):
        page = seen.go(place)
        page.locator("main[aria-busy=false]").wait_for()
        if place.startswith("documents") and "/" not in place:
            expect(page.locator("[name=state]").first).to_be_attached()
        if place.endswith("/text"):
            expect(editor(page)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], place
        for dark in (True, False):
            page.emulate_media(color_scheme="dark" if dark else "light")
            if name := PICTURED.get((place, phone, dark)):
                picture(seen, folder, name, height=None if phone else CUT)
            elif grave := seen.grave():
                found[place, dark] = grave
    assert found == {}, found
    page = seen.go("documents?q=real")
    page.get_by_label("Select all on this page").check()
    assert seen.grave() == []
    page.get_by_role("link", name="Clear filters").click()
    expect(page.locator(".item")).to_have_count(50)
    page.emulate_media(media="print")
    expect(page.get_by_role("search")).to_have_count(0)
    expect(page.locator("header nav a:visible")).to_have_count(0)
    seen.check()
    seen.close()
