"""A report in a real browser: nothing leaves it, nothing runs in it, and it can be read in light and dark.

``python -m tests.reports.test_reports_browser`` validates the demo twice and takes the docs' picture.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from importer.demo import MODEL
from importer.reports import html
from tests.browser import browse, picture
from tests.commandline import Desk, desk
from tests.pages import LOST_FIGURES, PHONE, browser, grave
from tests.reporting import told
from tests.reports.test_pictures import FIT, PROOF, RUN

__all__ = ["desk"]

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "report.png"
CASES = [f"case-{number}" for number in range(20)]
WIDE_PROOF = {
    **PROOF, "verdicts": {"tool_parser": [{"parser": "hermes", "passed": CASES, "failed": {}}]},
}  # fmt: skip
LARGEST = 160_000  # bytes of the picture in the docs


@contextmanager
def proxy() -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Options that send every request of a browser here, and what was asked for."""
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        do_CONNECT = do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    options = (
        f"--proxy-server=http://127.0.0.1:{server.server_address[1]}",
        "--proxy-bypass-list=<-loopback>",
    )
    try:
        yield options, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


LIVE = (
    "<script>document.title = 'it ran'; fetch('http://evil.test/fetch')</script>"
    "<img src=http://evil.test/img onerror=\"document.title = 'it ran'\">"
    "<link rel=stylesheet href=http://evil.test/css><style>@import 'http://evil.test/import';</style>"
    "<svg><image href=http://evil.test/svg /></svg><iframe src=http://evil.test/frame></iframe>"
    "<meta http-equiv=refresh content='0; url=http://evil.test/refresh'><object data=http://evil.test/object></object>"
)
BREAKING_OUT = ("", '">', "</pre>", "</style>", "</title>", "-->", "</details></div></main>", "'>", "]]>")


def test_no_request_leaves_a_page_and_no_script_runs_in_it(tmp_path: Path) -> None:
    page, open_page = tmp_path / "page.html", tmp_path / "open.html"
    page.write_text(html.write(told("".join(out + LIVE for out in BREAKING_OUT))))
    open_page.write_text(f"<!doctype html><title>quiet</title>{LIVE}")
    with proxy() as (options, asked):
        dom = browse(page, "--dump-dom", "--virtual-time-budget=2000", *options)
        here = [path for path in asked if "evil.test" in path]
        live = browse(open_page, "--dump-dom", "--virtual-time-budget=2000", *options)
        there = [path for path in asked if "evil.test" in path]
    assert here == []
    assert "<script" not in dom
    assert "<img" not in dom
    assert "<title>it ran" not in dom
    assert there  # without our escaping and policy, the same browser asks and runs
    assert "<title>it ran" in live


def test_should_markup_slip_in_the_policy_stops_it(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(html.write(told("SLIP")).replace("SLIP", LIVE.replace("<meta", "<!-- meta")))
    with proxy() as (options, asked):
        dom = browse(page, "--dump-dom", "--virtual-time-budget=2000", *options)
    assert [path for path in asked if "evil.test" in path] == []
    assert "<script>" in dom
    assert "<title>it ran" not in dom


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def corner(png: bytes) -> tuple[int, ...]:
    """The colour of the first pixel, which no filter changes."""
    at, data = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        data += png[at + 8 : at + 8 + length] if png[at + 4 : at + 8] == b"IDAT" else b""
        at += length + 12
    return tuple(zlib.decompress(data)[1:4])


def test_a_phone_shows_every_figure_of_a_report_and_scrolls_down_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        html.write(told("wide", fit=FIT, proof=WIDE_PROOF, runs=(RUN, replace(RUN, engine="sglang"))))
    )
    with browser() as one:
        shown = one.new_page(viewport=PHONE)  # type: ignore[arg-type]
        shown.goto(page.as_uri())
        assert shown.locator(".plot .value").count() == 2
        assert shown.evaluate(LOST_FIGURES) == []
        assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        judged(shown)
        assert (
            shown.locator(".scroll:has(.proof)").evaluate("(one) => one.scrollWidth - one.clientWidth") == 0
        )


def test_a_page_is_drawn_light_and_dark_wide_and_narrow_and_on_paper(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(html.write(told(" text")))
    for dark, ground, width in ((False, (255, 255, 255), 1280), (True, (0x14, 0x17, 0x1B), 390)):
        png = picture(page, tmp_path / "page.png", width=width, height=900, dark=dark)
        assert (size(png), corner(png)) == ((width, 900), ground)
        assert len(png) > 15_000  # an empty page has 3,000
    browse(page, f"--print-to-pdf={tmp_path / 'page.pdf'}", "--no-pdf-header-footer")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF-")


def test_a_gallery_is_searched_from_the_disk_and_below_a_path(desk: Desk) -> None:
    """At the width of a desk and of a phone; a name leads to the report with the validation."""
    for name in ("acme/base", "acme/chat"):
        assert desk(name, "--backend", "vllm", "--yes", "--no-validate", "--dir", "models").code == 0
    assert desk("gallery", "build", "models", "-o", "served/pages/gallery").code == 0
    handler = partial(SimpleHTTPRequestHandler, directory=str(desk.folder / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, browser() as chrome:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        below = f"http://127.0.0.1:{server.server_port}/pages/gallery/"
        searched(chrome, (desk.folder / "served/pages/gallery/index.html").as_uri(), 1280)
        searched(chrome, below, 390)
        server.shutdown()


PLACE = "[...document.querySelectorAll('a[href], input, select')].indexOf(document.activeElement)"


def judged(page: Page) -> None:
    """Contrast, labels, names and roles, light and dark."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert grave(page) == [], scheme


def reached(page: Page) -> None:
    """Tab comes to each control once, in the order of the page, with an outline."""
    seen = []
    for _ in page.locator("a[href], input, select").all():
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", ""), page.evaluate("document.activeElement.outerHTML")
        seen.append(page.evaluate(PLACE))
    assert seen == [*range(len(seen))]


def searched(chrome: Browser, start: str, width: int) -> None:
    page = chrome.new_page(viewport={"width": width, "height": 844})
    asked, complaints = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: complaints.append(said.text))
    page.goto(start)
    judged(page)
    reached(page)
    shown = page.get_by_role("heading", level=2)
    assert shown.all_inner_texts() == ["base", "chat"]
    page.get_by_label("Search").fill("CHAT acme")
    assert shown.all_inner_texts() == ["chat"]
    assert page.locator("#count").inner_text() == "1 of 2"
    page.get_by_label("Search").fill("")
    page.get_by_label("weights").select_option("up to 8 GB")
    assert shown.count() == 2
    for cell in page.locator("article:first-child > *").all():
        box = cell.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    page.get_by_role("link", name="chat", exact=True).click()
    page.get_by_role("heading", level=1).wait_for()
    assert page.url.endswith("/chat.html")
    assert "validation\nnever" in page.inner_text("body")
    assert {url.rpartition("/")[0] for url in asked} == {start.rpartition("/")[0]}
    assert complaints == []
    page.close()


def test_the_docs_have_a_picture_that_is_small_enough() -> None:
    png = PICTURE.read_bytes()
    assert size(png) == (1000, 1100)
    assert len(png) < LARGEST


def take() -> None:
    """Validate the demo on mlx-lm and mlx-vlm, and take the picture of its report."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "importer"]
        model = shutil.copytree(MODEL, Path(place) / "model")
        run = ["--name", "demo", "--backend", "mlx", "--yes", "--validate", "--dir", place]
        subprocess.run([*command, model, *run], cwd=ROOT, check=True)
        validate = ["validate", "demo", "--engine", "mlx-vlm", "--dir", place]
        subprocess.run([*command, *validate], cwd=ROOT, check=False)
        report = ["report", "demo", "--dir", place, "--output", f"{place}/demo.html"]
        subprocess.run([*command, *report], cwd=ROOT, check=True)
        png = picture(Path(place, "demo.html"), PICTURE, width=1000, height=1100)
    assert len(png) < LARGEST, len(png)


if __name__ == "__main__":
    take()
