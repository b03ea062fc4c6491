"""A review in Debian's chromium: the steps to a release, settings side by side, conflicts, releases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from importer.reasons import Reason
from importer.validation.remedy import Remedy
from tests.browsing import chrome, folder, seen, state, unfold
from tests.pages import PHONE, WIDE, Seen, picture
from tests.publishing import published, validated
from tests.serving import Service, fresh
from tests.serving import own_service as service
from tests.tiers import one_of_each

__all__ = ["chrome", "folder", "seen", "service"]
pytestmark = pytest.mark.slow
SPILLING = (
    "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth)"
    ".map((e) => e.getAttribute('aria-label'))"
)


def edit(service: Service, name: str, **values: object) -> None:
    answer = service.edit(name, {"parameters": values})
    assert answer.status_code == 200, answer.text


def steps(page: Page) -> list[str]:
    """The states of the steps, the current one with a star."""
    unfold(page)
    found = page.get_by_role("region", name="Steps to a release").get_by_role("listitem")
    found.first.wait_for()
    marked = (
        "(all) => all.filter((e) => e.closest('ol')).map((e) => e.className + (e.ariaCurrent ? '*' : ''))"
    )
    said: list[str] = found.evaluate_all(marked)
    return said


def way(page: Page) -> str:
    unfold(page)
    return page.get_by_role("region", name="Steps to a release").inner_text()


REVIEW = "Next: review the values below, then approve or reject them."
# A state and what leads to it; the main sentence, the main button, and a word that the page shows as well.
STATES: dict[str, tuple[Callable[[Service, str], object], str, str | None, str]] = {
    "fresh": (lambda service, name: None, REVIEW, "Approve", "draft"),
    "failed": (
        lambda service, name: validated(service, name, failed="the parser reads no call"),
        "Validation failed at tool-call: the parser reads no call.",
        None,  # no worker here can run it again
        "Correct the document, then validate it again.",
    ),
    "rejected": (
        lambda service, name: service.client.post(f"/v1/configs/{name}/reject", json={"note": "too hot"}),
        "Rejected by local: too hot. Edit it or import it again, or approve it after all.",
        "Approve", "rejected",
    ),
    "approved": (
        lambda service, name: service.approve(name).raise_for_status(),
        "Validation is blocked: No worker can run vllm with enough memory now", None, "approved",
    ),
}  # fmt: skip
HEAD = """() => [".title", ".tabs"].map((one) => document.querySelector(one).getBoundingClientRect())
    .flatMap(({top, bottom}) => [top, bottom])"""
HIGHEST = 160  # pixels of the head of a document


@pytest.mark.parametrize("state", one_of_each(STATES))
def test_each_state_has_its_sentence_and_its_button(seen: Seen, service: Service, state: str) -> None:
    reach, sentence, main, word = STATES[state]
    name = fresh(service, f"state-{state}")
    reach(service, name)
    for size in (PHONE, WIDE):
        seen.page.set_viewport_size(size)  # type: ignore[arg-type]
        page = seen.go(f"documents/{name}")
        expect(page.get_by_text(sentence)).to_have_count(1)  # it stands once
        assert page.locator(".onward button.main").all_text_contents() == ([] if main is None else [main])
        expect(page.locator("main").get_by_text(word).first).to_be_visible()
        title, _, tabs, below = page.evaluate(HEAD)
        assert tabs - title <= HIGHEST
        assert below < size["height"]
    seen.check()


def test_a_review_shows_all_sides_of_a_setting_and_what_is_new(
    seen: Seen, service: Service, folder: Path
) -> None:
    name = fresh(service, "sided")
    published(service, name)
    edit(service, name, temperature=0.31)
    page = seen.go(f"documents/{name}/review")
    card = page.get_by_role("article").first  # what a person edited stands first
    for text in ("parameters.temperature", "0.31", "by local", "edited", "new"):
        expect(card).to_contain_text(text)
    for side in ("vendor", "imported", "release"):
        expect(card.get_by_role("listitem").filter(has_text=f"{side}: 0.6")).to_have_count(1)
    page.get_by_text("settings as vendor, proof and engine have them").click()
    expect(page.get_by_role("row", name="parameters.top_p")).to_contain_text("vendor")
    expect(page.get_by_role("row", name="parameters.temperature")).to_have_count(0)
    changes = page.get_by_role("region", name="Changes", exact=True)
    expect(changes).to_contain_text("Since version ")
    expect(changes).to_contain_text("parameters.temperature: 0.6 → 0.31")
    losses = page.get_by_role("region", name="Differences of LocalAI's entry")
    expect(losses.get_by_text("added").first).to_be_visible()
    assert page.evaluate(SPILLING) == []
    picture(seen, folder, "review")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    seen.check()


FIXES = {
    "set": (
        Reason(Remedy.SET_PARSER, key="tool_parser", parser="hermes", named=None, why=None),
        "tool_parser:hermes",
    ),
    "template": (Reason(Remedy.SERVE_TEMPLATE, template="json"), "importer acme/base"),
    "engine": (Reason(Remedy.MORE_TIME), None),
}  # fmt: skip


@pytest.mark.parametrize("kind", one_of_each(FIXES))
def test_a_remedy_that_changes_the_document_is_applied_by_a_click(
    seen: Seen, service: Service, kind: str
) -> None:
    remedy, shown = FIXES[kind]
    name = fresh(service, f"fixed-{kind}")
    validated(service, name, failed="the call arrives as text", remedy=remedy)
    page = seen.go(f"documents/{name}")
    expect(page.get_by_text("the call arrives as text")).to_have_count(1)
    button = page.get_by_role("button", name="Apply this fix")
    if kind == "set":
        assert page.locator("button.main").all_text_contents() == ["Apply this fix"]
        button.click()
        expect(page.get_by_role("status")).to_contain_text("Validate it again")
        assert shown in service.config(name)["data"]["options"]
        expect(page.locator(".trouble")).to_have_count(0)
    else:
        expect(button).to_have_count(0)
        expect(page.locator(".trouble code")).to_have_count(0 if shown is None else 1)
        if shown is not None:
            expect(page.locator(".trouble code")).to_contain_text(
                f"{shown} --name {name} --backend vllm --template json"
            )
    seen.check()


def test_conflicts_are_settled_key_by_key(seen: Seen, service: Service, folder: Path) -> None:
    name = fresh(service, "clashed")
    edit(service, name, temperature=0.5, top_p=0.4)
    body = {
        "reference": "acme/base", "backend": "vllm", "name": name, "set": {"temperature": 0.9, "top_p": 0.8},
    }  # fmt: skip
    job = service.client.post("/v1/imports", json=body).json()
    assert service.ended(job["id"])["error"]["kind"] == "conflict"
    page = seen.go(f"jobs/{job['id']}")
    row = page.get_by_role("row", name="parameters.temperature")
    expect(row).to_contain_text("0.6")  # before
    go_on = page.get_by_role("button", name="Go on with these")
    expect(page.get_by_text("2 values have no choice yet.")).to_be_visible()
    expect(go_on).to_be_disabled()
    picture(seen, folder, "conflict")
    page.get_by_role("button", name="Take theirs").click()
    expect(page.get_by_text("Every value has a choice.")).to_be_visible()
    mine = page.get_by_role("radio", name="mine, parameters.top_p: 0.4")
    page.get_by_role("radio", name="theirs, parameters.top_p: 0.8").focus()
    page.keyboard.press("ArrowLeft")  # by keys
    expect(mine).to_be_checked()
    go_on.press("Enter")
    expect(page.get_by_role("link", name=f"Review {name}")).to_be_visible()
    data = service.config(name)["data"]["parameters"]
    assert (data["temperature"], data["top_p"]) == (0.9, 0.4)
    seen.check()


def test_releases_are_shown_rolled_back_to_and_withdrawn(seen: Seen, service: Service) -> None:
    name = fresh(service, "released")
    published(service, name)
    first = service.config(name)["release"]
    patch = {"parameters": {"temperature": 0.31}}
    service.edit(name, patch).raise_for_status()
    validated(service, name)
    page = seen.go(f"documents/{name}/decisions")
    state(page, "stale")
    unfold(page)
    expect(page.get_by_text("is published; the working copy is not")).to_be_visible()
    row = page.get_by_role("row", name="parameters.temperature")
    expect(row.get_by_text("0.31", exact=True)).to_be_visible()
    expect(row.get_by_text("edited", exact=True)).to_be_visible()
    expect(row.get_by_text("imported: ")).to_be_visible()
    expect(row.get_by_text("served: ")).to_be_visible()
    expect(row.get_by_text("by local")).to_be_visible()
    page.get_by_role("link", name="Review", exact=True).click()
    expect(page.get_by_role("region", name="Differences of LocalAI's entry")).to_contain_text(
        "max_tokens is the whole context"
    )
    service.approve(name, publish=False).raise_for_status()
    page.reload()
    state(page, "ready")
    unfold(page)
    page.get_by_label("Note").fill("a day in staging")
    page.get_by_role("button", name="Release", exact=True).click()
    state(page, "published")
    second = service.config(name)["release"]
    page.get_by_role("link", name="History").click()
    entry = page.get_by_role("region", name="Versions").locator("ol > li")
    expect(entry).to_have_count(3)  # import, edit and release: what was said and run is a mark on them
    expect(entry.first).to_contain_text("a day in staging")
    expect(entry.nth(1)).to_contain_text("0.31")
    expect(entry.nth(1)).to_contain_text("approve")
    page.get_by_label("Actions on version 1").click()
    page.get_by_role("button", name=f"Serve it: version {first}", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("LocalAI gets this version")
    dialog.get_by_role("button", name="Serve it", exact=True).click()
    expect(page.get_by_text(f"The gallery serves version {first}. Imports")).to_be_visible()
    assert f"The gallery serves version {first} again. This text is version {second}, rolled back." in way(
        page
    )
    assert page.locator("button.main").count() == 0  # nothing urges the release that was left
    page.get_by_label("Actions on version 1").click()
    page.get_by_role("button", name=f"Withdraw: version {first}", exact=True).click()
    dialog.get_by_role("button", name="Withdraw", exact=True).click()
    expect(page.get_by_text("The gallery serves no version of this document.")).to_be_visible()
    assert service.client.get(f"/gallery/{name}.yaml").status_code == 404
    seen.check()
