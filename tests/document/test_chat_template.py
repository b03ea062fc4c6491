"""--template: offered and never applied unasked, ours or the user's, refused in a sentence."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from importer.document.store import load
from importer.document.template_file import ChatTemplate
from tests.commandline import BASE, CHAT, Desk, Ran, whole_receipt
from tests.hubserver import Repo
from tests.template_texts import CHATML_JSON, IMAGES
from tests.templating import ASK, FILE, beside, imported, with_entry

pytestmark = pytest.mark.slow


def parser(ran: Ran) -> Any:
    return ran.line["decisions"]["tool_parser"]


def test_it_is_offered_and_not_applied_unasked(desk: Desk) -> None:
    ran = imported(desk, "--json")
    offer = "a chat template of importer's own (json) would offer it tools"
    assert parser(ran)["why"][-1] == offer
    assert "chat_template" not in ran.line["document"]["importer"]
    assert not beside(desk).exists()
    assert "--template" not in desk("acme/chat", *ASK, "--dry-run").err  # no alarm: it has no tools
    assert parser(desk("acme/chat", "--backend", "mlx", "--dry-run", "--json"))["why"][-1].startswith(
        "a chat template of importer's own (json) "
    )


@pytest.mark.parametrize(
    "words",
    [
        ("acme/base", *ASK),  # no template whose turns could be kept
        ("acme/chat", *ASK, "--set", "tool_parser=none"),
        ("acme/chat", *ASK, "--set", "kind=guard"),
        ("acme/tools", *ASK),
        ("acme/rendered", *ASK),
    ],
)
def test_it_is_not_offered_in_vain(desk: Desk, words: tuple[str, ...]) -> None:
    desk.hub.repos["acme/tools"] = Repo({**CHAT, "chat_template.jinja": CHATML_JSON})
    rendered = {"model_type": "deepseek_v32", "architectures": ["DeepseekV32ForCausalLM"]}
    desk.hub.repos["acme/rendered"] = Repo({**CHAT, "config.json": rendered})
    ran = desk(*words, "--dry-run", "--json")
    assert ran.code == 0, ran.err
    assert not any("--template" in why for why in parser(ran)["why"])


@pytest.mark.parametrize(
    ("backend", "name", "chosen"),
    [("vllm", "json", "hermes"), ("mlx", "json", "json_tools"),
     ("mlx-vlm", "json", "json_tools")],
)  # fmt: skip
def test_with_it_the_parser_is_claimed_and_the_file_lies_beside(
    desk: Desk, backend: str, name: str, chosen: str
) -> None:
    ran = desk("acme/chat", "--backend", backend, "--no-validate", "--template", name, "--json", "--yes")
    assert ran.code == 0, ran.err
    decision = parser(ran)
    assert (decision["value"], decision["status"]) == (chosen, "declared")
    assert decision["why"][0] == (
        f"read from another chat template ({name}), so it shows nothing about the model"
    )
    text = beside(desk).read_text()
    assert text.endswith(str(CHAT["chat_template.jinja"]))
    stored = load(desk.folder / "models" / "chat.yaml")
    stored.check()
    assert stored.data["importer"]["chat_template"] == {
        "name": name, "file": FILE, "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }  # fmt: skip
    assert stored.chat_template() == ChatTemplate(beside(desk), text)
    assert stored.receipt is not None
    assert stored.receipt.state(stored.digest) == "approved"
    assert stored.receipt.request is not None
    assert stored.receipt.request["template"] == name
    assert any(e["rule"] == "given-template" for e in stored.receipt.evidence)


def test_who_knows_it_to_have_no_tools_is_overruled_and_shown(desk: Desk) -> None:
    desk.hub.repos["google/gemma-3-4b-it"] = Repo({**BASE, "chat_template.jinja": IMAGES})
    line = parser(desk("google/gemma-3-4b-it", *ASK, "--dry-run", "--json"))
    assert (line["status"], "(json" in line["why"][-1]) == ("none", True)
    ran = desk("google/gemma-3-4b-it", *ASK, "--template", "json", "--dry-run", "--json")
    line = parser(ran)
    assert (line["value"], line["status"]) == ("hermes", "declared")
    told = next(o for o in line["overruled"] if o["value"] is None)
    assert told["why"].startswith(
        "the user gives it tools with a chat template; it said: its name says gemma-3"
    )
    assert ran.line["decisions"]["reasoning_parser"]["status"] == "none"


def test_the_users_parser_still_wins(desk: Desk) -> None:
    decision = parser(imported(desk, "--template", "json", "--set", "tool_parser=mistral", "--json"))
    assert (decision["value"], decision["status"]) == ("mistral", "user")


def test_recheck_asks_for_it_again(desk: Desk) -> None:
    imported(desk, "--template", "json")
    assert desk("recheck").out == "chat: nothing would change.\n"
    mine = desk.folder / "mine.jinja"
    mine.write_text(CHATML_JSON)
    imported(desk, "--template", str(mine))
    assert desk("recheck").out == "chat: nothing would change.\n"
    mine.unlink()  # its text lies beside the document
    assert desk("recheck").out == "chat: nothing would change.\n"


def test_it_is_the_users_word_until_they_take_it_back(desk: Desk) -> None:
    imported(desk, "--template", "json")
    before = desk.files()
    ran = imported(desk)
    assert "As you said at an earlier import: --template json. --template none takes it back." in ran.err
    assert desk.files() == before
    imported(desk, "--template", "none")
    assert not beside(desk).exists()
    assert "As you said" not in imported(desk).err
    mine = desk.folder / "mine.jinja"
    mine.write_text(CHATML_JSON)
    imported(desk, "--template", "mine.jinja")
    mine.write_text("{% if %}")  # what was given is what lies beside the document
    assert f"--template {mine}." in imported(desk).err
    assert beside(desk).read_text() == CHATML_JSON
    beside(desk).unlink()
    assert (desk("acme/chat", *ASK).code, desk("acme/chat", *ASK, "--template", "json").code) == (5, 0)


def test_a_persons_own_template_named_in_the_file_stays(desk: Desk) -> None:
    text = CHATML_JSON + "{#- mine -#}"
    path = with_entry(desk, sha256=hashlib.sha256(text.encode()).hexdigest())
    beside(desk).write_text(text)
    edited = path.read_text()
    load(path).check()
    ran = imported(desk)
    assert (path.read_text(), beside(desk).read_text()) == (edited, text)
    assert "tool_parser" not in ran.err
    other = desk.folder / "other.jinja"
    other.write_text(CHATML_JSON)
    ran = desk("acme/chat", *ASK, "--template", str(other))
    assert (ran.code, "importer.chat_template.sha256" in ran.err) == (5, True)
    imported(desk, "--template", str(other), "--on-conflict", "theirs")
    assert beside(desk).read_text() == CHATML_JSON


# A file of the user's


def test_a_file_is_rendered_and_taken_as_it_is(desk: Desk) -> None:
    mine = desk.folder / "mine.jinja"
    mine.write_text(CHATML_JSON)
    ran = imported(desk, "--template", "mine.jinja", "--json")
    decision = parser(ran)
    assert (decision["value"], decision["status"]) == ("hermes", "declared")
    assert decision["why"][0].startswith("read from another chat template (file)")
    assert beside(desk).read_text() == CHATML_JSON
    assert ran.line["document"]["importer"]["chat_template"]["name"] == "file"
    receipt = whole_receipt(desk.folder / "models" / "chat.receipt.json")
    assert receipt["request"]["template"] == str(mine)
    assert {e["source"] for e in receipt["evidence"] if e["rule"] == "template-format"} == {str(mine)}
    imported(desk, "--template", f"models/{FILE}")  # its own file again
    assert beside(desk).read_text() == CHATML_JSON


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{% if %}", "cannot be rendered"),
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "took more than"),
        ("{{ 'x' * 10 ** 9 }}", "cannot be rendered"),
        ("nothing of what is said", "is not in what the template writes"),
    ],
)
def test_a_hostile_file_is_refused_and_nothing_is_written(desk: Desk, text: str, words: str) -> None:
    (desk.folder / "mine.jinja").write_text(text)
    ran = desk("acme/chat", *ASK, "--template", "mine.jinja")
    assert (ran.code, words in ran.err) == (2, True), ran.err
    assert not (desk.folder / "models").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("acme/chat", *ASK, "--template", "jsn"),
            "file not found; known names: json, own-calls, as-written, none",
        ),
        (("acme/chat", "--backend", "sglang", "--template", "json"), "sglang reads none of its calls"),
        (("acme/base", *ASK, "--template", "json"), "no chat template of its own"),
        (("acme/chat", *ASK, "--template", "json", "--set", "kind=base"), "a base model neither calls tools"),
        (("acme/rendered", *ASK, "--template", "json"), "renders this model by its own code"),
        (("acme/deaf", *ASK, "--template", "json"), "does not show all that it is given"),
        (("--from", "list.txt", "--template", "json"), "is for one reference"),
    ],
)
def test_what_cannot_be_given_is_told_in_a_sentence(desk: Desk, words: tuple[str, ...], says: str) -> None:
    desk.hub.repos["acme/deaf"] = Repo({**CHAT, "chat_template.jinja": "{{ messages[-1].content }}"})
    rendered = {"model_type": "deepseek_v32", "architectures": ["DeepseekV32ForCausalLM"]}
    desk.hub.repos["acme/rendered"] = Repo({**CHAT, "config.json": rendered})
    ran = desk(*words)
    assert (ran.code, says in ran.err) == (2, True), ran.err
    assert "--template: " in ran.err.splitlines()[0]
    assert not (desk.folder / "models").exists()
