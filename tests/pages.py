"""The page in a real browser, watched: what it asks for, what it complains of, what was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, FloatRect, Locator, Page, expect, sync_playwright

from tests.browser import chromium
from tests.waiting import PATIENCE

WIDE = {"width": 1200, "height": 900}
PHONE = {"width": 390, "height": 844}
SOON = 600_000  # milliseconds, against what hangs: no page takes so long on a busy machine
LATER = 1000 * PATIENCE  # milliseconds until an engine, or a server that starts, has answered
expect.set_options(timeout=SOON)
WATCH = (
    "window.stopped = []; addEventListener('securitypolicyviolation', "
    "(e) => window.stopped.push(`${e.violatedDirective} ${e.blockedURI}`));"
)
# What no part of the page ever makes, so that it can only have come out of a text.
# CodeMirror sets styles of its nodes.
STRANGE = (
    "script:not([src^='page/main-']), link:not([href^='page/']), meta[http-equiv], style, "
    "[style]:not(.cm-editor, .cm-editor *), img:not(.cm-editor *), image, svg:not(.chart), "
    "iframe, object, embed, base, video, audio, [onerror], [onload], [onclick]"
)


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's chromium, without a window."""
    with sync_playwright() as play:
        one = play.chromium.launch(executable_path=str(chromium()), args=["--no-sandbox"])
        try:
            yield one
        finally:
            one.close()


AXE = Path(str(files("importer.service"))) / "web" / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = ("serious", "critical")
JUDGED = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    (v) => [v.impact, v.id, v.nodes.map((n) => n.target.join(" ") + ": " + n.failureSummary).slice(0, 5)])"""
LOST_FIGURES = """() => [...document.querySelectorAll('.plot .value')].filter((e) => {
    const {left, right, height} = e.getBoundingClientRect();
    return !e.textContent || left < 0 || right > innerWidth || height < 10 || height > 30;
}).map((e) => e.textContent)"""  # a figure beside its bar that is not seen whole, or too small
FOCUSED = """(() => {
    let e = document.activeElement;
    while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
    return (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || e.tagName).trim();
})()"""


def grave(page: Page) -> list[Any]:
    """What axe finds serious or critical; the browser's own channel brings it in, past the policy."""
    assert AXE.is_file(), "axe-core is missing: run make page"
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[Any] = page.evaluate(JUDGED)
    return [one for one in found if one[0] in GRAVE]


class Seen:
    """A page, and all that happened in it."""

    def __init__(self, one: Browser, url: str, **options: Any) -> None:
        self.url = url
        self.context = one.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options})
        self.context.set_default_timeout(SOON)
        self.context.add_init_script(WATCH)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.opened = 0
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

    def go(self, place: str = "") -> Page:
        """Open a place as a link from elsewhere would; a blank page between costs chromium a third more."""
        self.opened += 1
        self.page.goto(f"{self.url}/?{self.opened}#/{place}")
        self.heading()
        return self.page

    def heading(self, name: str | None = None) -> Locator:
        """The page's title, once it is there."""
        found = self.page.get_by_role("heading", level=1, **({} if name is None else {"name": name}))
        found.wait_for()
        return found

    def check(self, *expected: str) -> None:
        """Nothing was asked of others, stopped, made of text, or complained of but what was ``expected``."""
        assert [
            a for a in self.asked if not a.startswith((f"{self.url}/", f"blob:{self.url}/", "about:"))
        ] == []
        assert self.page.evaluate("window.stopped") == []
        assert self.page.locator(STRANGE).count() == 0
        assert self.page.evaluate("window.harmed") is None
        odd = [c for c in self.complaints if not any(e in c for e in expected)]
        assert odd == [], odd

    def grave(self) -> list[Any]:
        """What axe finds serious or critical."""
        return grave(self.page)

    def close(self) -> None:
        self.context.close()

    # With the keyboard alone.

    def focused(self) -> str:
        """What has the focus, as a person names it."""
        said: str = self.page.evaluate(FOCUSED)
        return said

    def tab(self, name: str, most: int = 600) -> None:
        """Press Tab until it is there; twice round a view, for one that comes late begins at its top."""
        for _ in range(most):
            if self.focused() == name:
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{name!r} cannot be reached by keys")

    def press(self, name: str, key: str = "Enter") -> None:
        self.tab(name)
        self.page.keyboard.press(key)

    def write(self, name: str, text: str) -> None:
        self.tab(name)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)


SHOWN = {"decisions", "review"}  # pictures of the docs; the others are judged alone


def picture(seen: Seen, folder: Path, name: str, height: int | None = None) -> bytes:
    """A screenshot of what is seen without scrolling, or of its top; axe has nothing grave against it."""
    size = seen.page.viewport_size
    assert size is not None
    clip: FloatRect = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"]}
    path = folder / f"page-{name}.png" if name in SHOWN else None
    png = seen.page.screenshot(path=path, clip=clip, animations="allow", caret="initial")
    grave = seen.grave()
    assert grave == [], (name, grave)
    return png
