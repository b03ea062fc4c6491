"""The editor in Debian's chromium: completion, errors at their places, conflicts, and a key that expired."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browsing import HARM, HOSTILE_PRINTED, chrome, editor, folder, seen, write, written
from tests.pages import PHONE, Seen, picture
from tests.serving import Service, fresh, running
from tests.serving import own_service as service

__all__ = ["chrome", "folder", "seen", "service"]
pytestmark = pytest.mark.slow
EDITOR = "**/page/codemirror-*.js"


def stored(service: Service, name: str) -> str:
    return str(service.config(name)["text"])


def at_line(page: Page, text: str) -> None:
    """Put the caret at the end of the line that begins so."""
    page.locator(".cm-line").filter(has_text=text).first.click()
    page.keyboard.press("End")


def hovered(page: Page) -> None:
    """Rest on the first mark until it tells its error; a long line, measured late, moves the mark away."""
    marker, told = page.locator(".cm-lint-marker-error").first, page.locator(".cm-tooltip-lint")
    for _ in range(10):
        marker.hover()
        with suppress(PlaywrightTimeout):
            told.wait_for(timeout=2000)
            break
        page.mouse.move(0, 0)
    expect(told).to_be_visible()


def test_the_editor_stands_under_the_policy_of_the_page_and_is_loaded_by_who_edits(
    seen: Seen, service: Service
) -> None:
    """In a shadow root its styles are constructed sheets; in the document they would be stopped."""
    name = fresh(service, "policy")
    page = seen.go(f"documents/{name}/decisions")
    assert not [url for url in seen.asked if "codemirror" in url]
    sheets = page.evaluate("document.styleSheets.length")
    seen.press("Document")
    expect(editor(page)).to_be_visible()
    assert [url for url in seen.asked if "codemirror" in url]
    assert page.evaluate("document.styleSheets.length") == sheets
    assert editor(page).evaluate("(e) => getComputedStyle(e.closest('.cm-editor')).display") == "flex"
    colour = "(e) => getComputedStyle(e).color"
    key = page.locator(".cm-line").filter(has_text="name: ").first.locator("span").first
    assert key.evaluate(colour) != editor(page).evaluate(colour)  # colours for the syntax
    assert written(page) == stored(service, name)
    seen.check()


def test_keys_and_values_are_completed_from_the_schema_and_the_engine(seen: Seen, service: Service) -> None:
    name = fresh(service, "completed")
    page = seen.go(f"documents/{name}/text")
    write(page, f"{stored(service, name).rstrip()}\nengine_args:\n  ")
    page.keyboard.type("max_num_se")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options.first).to_contain_text("max_num_seqs")
    expect(page.locator(".cm-completionInfo")).to_contain_text("--max-num-seqs")
    page.keyboard.press("Enter")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    page.keyboard.type("kv_cache_dtype: fp")
    expect(options.filter(has_text="fp8").first).to_be_visible()  # values of an argument
    page.keyboard.press("Escape")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(f"{stored(service, name).rstrip()}\n")
    at_line(page, "parameters:")
    page.keyboard.press("Enter")
    page.keyboard.type("  presence")
    expect(options.first).to_contain_text("presence_penalty")
    expect(page.locator(".cm-completionInfo")).to_contain_text("Penalty on tokens")  # as the schema has it
    expect(page.locator(".cm-completionInfo")).to_contain_text("at least -2")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text('options: ["tool_parser:')
    page.keyboard.type("her")
    expect(options.first).to_contain_text("hermes")
    seen.check()


def test_errors_stand_at_their_places_and_keys_lead_from_one_to_the_next(
    seen: Seen, service: Service, folder: Path
) -> None:
    name = fresh(service, "mistaken")
    page = seen.go(f"documents/{name}/text")
    text = stored(service, name).replace("temperature: 0.6", "temperature: hot")
    write(page, f"{text.rstrip()}\nengine_args:\n  max_num_seq: 7\n")
    mistakes = page.locator(".mistakes li")
    expect(mistakes).to_have_count(2)
    expect(mistakes.nth(1)).to_contain_text("engine_args.max_num_seq: vllm")
    expect(mistakes.nth(1)).to_contain_text("has no argument of this name")
    expect(page.locator(".cm-lintRange-error")).to_have_count(2)
    expect(page.locator(".cm-lint-marker-error")).to_have_count(2)
    expect(editor(page)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.keyboard.press("Control+Home")
    page.keyboard.press("F8")
    expect(page.locator(".cm-activeLine")).to_contain_text("temperature: hot")
    page.keyboard.press("F8")
    expect(page.locator(".cm-activeLine")).to_contain_text("max_num_seq: 7")
    page.get_by_role("button", name="Save").scroll_into_view_if_needed()
    picture(seen, folder, "editor")
    page.keyboard.press("Shift+F8")
    expect(page.locator(".cm-activeLine")).to_contain_text("temperature: hot")
    page.get_by_role("button", name="Next error").click()
    expect(page.locator(".cm-activeLine")).to_contain_text("max_num_seq: 7")
    page.get_by_role("button", name="Use max_num_seqs").click()
    expect(mistakes).to_have_count(1)
    assert "  max_num_seqs: 7" in written(page)
    mistakes.get_by_role("button").click()
    expect(page.locator(".cm-activeLine")).to_contain_text("temperature: hot")
    write(page, written(page).replace("temperature: hot", "temperature: 0.3"))
    expect(mistakes).to_have_count(0)
    expect(page.locator("#mistakes")).to_contain_text("parameters.temperature: 0.6 → 0.3")
    added = page.locator(".differences .added")
    expect(added.filter(has_text="max_num_seqs: 7")).to_be_visible()
    expect(added.filter(has_text="temperature: 0.3")).to_be_visible()
    seen.check()


@pytest.mark.nightly
def test_tab_does_not_hold_who_writes_and_control_s_saves(seen: Seen, service: Service) -> None:
    name = fresh(service, "kept")
    page = seen.go(f"documents/{name}/text")
    expect(page.get_by_text("Escape, then Tab leaves the field")).to_be_visible()
    seen.tab("YAML")
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("system_prompt: one\n")
    expect(page.locator("#mistakes")).to_contain_text("Saving changes:")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert seen.focused() != "YAML"
    page.keyboard.press("Shift+Tab")
    assert seen.focused() == "YAML"
    page.keyboard.press("Tab")  # without Escape it indents
    assert seen.focused() == "YAML"
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    assert service.config(name)["data"]["system_prompt"] == "one"
    seen.check()


@pytest.mark.nightly
def test_what_is_written_during_a_save_is_the_next_text(seen: Seen, service: Service) -> None:
    name = fresh(service, "during")
    page = seen.go(f"documents/{name}/text")
    held: list[Route] = []

    def hold(one: Route) -> None:
        held.append(one)

    page.route(f"**/v1/configs/{name}", hold, times=1)
    write(page, stored(service, name).replace("temperature: 0.6", "temperature: 0.3"))
    with page.expect_request(f"**/v1/configs/{name}"):
        page.keyboard.press("Control+s")
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("system_prompt: one\n")
    held[0].continue_()
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    expect(page.locator("main")).to_have_attribute("aria-busy", "false")
    assert seen.focused() == "YAML"
    page.keyboard.insert_text("# two\n")
    assert written(page).endswith("system_prompt: one\n# two\n")
    expect(page.get_by_text("Somebody changed it")).to_have_count(0)
    data = service.config(name)["data"]
    assert (data["parameters"]["temperature"], data.get("system_prompt")) == (0.3, None)
    page.keyboard.press("Control+s")
    expect(page.locator(".differences")).to_have_count(0)
    assert service.config(name)["data"]["system_prompt"] == "one"
    seen.check()


def test_nothing_of_another_person_is_overwritten_unseen(seen: Seen, service: Service) -> None:
    name = fresh(service, "shared")
    page = seen.go(f"documents/{name}/text")
    write(page, stored(service, name).replace("temperature: 0.6", "temperature: 0.3"))
    page.get_by_role("link", name="Probes").click()
    expect(page.get_by_text("It was never run.")).to_be_visible()
    page.go_back()
    expect(page.locator(".cm-line").filter(has_text="temperature: 0.3")).to_be_visible()  # not lost
    change = {"parameters": {"top_p": 0.5}}
    service.edit(name, change)
    page.get_by_label("Why").fill("cooler")
    page.get_by_role("button", name="Save").click()
    alert = page.get_by_role("alert").filter(has_text="Somebody changed it")
    expect(alert.locator(".added").filter(has_text="top_p: 0.5")).to_be_visible()  # what they did
    expect(alert.locator(".gone").filter(has_text="top_p: 0.5")).to_be_visible()  # what one's own would undo
    data = service.config(name)["data"]["parameters"]
    assert (data["temperature"], data["top_p"]) == (0.6, 0.5)
    alert.get_by_role("button", name="Keep my text").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    data = service.config(name)["data"]["parameters"]
    assert data["temperature"] == 0.3
    assert data.get("top_p") != 0.5
    seen.check("412")


def test_an_action_on_the_saved_text_asks_while_another_is_written(seen: Seen, service: Service) -> None:
    """A review makes a version; the text of that is the same, and leaves no conflict."""
    name = fresh(service, "reviewed")
    page = seen.go(f"documents/{name}/text")
    write(page, stored(service, name).replace("temperature: 0.6", "temperature: 0.3"))
    page.keyboard.press("Escape")
    question = page.get_by_role("dialog", name="The text in the editor is not saved")
    page.get_by_role("link", name="Review", exact=True).click()  # the text is kept, and not seen there
    for action in ("Validate", "Approve"):
        page.get_by_role("button", name=action, exact=True).press("Enter")
        expect(question).to_contain_text(f"{action} acts on the saved text, that is version 1.")
        page.keyboard.press("Escape")
        expect(question).to_have_count(0)
        assert seen.focused() == action
    assert seen.grave() == []
    assert service.config(name)["review"] == "draft"
    assert service.client.get("/v1/jobs", params={"config": name, "kind": "validation"}).json()["items"] == []
    page.get_by_role("link", name="Document", exact=True).click()
    page.get_by_role("button", name="Approve").press("Enter")
    seen.press("Approve version 1")
    expect(page.locator(".title .mark")).to_contain_text("approved")
    expect(page.locator(".cm-line").filter(has_text="temperature: 0.3")).to_be_visible()
    expect(page.get_by_text("Somebody changed it")).to_have_count(0)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    assert service.config(name)["data"]["parameters"]["temperature"] == 0.3
    expect(page.locator("main")).to_have_attribute("aria-busy", "false")
    write(page, stored(service, name).replace("temperature: 0.3", "temperature: 0.2"))
    held: list[Route] = []
    page.route(
        f"**/v1/configs/{name}",
        lambda one: held.append(one) if one.request.method == "GET" else one.continue_(),
    )
    page.get_by_role("button", name="Approve").click()
    with page.expect_request(lambda one: one.method == "GET" and one.url.endswith(f"/v1/configs/{name}")):
        question.get_by_role("button", name="Save the text first").click()
    saved = page.get_by_role("status").filter(has_text="Approve now acts on this text")
    expect(saved).to_have_count(0)  # the page has the version before it still
    held[0].continue_()
    page.unroute(f"**/v1/configs/{name}")
    expect(saved).to_be_visible()
    expect(question).to_have_count(0)
    assert seen.focused() == "Approve"
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Approve").click()  # the same text is saved: nothing is asked
    expect(page.locator(".title .mark")).to_contain_text("approved")
    assert service.config(name)["data"]["parameters"]["temperature"] == 0.2
    seen.check()


def test_a_plain_field_does_where_the_editor_cannot_be_loaded(chrome: Browser, service: Service) -> None:
    name = fresh(service, "plain")
    seen = Seen(chrome, service.url, viewport=PHONE)
    seen.context.route(EDITOR, lambda route: route.abort())
    page = seen.go(f"documents/{name}/text")
    expect(page.get_by_text("could not be loaded; this plain field does the same work")).to_be_visible()
    text = page.get_by_label("YAML")
    text.fill(stored(service, name).replace("temperature: 0.6", "temperature: hot"))
    expect(page.locator(".mistakes li")).to_have_count(1)
    text.fill(text.input_value().replace("temperature: hot", "temperature: 0.2"))
    text.press("Control+s")
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    assert service.config(name)["data"]["parameters"]["temperature"] == 0.2
    seen.check("ERR_FAILED")
    seen.close()


def test_strangers_text_is_text_in_the_editor_too(seen: Seen, service: Service) -> None:
    name = fresh(service, "strange")
    edited = service.edit(name, {"description": HOSTILE_PRINTED})
    assert edited.status_code == 200, edited.text
    page = seen.go(f"documents/{name}/text")
    assert "window.harmed" in written(page)
    seen.check()
    harm = HARM.replace("'", "")
    text = stored(service, name).rstrip()
    write(
        page,
        f"{text}\nsystem_prompt: \u202egnp.exe {'long ' * 2000}\n"
        f"engine_args:\n  '{harm}': 1\n  kv_cache_dtype: '{harm}'\n",
    )
    expect(page.locator(".mistakes li")).not_to_have_count(0)
    assert "\u202e" not in written(page)
    assert "\\u202egnp.exe" in written(page)
    assert "\u202e" not in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    hovered(page)
    seen.check()


@pytest.mark.nightly
def test_a_text_outlasts_a_key_that_expired(chrome: Browser, tmp_path: Path) -> None:
    with running(tmp_path) as service:
        name = fresh(service, "locked")
        keys = [service.made_key(who, "import") for who in ("ann", "bob")]
        seen = Seen(chrome, service.url)
        page = seen.go("key")
        page.get_by_label("API key").fill(keys[0]["key"])
        page.get_by_role("button", name="Use this key").click()
        seen.heading("Documents")
        page = seen.go(f"documents/{name}/text")
        write(page, stored(service, name).replace("temperature: 0.6", "temperature: 0.4"))
        expect(page.locator("#mistakes")).to_contain_text("0.6 → 0.4")
        service.revoke(keys[0]["id"])
        editor(page).press("Control+s")
        expect(page.get_by_text("Your text is kept on this page.").first).to_be_visible()
        page.get_by_role("link", name="Enter another key").first.click()
        page.get_by_label("API key").fill(keys[1]["key"])
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_text("bob").first).to_be_visible()
        page.evaluate("(place) => { location.hash = place; }", f"#/documents/{name}/text")
        expect(page.locator(".cm-line").filter(has_text="temperature: 0.4")).to_be_visible()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
        assert service.config(name)["data"]["parameters"]["temperature"] == 0.4
        seen.check("401")
        seen.close()
