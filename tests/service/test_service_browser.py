"""The page in Debian's chromium, on a real service: from import to published with the keyboard alone.

``python -m tests.service.test_service_browser`` runs all tests of the page, and leaves their pictures in the
docs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from importer.storage.audit import AuditContext
from tests.browsing import (
    HARM,
    HOSTILE,
    HOSTILE_PRINTED,
    ROOT,
    chrome,
    editor,
    folder,
    imported,
    seen,
    service,
    state,
    unfold,
    write,
    written,
)  # fmt: skip
from tests.pages import LATER, Seen, picture
from tests.publishing import gallery_of
from tests.serving import Service

__all__ = ["chrome", "folder", "seen", "service"]
pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("service-mlx")]


def test_from_import_to_published_with_the_keyboard_alone(seen: Seen, folder: Path) -> None:
    page = seen.go()
    seen.press("To the content")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Shift+Tab")
    seen.press("Import")
    seen.heading("Import")
    assert page.title() == "Import – importer"
    assert page.evaluate("document.activeElement.tagName") == "H1"
    seen.write("Models, one on each line", "acme/demo")
    seen.press("Preview")
    expect(page.get_by_text("Preview for")).to_be_visible()
    seen.press("mlx")
    expect(page.get_by_role("heading", name="Preview")).to_be_focused(timeout=LATER)
    assert "tool_parser:json_tools" in str(page.locator(".lines").text_content())
    page.evaluate("scrollTo(0, 0)")
    picture(seen, folder, "import")
    page.get_by_label("Backend").select_option("")
    page.get_by_role("button", name="Import", exact=True).press("Enter")
    seen.heading("Import of acme/demo")
    seen.tab("mlx")  # it could be for several: nothing was guessed
    picture(seen, folder, "job")
    page.keyboard.press("Enter")
    expect(page.locator(".steps li.done")).to_have_count(4, timeout=LATER)
    seen.press("Review demo")
    seen.heading("demo")
    state(page, "draft")
    expect(page.locator("button.main")).to_have_text("Approve")  # a review is what the steps name as next
    seen.press("Validate")
    expect(page.locator("#running .steps li.running")).to_contain_text("run", timeout=LATER)
    expect(page.locator(".way .done")).to_have_count(2, timeout=LATER)  # the import and the validation
    seen.press("Probes")
    expect(page.locator("table.matrix").first).to_be_visible()
    assert seen.focused() == "Probes"
    seen.press("tool-call")
    page.keyboard.press("Enter")  # opened by the matrix, closed and opened by itself
    page.keyboard.press("Enter")
    raw = page.locator("#probe-tool-call").get_by_text("raw exchange")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(raw.locator("xpath=..").get_by_text("POST /v1/chat/completions").first).to_be_visible()
    assert "get_weather" in page.locator("#probe-tool-call pre").first.text_content()  # type: ignore[operator]
    page.reload()
    seen.heading("demo")
    seen.press(str(page.locator(".fold > summary").text_content()))
    seen.write("Note", "a day in staging")
    seen.press("Approve and release")
    state(page, "published")
    page.go_back()
    page.go_forward()
    state(page, "published")
    seen.press("Gallery")
    seen.heading("Gallery")
    published = page.get_by_role("region", name="Published", exact=True)
    expect(published.get_by_role("link", name="demo")).to_be_visible()
    expect(published).not_to_contain_text("of –")  # its memory is of no device
    picture(seen, folder, "gallery")
    seen.check("422", "409")  # the preview that could be of several


def test_decisions_show_their_evidence(seen: Seen, folder: Path, service: Service) -> None:
    imported(service)
    page = seen.go("documents/demo/decisions")
    row = page.get_by_role("row", name="tool_parser")
    expect(row.get_by_text("proved", exact=True)).to_be_visible()
    names = page.get_by_role("region", name="Decisions").locator("tbody th").all_text_contents()
    assert names[:3] == ["tool_parser", "reasoning_parser", "max_model_len"]
    proof = page.locator("table.proof").first
    expect(proof.get_by_role("rowheader").first).to_have_text(re.compile(r"^json_tools \(in the document\)"))
    shown = page.locator(".case").first
    seen.tab("one-call: read back right")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(shown).to_contain_text("json_tools, one-call")
    assert '{"name": "get_weather", "arguments": {"city": "Paris"}}' in str(
        shown.locator("pre").text_content()
    )
    refuted = proof.get_by_role("button", name="one-call: read wrong").first
    refuted.click()
    expect(shown).to_contain_text("read no call where one call stood")
    proof.scroll_into_view_if_needed()
    picture(seen, folder, "decisions")
    backend = page.get_by_role("row", name="backend").first
    expect(backend).to_contain_text("not vllm")
    findings = page.get_by_role("region", name="Findings")
    expect(findings).to_contain_text("all reached the prompt")
    assert "{" not in findings.inner_text()
    seen.check()


def test_an_edit_is_kept_compared_and_rejected(seen: Seen, folder: Path, service: Service) -> None:
    name = imported(service, "edited")
    page = seen.go(f"documents/{name}/text")
    first = written(page)
    write(page, first.replace("temperature: 0.1", "temperature: 0.2"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    expect(page.locator("main")).to_have_attribute("aria-busy", "false")
    write(page, first.replace("temperature: 0.1", "temperature: 0.3"))
    page.get_by_label("Why").fill("cooler")
    editor(page).press("Control+s")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()

    page.get_by_role("link", name="History").click()
    newest = page.locator(".timeline > li").first
    expect(newest).to_contain_text("cooler")
    expect(newest).to_contain_text("parameters.temperature: 0.2 → 0.3")
    page.get_by_label("From").select_option("1")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".lines .gone")).to_contain_text(["temperature: 0.1"])
    expect(page.locator(".lines .added")).to_contain_text(["temperature: 0.3"])
    assert "from=1&to=3" in page.url
    page.locator(".lines").scroll_into_view_if_needed()
    picture(seen, folder, "history")
    unfold(page)
    page.get_by_label("Note").fill("too warm")
    page.get_by_role("button", name="Reject").click()
    state(page, "rejected")
    page.reload()
    unfold(page)
    expect(page.get_by_text("Not published: rejected by local")).to_be_visible()
    expect(page.locator(".lines .added")).to_have_count(1)  # the address says all of it
    seen.check()


def test_whatever_a_repository_or_a_model_says_is_text(seen: Seen, service: Service) -> None:
    job = service.imported("evil/model", backend="mlx")
    assert job["state"] == "succeeded", job
    outcome = {
        "probe": HARM, "outcome": "fail", "reason": HOSTILE, "attribution": HARM,
        "remedy_message": HARM, "trials": 1,
        "agreed": 0, "interval": [0.0, 0.8], "seconds": 0.1, "lesson": HARM, "log": HOSTILE,
        "exchanges": [
            {"method": HARM, "path": HARM, "request": {HARM: HOSTILE}, "status": 200, "body": HOSTILE,
             "seconds": 0.1, "error": HARM},
        ],
    }  # fmt: skip
    report = {
        "engine": {"name": HARM, "version": HARM}, "started": HARM, "seconds": {HARM: 1.0},
        "outcomes": [outcome, {**outcome, "probe": "tool-call", "outcome": HARM}], "passed": False, "fit": {},
    }  # fmt: skip
    with gallery_of(service) as gallery, gallery.change(AuditContext(HARM, HARM, HOSTILE)) as change:
        stored = change.expect("model", None)
        receipt = stored.need_receipt()
        change.checkout.write_receipt("model", receipt.with_validation(report, stored.digest))
    patch = {"description": HOSTILE_PRINTED, "importer": {"family": HARM}}
    edited = service.edit("model", patch, why=HARM)
    assert edited.status_code == 200, edited.text
    service.client.post("/v1/configs/model/reject", json={"note": HARM})
    tabs = [
        f"documents/model/{tab}" for tab in ("review", "decisions", "text", "probes", "memory", "history")
    ]
    places = ("documents", "documents?q=model", *tabs, "gallery", "jobs", f"jobs/{job['id']}")
    for place in places:
        page = seen.go(place)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        seen.check()
        assert "\u202e" not in page.locator("main").inner_text()
    page = seen.go("documents/model/probes")
    assert HARM in str(page.locator("main").text_content())
    assert "\\u202etxt.exe" in str(page.locator("main").text_content())
    for odd in (
        f"documents/{HARM}",
        f"jobs/{HARM}",
        HARM,
        "documents/%E0%A4%A",
        f"documents?q={HARM}&cursor={HARM}",
    ):
        seen.go(odd)
        seen.check("404", "422")
    page = seen.go("import")
    page.get_by_label("Models").fill(HARM)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    seen.check("404", "422")


if __name__ == "__main__":
    where = {**os.environ, "PAGE_PICTURES": str(ROOT / "docs")}
    tests = [str(path) for path in sorted(Path(__file__).parent.glob("test_service_browser*.py"))]
    sys.exit(
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *tests], env=where, check=False, cwd=ROOT
        ).returncode
    )
