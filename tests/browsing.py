"""The page in Debian's chromium, on a real service with models that mean harm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from importer.engines.install import Installed
from importer.storage.audit import AuditContext
from tests.commandline import BASE
from tests.hubserver import Repo
from tests.pages import Seen, browser
from tests.publishing import gallery_of
from tests.reports.test_reports_browser import BREAKING_OUT
from tests.serving import Service, running
from tools.build_page import BUILT, WEB

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "importer" / "demo" / "model"
HARM = (
    "<script>window.harmed = 'script'</script><img src=x onerror=\"window.harmed = 'img'\">"
    "<svg onload=\"window.harmed = 'svg'\"><a href=\"javascript:window.harmed = 'a'\">x</a>"
    "<link rel=stylesheet href=//evil.test/css><iframe src=//evil.test></iframe>{{7*7}}${7*7}"
)
HIGH = 6000  # pixels
HOSTILE = "".join(out + HARM for out in BREAKING_OUT) + "\u202etxt.exe\u202c\u0007\u001b[31m"
HOSTILE_PRINTED = "".join(
    c for c in HOSTILE if c.isprintable()
)  # as a description, which holds nothing unseen


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    """Chromium, for a page of its present sources: of an older one each expectation waits to its end."""
    newest = max(file.stat().st_mtime for file in (WEB / "src").rglob("*") if file.is_file())
    assert BUILT.is_file(), "the page is not built: run make page"
    assert BUILT.stat().st_mtime >= newest, "the page is older than its sources: run make page"
    with browser() as one:
        yield one


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, mlx_engine: Installed) -> Iterator[Service]:
    """A server that validates, and models on its Hub: the demonstration, and one that means harm."""
    del mlx_engine
    folder = tmp_path_factory.mktemp("page")
    repos = {"acme/demo": Repo(DEMO), "acme/second": Repo(DEMO), "evil/model": Repo(hostile())}
    with running(folder, engines=True, **repos) as one:
        yield one


def hostile() -> dict[str, Any]:
    """A repository whose every text wants to be more than text."""
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>\n"
        '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
        f"{HARM.replace('{{7*7}}', '')}{{% endfor %}}{{% else %}}{{{{ m.content }}}}{{% endif %}}<|im_end|>\n"
        "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"
    )
    card = f"---\nlicense: mit\nlibrary_name: {HARM!r}\n---\n# {HARM}\nUse `temperature=0.3`. {HARM}\n"
    return {
        **BASE, "chat_template.jinja": template, "README.md": card,
        "tokenizer_config.json": {"eos_token": HOSTILE, "bos_token": HARM, "chat_template": HARM},
        "generation_config.json": {"temperature": 0.6, "eos_token_id": [2, 3], HARM: HARM},
        "tokenizer.json": {"added_tokens": [{"id": 2, "content": HOSTILE}, {"id": 3, "content": HARM}]},
    }  # fmt: skip


@pytest.fixture
def seen(chrome: Browser, service: Service) -> Iterator[Seen]:
    one = Seen(chrome, service.url)
    yield one
    one.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where pictures go."""
    return Path(os.environ.get("PAGE_PICTURES", tmp_path))


def state(page: Page, word: str) -> None:
    expect(page.locator(".title .mark")).to_contain_text(word)


def unfold(page: Page) -> None:
    """Open what the head of a document folds: its steps, its facts, the note of a review."""
    page.locator("details.fold").evaluate("(one) => { one.open = true; }")


def imported(service: Service, name: str = "demo") -> str:
    """A document of the demonstration model."""
    if service.client.get(f"/v1/configs/{name}").status_code == 404:
        job = service.imported("acme/demo", backend="mlx", name=name)
        assert job["state"] == "succeeded", job
    return name


def copied(service: Service, first: str, *names: str) -> None:
    """Documents as the ``first`` one, without receipts."""
    text = service.client.get(f"/v1/configs/{first}").json()["text"]
    with gallery_of(service) as gallery, gallery.change(AuditContext("many", "import")) as change:
        for name in names:
            change.checkout.path(name).write_text(text.replace(f"name: {first}", f"name: {name}"))
            change.save(name)


def editor(page: Page) -> Locator:
    """The field of the editor."""
    return page.get_by_role("textbox", name="YAML")


def written(page: Page) -> str:
    """The text of the editor, which draws every line only on paper, and where there is room."""
    editor(page).wait_for()
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({**size, "height": HIGH})
    page.emulate_media(media="print")
    expect(page.locator(".cm-gap")).to_have_count(0)
    text = "\n".join(page.locator(".cm-line").all_text_contents())
    page.emulate_media(media="screen")
    page.set_viewport_size(size)
    return text


def write(page: Page, text: str) -> None:
    """Put a text in place of that of the editor."""
    editor(page).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
