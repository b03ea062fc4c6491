"""A review in Debian's chromium: the steps to a release, settings side by side, conflicts, releases."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from importer.config_file.receipt import ReviewEntry
from importer.storage.audit import AuditContext
from tests.browsing import HARM, HOSTILE, chrome, folder, seen, state
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.pages import PHONE, Seen, picture
from tests.publishing import gallery_of, published, validated
from tests.rechecking import WARM
from tests.serving import Service, fresh, service

__all__ = ["chrome", "folder", "seen", "service"]
pytestmark = pytest.mark.slow
SPILLING = (
    "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth)"
    ".map((e) => e.getAttribute('aria-label'))"
)


def edit(service: Service, name: str, **values: object) -> None:
    answer = service.client.patch(
        f"/v1/configs/{name}", json={"parameters": values}, headers={"If-Match": service.etag(name)}
    )
    assert answer.status_code == 200, answer.text


def steps(page: Page) -> list[str]:
    """The states of the steps, the current one with a star."""
    found = page.get_by_role("region", name="Steps to a release").get_by_role("listitem")
    found.first.wait_for()
    marked = (
        "(all) => all.filter((e) => e.closest('ol')).map((e) => e.className + (e.ariaCurrent ? '*' : ''))"
    )
    said: list[str] = found.evaluate_all(marked)
    return said


def way(page: Page) -> str:
    return page.get_by_role("region", name="Steps to a release").inner_text()


def test_the_steps_say_where_a_document_stands_and_what_comes_next(seen: Seen, service: Service) -> None:
    name = fresh(service, "stepped")
    page = seen.go(f"documents/{name}")
    state(page, "draft")
    assert steps(page)[:2] == ["done", "now*"]
    assert "Next: review the values below, then approve or reject them." in way(page)
    page.get_by_label("Note").fill("not yet")
    page.get_by_role("button", name="Reject").click()
    state(page, "rejected")
    assert steps(page)[1] == "now*"
    assert "rejected" in way(page)
    page.get_by_role("button", name="Approve").click()
    state(page, "approved")
    assert steps(page)[1:3] in (["done", "now*"], ["done", "blocked*"])
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    expect(page.get_by_text("Approve: Already done.")).to_be_visible()
    validated(service, name)
    page.reload()
    state(page, "ready")
    assert steps(page) == ["done", "done", "done", "now*"]
    assert "Next: release it." in way(page)
    release = page.get_by_role("button", name="Release", exact=True)
    expect(release).to_have_class("main")  # the one action that leads on
    assert page.locator("button.main").count() == 1
    release.click()
    state(page, "published")
    assert steps(page) == ["done"] * 4
    assert "Published. The gallery serves this version." in way(page)
    edit(service, name, temperature=0.2)
    page.reload()
    state(page, "stale")
    assert steps(page)[1] == "now*"
    assert "edited since" in way(page)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".way")).to_contain_text("outdated")  # its validation is of the data before
    seen.check()


def test_a_failed_validation_comes_before_the_order_of_the_steps(seen: Seen, service: Service) -> None:
    name = fresh(service, "broken")
    validated(service, name, failed="the parser reads no call")
    page = seen.go(f"documents/{name}/review")
    assert "Validation failed at tool-call: the parser reads no call." in way(page)
    approve = page.get_by_role("button", name="Approve", exact=True)
    expect(approve).to_be_enabled()
    expect(approve).not_to_have_class("main")
    seen.check()


def test_an_approval_that_leads_to_no_release_is_not_the_first_action(seen: Seen, service: Service) -> None:
    name = fresh(service, "endless")
    edit(service, name, model="other/base")  # the commit of its import is another model's
    page = seen.go(f"documents/{name}")
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_enabled()
    expect(approve).not_to_have_class("main")
    expect(page.get_by_text("An approval leads to no release")).to_be_visible()
    approve.click()
    state(page, "approved")
    validated(service, name)
    page.reload()
    assert steps(page) == ["done", "done", "done", "blocked*"]
    assert "Release is blocked:\n" in way(page)
    assert "It pins no commit of the model." in way(page)
    seen.check()


def test_a_review_shows_all_sides_of_a_setting_and_what_is_new(
    seen: Seen, service: Service, folder: Path
) -> None:
    name = fresh(service, "sided")
    published(service, name)
    edit(service, name, temperature=0.31)
    page = seen.go(f"documents/{name}/review")
    row = page.get_by_role("row", name="parameters.temperature")
    cells = row.get_by_role("cell")
    expect(cells.nth(0)).to_contain_text("0.31")
    expect(cells.nth(0)).to_contain_text("by local")
    expect(cells.nth(1)).to_contain_text("0.6")  # the vendor's
    expect(cells.nth(4)).to_contain_text("0.6")  # the import's
    expect(cells.nth(5)).to_contain_text("0.6")  # the release's
    expect(row.get_by_text("edited", exact=True)).to_be_visible()
    expect(row.get_by_text("new", exact=True)).to_be_visible()
    first = page.get_by_role("region", name="Settings, side by side").get_by_role("row").nth(1)
    expect(first).to_contain_text("parameters.temperature")  # what is new stands first
    expect(page.locator(".settings").get_by_text("new", exact=True)).to_have_count(1)
    changes = page.get_by_role("region", name="Changes", exact=True)
    expect(changes).to_contain_text("Since release 1")
    expect(changes).to_contain_text("parameters.temperature: 0.6 → 0.31")
    losses = page.get_by_role("region", name="Differences of LocalAI's entry")
    expect(losses.get_by_text("added").first).to_be_visible()
    assert page.evaluate(SPILLING) == []
    picture(seen, folder, "review")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(cells.nth(1).get_by_text("vendor:")).to_be_visible()  # where the heads are not seen
    seen.check()


def test_findings_come_first_and_are_settled_there(seen: Seen, service: Service) -> None:
    repo = service.hub.repos["acme/found"] = Repo(BASE)
    assert service.imported("acme/found", name="found")["state"] == "succeeded"
    repo.commit(WARM)
    job = service.client.post("/v1/recheck", json={"names": ["found"]}).json()
    assert service.ended(job["id"])["result"]["outcomes"] == {"found": 1}
    page = seen.go("documents/found")
    headings = page.get_by_role("region", name="Review").last.get_by_role("heading")
    expect(headings.first).to_have_text("found: commit")
    page.get_by_role("button", name="Accept: found").click()
    expect(page.get_by_role("button", name="Accept: found")).to_have_count(0)
    expect(page.get_by_role("row", name="parameters.temperature").get_by_role("cell").first).to_contain_text(
        "0.7"
    )
    seen.check()


def test_an_approval_counts_for_what_was_seen_alone(seen: Seen, service: Service) -> None:
    name = fresh(service, "raced")
    page = seen.go(f"documents/{name}")
    edit(service, name, top_p=0.5)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_contain_text("version")
    assert service.client.get(f"/v1/configs/{name}").json()["state"] == "draft"
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("alert")).to_contain_text("says why")
    page.reload()
    page.get_by_role("button", name="Approve").click()
    state(page, "approved")
    seen.check("412")


def test_a_case_shows_its_prompt_and_its_calls_and_is_chosen_by_keys(seen: Seen, service: Service) -> None:
    job = service.imported("acme/chat", name="cased")
    assert job["state"] == "succeeded", job
    page = seen.go("documents/cased/review")
    prompt = page.locator("pre[aria-label^=Prompt]")
    expect(prompt).to_contain_text("<|im_start|>user")
    expect(prompt).to_contain_text("<|im_start|>assistant")
    expect(page.get_by_text("This case has no call.")).to_be_visible()
    case = page.get_by_label("Case", exact=True)
    case.focus()
    page.keyboard.press("ArrowDown")  # the next one: one call
    calls = page.locator("pre[aria-label^=Expected]")
    expect(calls).to_contain_text("get_weather")
    expect(page.get_by_text("no tool parser is set", exact=True)).to_be_visible()
    expect(case).to_be_focused()
    assert "case=one-call" in page.url
    page.reload()
    expect(calls).to_contain_text("get_weather")  # the address says it
    seen.check()
    seen.go("documents/cased/review?case=%3Cscript%3E")
    expect(page.get_by_text("This case has no call.")).to_be_visible()
    seen.check()


def test_conflicts_are_settled_key_by_key(seen: Seen, service: Service, folder: Path) -> None:
    name = fresh(service, "clashed")
    edit(service, name, temperature=0.5, top_p=0.4)
    body = {
        "reference": "acme/base",
        "backend": "vllm",
        "name": name,
        "set": {"temperature": 0.9, "top_p": 0.8},
    }
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
    data = service.client.get(f"/v1/configs/{name}").json()["data"]["parameters"]
    assert (data["temperature"], data["top_p"]) == (0.9, 0.4)
    seen.check()


def test_strangers_text_is_text_in_a_review(seen: Seen, service: Service) -> None:
    name = fresh(service, "harmful")
    change = {"description": HOSTILE + "long " * 2000, "importer": {"family": HARM}}
    answer = service.client.patch(
        f"/v1/configs/{name}", json=change, headers={"If-Match": service.etag(name)}, params={"why": HARM}
    )
    assert answer.status_code == 200, answer.text
    with gallery_of(service) as gallery, gallery.change(AuditContext(HARM, HARM, HOSTILE)) as one:
        word = ReviewEntry("rejected", HARM, "2026-01-01T00:00:00+00:00", HOSTILE)
        stored = one.checkout.load(name)
        one.checkout.amend(name, lambda receipt: receipt.with_review(word, stored.data))
        one.save(name)
    for size in (PHONE, {"width": 1200, "height": 900}):
        page = seen.go(f"documents/{name}")
        page.set_viewport_size(size)  # type: ignore[arg-type]
        expect(page.get_by_role("rowheader", name="description")).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        shown = page.locator("main").inner_text()
        assert "\u202e" not in shown
        assert "\\u202etxt.exe" in shown
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        seen.check()


def test_releases_are_shown_rolled_back_to_and_withdrawn(seen: Seen, service: Service) -> None:
    name = fresh(service, "released")
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
    expect(page.get_by_role("region", name="Differences of LocalAI's entry")).to_contain_text(
        "max_tokens is the whole context"
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
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("LocalAI will get this release")
    dialog.get_by_role("button", name="Roll back to it", exact=True).click()
    expect(page.get_by_text("The gallery serves release 1.")).to_be_visible()
    assert "The gallery serves release 1 again. This text is release 2, rolled back." in way(page)
    assert page.locator("button.main").count() == 0  # nothing urges the release that was left
    page.get_by_role("button", name="Withdraw: release 1").click()
    dialog.get_by_role("button", name="Withdraw", exact=True).click()
    expect(page.get_by_text("The gallery serves no release of this document.")).to_be_visible()
    assert service.client.get(f"/gallery/{name}.yaml").status_code == 404
    seen.check()
