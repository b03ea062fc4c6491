"""A template beside the document: pinned by its hash, served by every engine, carried by exports."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.app.local_evidence import rendering
from importer.chat_template.find import Template
from importer.demo import MODEL
from importer.document import template_file
from importer.document.document_keys import digest
from importer.document.store import load
from importer.document.template_file import ChatTemplate
from importer.engines.base import Address
from importer.engines.mlx import LONGEST, Mlx
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.model_folder import dressed
from importer.engines.vllm import VllmCpu
from importer.errors import DocumentError
from importer.exports import FORMATS
from importer.exports.base import Options
from importer.sentences import render
from importer.validation.prompts import GREETING
from tests.commandline import Desk
from tests.templating import ASK, FILE, beside, imported, with_entry

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "file",
    ["../../etc/passwd", "../x.chat_template.jinja", ".chat_template.jinja", "chat.yaml",
     "a/b.chat_template.jinja", "[chat.chat_template.jinja]", "--x.chat_template.jinja"],
)  # fmt: skip
def test_a_document_edited_to_point_elsewhere_is_refused(desk: Desk, file: str) -> None:
    path = with_entry(desk, file=file)
    for words in (("validate", "chat"), ("review", "chat", "--approve"), ("export", "chat", "vllm-command")):
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
    assert f"{FILE} cannot be read (it is not a plain file)" in says()
    beside(desk).symlink_to(secret)
    assert "it is not a plain file" in says()
    beside(desk).unlink()
    beside(desk).mkdir()
    assert "it is not a plain file" in says()


def test_a_template_edited_by_hand_is_not_overwritten(desk: Desk) -> None:
    imported(desk, "--template", "json")
    beside(desk).write_text("my own words")
    before = desk.files()
    ran = desk("acme/chat", *ASK, "--template", "json")
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
    "options": ["tool_parser:hermes"],
    "importer": {
        "schema": 1, "reference": "acme/m", "engine": {"name": "vllm", "version": "0.32.0"},
        "model_id": "acme/m", "revision": "0" * 40,
        "chat_template": template_file.entry("json", "m", TEMPLATE.text),
    },
}  # fmt: skip


def test_vllm_gets_the_template_in_its_own_folder() -> None:
    launch = VllmCpu().launch(DOCUMENT, Path("/w"), 1, TEMPLATE)
    words = launch.arguments
    assert "--chat-template=./chat_template.jinja" in words
    assert launch.files["chat_template.jinja"] == TEMPLATE.text


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


def texts(value: object) -> Iterator[str]:
    """Yield every text in parsed YAML, those within a text of JSON included."""
    if isinstance(value, str):
        yield value
        if value.startswith("{"):
            yield from texts(json.loads(value))
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_carries_the_template_or_says_that_it_cannot(name: str) -> None:
    on = next((engine for engine in ("mlx-vlm", "vllm-mlx", "mlx", "sglang") if engine in name), "vllm")
    document = {**DOCUMENT, "backend": on}
    if on.startswith("mlx"):
        document["options"] = ["tool_parser:json_tools"]
    before, options = digest(document), Options(template=TEMPLATE)
    if name in (
        "kserve",
        "llm-d",
        "ray-serve",
        "gpustack",
        "kubeai",
        "mlx-vlm-command",
        "vllm-mlx-command",
        "vllm-recipe",
    ):
        with pytest.raises(DocumentError, match="template") as refused:
            FORMATS[name].export(document, None, options)
        assert refused.value.kind == "cannot-export"
        return
    made = FORMATS[name].export(document, None, options)
    assert digest(document) == before
    first = next(iter(made.files.values()))
    if name.startswith("localai"):
        assert render(made.lost[0]).startswith("The chat template is not carried over, nor its tools")
    elif name == "mlx-command":
        assert f"--chat-template={TEMPLATE.text}" in shlex.split(first, comments=True)
    elif on == "sglang":
        assert made.files["m.sglang/chat_template.jinja"] == TEMPLATE.text
        assert "chat-template" in first
    elif name in ("kubernetes", "kubernetes-job", "kaito"):  # in a ConfigMap
        assert any(TEMPLATE.text.strip() in text for text in texts(list(yaml.safe_load_all(first))))
    else:
        assert made.files["m.vllm/chat_template.jinja"] == TEMPLATE.text
        assert "chat-template" in first
