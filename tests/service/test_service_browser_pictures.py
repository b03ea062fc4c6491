"""Figures and progress in Debian's chromium: to scale, by keyboard, on a phone, in the dark, on paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from importer.storage.audit import AuditContext
from tests.browsing import chrome, folder, seen
from tests.hubserver import Fault
from tests.pages import Seen, picture
from tests.publishing import gallery_of
from tests.reporting import EXCHANGE
from tests.serving import Service, fresh
from tests.serving import own_service as service

__all__ = ["chrome", "folder", "seen", "service"]
pytestmark = pytest.mark.slow
PROBES = 54
FAILED = ("tool-call", "history")
MANY = """(n) => { const rows = document.querySelectorAll('table.matrix tbody tr');
    const boxes = [...document.querySelectorAll('table.matrix')].map((e) => e.getBoundingClientRect());
    const [top, bottom] = [Math.min(...boxes.map((b) => b.top)), Math.max(...boxes.map((b) => b.bottom))];
    return rows.length === n ? bottom - top : Infinity; }"""


def slow() -> Fault:
    """Let the next question to the Hub wait for a while."""
    return Fault("acme/chat", 429, {"Retry-After": "3"})


def run(engine: str, version: str, rate: float) -> dict[str, Any]:
    """A validation of all probes, two of which failed."""
    names = [*FAILED, *(f"probe-{n}" for n in range(PROBES - len(FAILED)))]
    outcomes = [
        {"probe": name, "outcome": "fail" if name in FAILED else "pass", "reason": f"{name} was seen",
         "remedy_message": f"mend {name}" if name in FAILED else "", "seconds": 0.2,
         "attribution": "configuration" if name in FAILED else None,
         "exchanges": [EXCHANGE | {"body": "raw"}]}
        for name in names
    ]  # fmt: skip
    return {
        "engine": {"name": engine, "version": version}, "started": "2026-11-01T00:00:00+00:00",
        "passed": False, "outcomes": outcomes, "seconds": {"start": 30.0, "probes": 12.5, "stop": 0.5},
        "speed": {"first_token_seconds": 0.3, "tokens_per_second": rate},
        "fit": {"weights": {"predicted": 190_208, "reported": 180_000, "error": 0.06}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def measured(service: Service) -> str:
    """A document with two runs of different engines."""
    name = fresh(service, "measured", device="h100-80g")
    with gallery_of(service) as gallery, gallery.change(AuditContext("worker", "validate")) as change:
        digest = change.checkout.load(name).digest
        for one in (run("sglang", "0.5.6", 35.0), run("vllm", "0.33.0", 41.0)):
            change.checkout.amend(name, lambda receipt, one=one: receipt.with_validation(one, digest))  # type: ignore[misc]
    return name


def test_memory_is_a_bar_against_the_device(
    seen: Seen, service: Service, measured: str, folder: Path
) -> None:
    page = seen.go(f"documents/{measured}/memory")
    told = service.client.get(f"/v1/configs/{measured}/memory").json()
    shown = page.get_by_role("img")
    bars = [one for one in told["figures"] if one["bars"]]
    assert [one.get_attribute("aria-label") for one in shown.all()] == [one["label"] for one in bars]
    report = service.client.get(f"/v1/configs/{measured}/report/html").text
    for at, one in enumerate(bars):  # the page and the report have the same bars
        assert shown.nth(at).locator("rect").count() == sum(len(bar["pieces"]) for bar in one["bars"])
        for bar in one["bars"]:
            assert f'<span class="value">{bar["text"]}</span>' in report
            for piece in bar["pieces"]:
                assert re.search(rf'class="{piece["kind"]}" x="{piece["x"]:g}(\.0)?%"', report)
    seen.press("Figures: Memory of one device")
    for one in told["figures"]:
        if not one["bars"]:
            expect(page.get_by_role("region", name=f"Figures: {one['title']}")).to_be_visible()
    figures = page.get_by_role("region", name="Figures: Memory of one device")
    expect(figures.get_by_role("row", name="weights")).to_be_visible()
    page.keyboard.press("Enter")
    page.evaluate("document.querySelector('.tab').scrollIntoView()")
    picture(seen, folder, "memory")
    seen.check()


def test_a_matrix_fits_one_screen_and_leads_to_each_failure(seen: Seen, measured: str, folder: Path) -> None:
    page = seen.go(f"documents/{measured}/probes")
    expect(page.locator("table.matrix").first).to_be_visible()
    assert page.evaluate(MANY, PROBES) < 900  # pixels, the screen's height
    first = page.locator("table.matrix tbody tr").first
    expect(first.locator(".mark.fail")).to_have_count(2)  # an engine beside the other
    expect(first).to_contain_text("fail")
    trouble = page.locator("article.trouble").filter(has_text="tool-call").first
    expect(trouble).to_contain_text("mend tool-call")
    trouble.get_by_text("1 raw exchange").click()
    expect(trouble.get_by_text("raw", exact=True)).to_be_visible()
    seen.press("probe-3")
    expect(page.locator("#probe-probe-3")).to_have_attribute("open", "")
    page.get_by_role("heading", name="Matrix").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('.matrices').scrollIntoView({block: 'center'})")
    picture(seen, folder, "matrix")
    seen.check()


def test_a_job_tells_what_runs_and_what_is_next(seen: Seen, service: Service, folder: Path) -> None:
    page = seen.go("documents")
    service.hub.faults.append(slow())
    asked = {"reference": "acme/chat", "backend": "vllm", "name": "watched"}
    job = service.client.post("/v1/imports", json=asked).json()["id"]
    expect(page.locator(".working")).to_contain_text("1 ")
    seen.go(f"jobs/{job}")
    expect(page.locator(".steps li.running")).to_be_visible()
    expect(page.locator("p.ahead")).to_contain_text("so far")
    expect(page.locator("p.ahead")).to_contain_text("step ")
    picture(seen, folder, "progress")
    expect(page.get_by_role("link", name="Review watched")).to_be_visible()
    expect(page.locator(".steps li.done")).to_have_count(4)
    expect(page.get_by_text("took ", exact=False).first).to_be_visible()
    expect(page.locator(".working")).to_have_count(0)
    seen.check()


@pytest.mark.nightly
def test_a_stream_that_was_cut_goes_on_where_it_is_by_then(seen: Seen, service: Service) -> None:
    service.hub.faults.append(slow())
    asked = {"reference": "acme/chat", "backend": "vllm", "name": "cut"}
    job = service.client.post("/v1/imports", json=asked).json()["id"]
    page = seen.go(f"jobs/{job}")
    seen.context.set_offline(True)
    service.ended(job)
    seen.context.set_offline(False)
    expect(page.get_by_role("link", name="Review cut")).to_be_visible()
    seen.check("ERR_INTERNET_DISCONNECTED", "ERR_NETWORK")
