"""--template: offered and never applied unasked; a file beside the document, pinned by its hash."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.document import chat_template
from importer.document.chat_template import ChatTemplate
from importer.document.digest import digest
from importer.document.store import load
from importer.engines.base import Address
from importer.engines.dressing import dressed
from importer.engines.mlx import LONGEST, Mlx
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.parser_worker import __file__ as worker_file
from importer.engines.vllm import PLUGIN, VllmCpu
from importer.errors import DocumentError
from importer.exports import FORMATS
from importer.exports.base import Exported, Options, Refused
from importer.run import rendering
from importer.template.ours import PYTHONIC
from importer.template.source import Template
from importer.validation.prompts import GREETING
from tests.commandline import BASE, CHAT, Desk, Ran, desk
from tests.hubserver import Repo
from tests.template_texts import CHATML_JSON, IMAGES

__all__ = ["desk"]
ASK = ("--backend", "vllm", "--no-validate")
FILE = "chat.chat_template.jinja"


def imported(desk: Desk, *words: str) -> Ran:
    ran = desk("acme/chat", *ASK, *words)
    assert ran.code == 0, ran.err
    return ran


def parser(ran: Ran) -> Any:
    return ran.line["decisions"]["tool_parser"]


def beside(desk: Desk) -> Path:
    return desk.folder / "models" / FILE


def test_it_is_offered_and_not_applied_unasked(desk: Desk) -> None:
    ran = imported(desk, "--json")
    offer = "--template pythonic or --template json would offer it tools in words of ours"
    assert parser(ran)["why"][-1] == offer
    assert "chat_template" not in ran.line["document"]["importer"]
    assert not beside(desk).exists()
    assert "would offer it tools" in desk("acme/chat", *ASK, "--dry-run").out
    assert parser(desk("acme/chat", "--backend", "mlx", "--dry-run", "--json"))["why"][-1].startswith(
        "--template json "
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
    [("vllm", "pythonic", PYTHONIC), ("vllm", "json", "hermes"), ("mlx", "json", "json_tools"),
     ("mlx-vlm", "json", "json_tools")],
)  # fmt: skip
def test_with_it_the_parser_is_claimed_and_the_file_lies_beside(
    desk: Desk, backend: str, name: str, chosen: str
) -> None:
    ran = desk("acme/chat", "--backend", backend, "--no-validate", "--template", name, "--json", "--yes")
    assert ran.code == 0, ran.err
    decision = parser(ran)
    assert (decision["value"], decision["status"]) == (chosen, "claimed")
    assert decision["why"][0] == (
        f"read from a chat template of ours ({name}), which shows nothing about the model"
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
    assert (line["status"], "--template pythonic" in line["why"][-1]) == ("none", True)
    ran = desk("google/gemma-3-4b-it", *ASK, "--template", "pythonic", "--dry-run", "--json")
    line = parser(ran)
    assert (line["value"], line["status"]) == (PYTHONIC, "claimed")
    told = next(o for o in line["overruled"] if o["value"] is None)
    assert told["why"].startswith("the user gives it tools with --template; it said: its name says gemma-3")
    assert ran.line["decisions"]["reasoning_parser"]["status"] == "none"


def test_the_users_parser_still_wins(desk: Desk) -> None:
    decision = parser(imported(desk, "--template", "json", "--set", "tool_parser=mistral", "--json"))
    assert (decision["value"], decision["status"]) == ("mistral", "user")
    ran = imported(desk, "--template", "pythonic", "--set", f"tool_parser={PYTHONIC}", "--dry-run", "--json")
    assert parser(ran)["value"] == PYTHONIC
    assert desk("acme/chat", *ASK, "--set", f"tool_parser={PYTHONIC}", "--template", "none").code == 2


def test_another_text_is_another_digest_and_the_file_goes_with_its_document(desk: Desk) -> None:
    def now() -> str:
        return load(desk.folder / "models" / "chat.yaml").digest

    imported(desk)
    plain = now()
    imported(desk, "--template", "pythonic")
    python = now()
    again = desk.files()
    imported(desk, "--template", "pythonic")
    assert desk.files() == again
    imported(desk, "--template", "json")
    assert len({plain, python, now()}) == 3
    assert "first_function" in beside(desk).read_text()
    imported(desk, "--template", "none")
    assert now() == plain
    assert not beside(desk).exists()
    assert desk("recheck").code == 0


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
    ran = desk("acme/chat", *ASK, "--template", "pythonic")
    assert (ran.code, "importer.chat_template.sha256" in ran.err) == (5, True)
    imported(desk, "--template", "pythonic", "--take", "theirs")
    assert "first_function" in beside(desk).read_text()


# A file of the user's


def test_a_file_is_rendered_and_taken_as_it_is(desk: Desk) -> None:
    mine = desk.folder / "mine.jinja"
    mine.write_text(CHATML_JSON)
    ran = imported(desk, "--template", "mine.jinja", "--json")
    decision = parser(ran)
    assert (decision["value"], decision["status"]) == ("hermes", "claimed")
    assert (
        decision["why"][0]
        == "read from a chat template that the user gave, which shows nothing about the model"
    )
    assert beside(desk).read_text() == CHATML_JSON
    assert ran.line["document"]["importer"]["chat_template"]["name"] == "file"
    receipt = json.loads((desk.folder / "models" / "chat.receipt.json").read_text())
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
        pytest.param(
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "took more than",
            marks=pytest.mark.slow,
        ),
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
            ("acme/chat", *ASK, "--template", "pythnic"),
            "there is no such file, and the names are pythonic, json, none",
        ),
        (
            ("acme/chat", "--backend", "mlx", "--template", "pythonic"),
            "mlx reads none of its calls; it reads json",
        ),
        (("acme/base", *ASK, "--template", "json"), "no chat template of its own"),
        (("acme/chat", *ASK, "--template", "json", "--set", "kind=base"), "a base model completes text"),
        (("acme/rendered", *ASK, "--template", "json"), "renders this model by its own code"),
        (("acme/deaf", *ASK, "--template", "json"), "does not show all that it is given"),
        (("--from", "list.txt", "--template", "json"), "it is for one reference"),
    ],
)
def test_what_cannot_be_given_is_told_in_a_sentence(desk: Desk, words: tuple[str, ...], says: str) -> None:
    desk.hub.repos["acme/deaf"] = Repo({**CHAT, "chat_template.jinja": "{{ messages[-1].content }}"})
    rendered = {"model_type": "deepseek_v32", "architectures": ["DeepseekV32ForCausalLM"]}
    desk.hub.repos["acme/rendered"] = Repo({**CHAT, "config.json": rendered})
    ran = desk(*words)
    assert (ran.code, says in ran.err) == (2, True), ran.err
    assert ran.err.startswith("importer: --template")
    assert not (desk.folder / "models").exists()


# The document and its file


def with_entry(desk: Desk, **changes: Any) -> Path:
    """The imported document, its entry changed by hand."""
    imported(desk, "--template", "json")
    path = desk.folder / "models" / "chat.yaml"
    text = path.read_text()
    for key, value in changes.items():
        old = next(line for line in text.splitlines() if line.startswith(f"    {key}: "))
        text = text.replace(old, f"    {key}: {value}")
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "file",
    ["../../etc/passwd", "/etc/passwd", "../x.chat_template.jinja", ".chat_template.jinja", "chat.yaml",
     "a/b.chat_template.jinja", "'x\\n.chat_template.jinja'", "[chat.chat_template.jinja]",
     "--x.chat_template.jinja"],
)  # fmt: skip
def test_a_document_edited_to_point_elsewhere_is_refused(desk: Desk, file: str) -> None:
    path = with_entry(desk, file=file)
    for words in (("validate", "chat"), ("approve", "chat"), ("export", "chat", "vllm-command")):
        ran = desk(*words)
        assert ran.code == 5, ran.err
    with pytest.raises(DocumentError) as caught:
        load(path).chat_template()
    assert caught.value.kind == "chat-template"


def test_only_what_was_hashed_is_ever_served(desk: Desk) -> None:
    path = with_entry(desk)
    whole = beside(desk).read_text()
    secret = desk.folder / "secret"
    secret.write_text(whole)

    def says() -> str:
        with pytest.raises(DocumentError) as caught:
            load(path).chat_template()
        assert desk("validate", "chat").code == 5
        return caught.value.message

    beside(desk).write_text(whole + " ")
    assert "was changed since it was written" in says()
    beside(desk).write_bytes(b"\xff")
    assert "not UTF-8" in says()
    beside(desk).unlink()
    assert f"there is no file {FILE} beside it" in says()
    beside(desk).symlink_to(secret)
    assert "there is no file" in says()
    beside(desk).unlink()
    beside(desk).mkdir()
    assert "there is no file" in says()


def test_a_template_edited_by_hand_is_not_overwritten(desk: Desk) -> None:
    imported(desk, "--template", "json")
    beside(desk).write_text("my own words")
    before = desk.files()
    ran = desk("acme/chat", *ASK, "--template", "pythonic")
    assert (ran.code, FILE in ran.err) == (5, True)
    assert desk.files() == before
    imported(desk, "--template", "none")  # the document no longer names it, and it is not ours to remove
    assert beside(desk).read_text() == "my own words"


def test_a_missing_template_is_written_again(desk: Desk) -> None:
    imported(desk, "--template", "json")
    text = beside(desk).read_text()
    beside(desk).unlink()
    imported(desk, "--template", "json")
    assert beside(desk).read_text() == text


# Engines and exports

TEMPLATE = ChatTemplate(Path("/somewhere/m.chat_template.jinja"), "{{ '-x' }}\n")
DOCUMENT: dict[str, Any] = {
    "name": "m", "backend": "vllm", "parameters": {"model": "acme/m"},
    "options": [f"tool_parser:{PYTHONIC}"],
    "importer": {
        "schema": 1, "reference": "acme/m", "engine": {"name": "vllm", "version": "0.32.0"},
        "model_id": "acme/m", "revision": "0" * 40,
        "chat_template": chat_template.entry("pythonic", "m", TEMPLATE.text),
    },
}  # fmt: skip


def test_vllm_is_given_template_and_plugin_in_its_own_folder() -> None:
    launch = VllmCpu().launch(DOCUMENT, Path("/w"), 1, TEMPLATE)
    words = launch.arguments
    assert "--chat-template=./chat_template.jinja" in words
    assert f"--tool-parser-plugin={PYTHONIC}/{PYTHONIC}.py" in words
    assert f"--tool-call-parser={PYTHONIC}" in words
    assert launch.files["chat_template.jinja"] == TEMPLATE.text
    assert launch.files[f"{PYTHONIC}/{PYTHONIC}.py"] == PLUGIN.read_text()
    assert {Path(name).name for name in launch.files if "/" in name} == {
        p.name for p in PLUGIN.parent.glob("*.py")
    }
    assert Path(worker_file).parent != PLUGIN.parent


def test_mlx_is_given_the_text_and_mlx_vlm_a_dressed_folder(tmp_path: Path) -> None:
    document = {**DOCUMENT, "options": ["tool_parser:json_tools"]}
    words = Mlx().launch(document, Path("/w"), 1, TEMPLATE).arguments
    assert f"--chat-template={TEMPLATE.text}" in words
    with pytest.raises(DocumentError, match="more than 100,000 bytes"):
        Mlx().settings(document, "/w", Address(), ChatTemplate(TEMPLATE.path, "ü" * (LONGEST // 2 + 1)))
    assert not any(
        "template" in word for word in MlxVlm().launch(document, Path("/w"), 1, TEMPLATE).arguments
    )
    assert (Mlx().takes_template, MlxVlm().takes_template) == (True, False)


@pytest.mark.parametrize("engine", [VllmCpu(), Mlx(), MlxVlm()])
def test_no_engine_is_started_without_the_template_that_is_named(engine: Any) -> None:
    with pytest.raises(DocumentError, match="names a template, and none is there"):
        engine.launch({**DOCUMENT, "options": []}, Path("/w"), 1)


def test_a_dressed_folder_has_one_template(tmp_path: Path) -> None:
    model = tmp_path / "model"
    (model / "additional_chat_templates").mkdir(parents=True)
    (model / "additional_chat_templates" / "tool_use.jinja").write_text("old")
    (model / "chat_template.jinja").write_text("old")
    (model / "chat_template.json").write_text('{"chat_template": "old"}')
    (model / "tokenizer_config.json").write_text('{"chat_template": "old", "eos_token": "x"}')
    (model / "processor_config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"weights")
    made = dressed(model, "new", tmp_path / "at" if (tmp_path / "at").mkdir() is None else tmp_path)
    found = {p.name: p.read_text() for p in made.iterdir()}
    assert found == {
        "chat_template.jinja": "new", "tokenizer_config.json": '{"eos_token": "x"}',
        "processor_config.json": "{}", "model.safetensors": "weights",
    }  # fmt: skip
    assert made.name == "model"
    assert (made / "model.safetensors").is_symlink()
    assert (model / "chat_template.jinja").read_text() == "old"


def test_a_validation_reckons_with_the_template_that_is_served(tmp_path: Path) -> None:
    with rendering(MODEL, DOCUMENT, ChatTemplate(TEMPLATE.path, "ours {{ messages[0].content }}")) as render:
        assert (render(GREETING) or "").startswith("ours ")
        assert render.digest == Template("ours {{ messages[0].content }}", "").digest


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_carries_the_template_or_says_that_it_cannot(name: str) -> None:
    on = "mlx-vlm" if "mlx-vlm" in name else "mlx" if "mlx" in name else "vllm"
    document = {**DOCUMENT, "backend": on}
    if on != "vllm":
        document["options"] = ["tool_parser:json_tools"]
    before = digest(document)
    made = FORMATS[name].export(document, None, Options(template=TEMPLATE))
    assert digest(document) == before
    if name in ("kserve", "mlx-vlm-command"):
        assert isinstance(made, Refused)
        assert "template" in made.reason
        return
    assert isinstance(made, Exported)
    first = next(iter(made.files.values()))
    if name.startswith("localai"):
        assert made.lost[0].startswith("The chat template is not carried over, nor its tools")
        assert PYTHONIC not in first
    elif name == "mlx-command":
        assert f"--chat-template={TEMPLATE.text}" in shlex.split(first, comments=True)
    else:
        assert made.files["m.vllm/chat_template.jinja"] == TEMPLATE.text
        assert f"m.vllm/{PYTHONIC}/{PYTHONIC}.py" in made.files
        assert "chat-template" in first
