"""The commands on request coverage: the table of findings, and the registry of templates that vLLM ships."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from gen_defaults import shipped
from gen_defaults.__main__ import main
from gen_defaults.index import IndexFailure, Release
from importer.chat_template.render import Renderer
from tests import template_texts as texts
from tests.coverage_faults import JSON, SOUND

pytestmark = pytest.mark.slow  # the makers of tables

HIDES = SOUND.replace("{%- if tools -%}", "{%- if false -%}")
RELEASE = Release("vllm", "9.9", "vllm-9.9.tar.gz", "https://x.example/vllm-9.9.tar.gz", "0" * 64)


def folder(tmp_path: Path) -> Path:
    for name, text in (("acme__good", SOUND), ("acme__same", SOUND), ("acme__hides", HIDES)):
        place = tmp_path / "repos" / name
        place.mkdir(parents=True)
        (place / "chat_template.jinja").write_text(text)
    (tmp_path / "repos" / "acme__none").mkdir()
    return tmp_path


def test_the_table_counts_models_and_templates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["request-coverage", str(folder(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert "| error | tools-lost |  | 1 | 1 | acme/hides |" in out
    assert "models: 3, templates: 2" in out
    assert "tools: lost 1, shown 2" in out
    assert "tools shown, no finding at all: 2 models, 1 templates" in out


def test_a_line_for_each_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["request-coverage", str(folder(tmp_path)), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["model"], one["tools"]) for one in lines] == [
        ("acme/good", "shown"), ("acme/hides", "lost"), ("acme/same", "shown"),
    ]  # fmt: skip


def test_a_folder_without_repositories_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["request-coverage", str(tmp_path)]) == 1
    assert "has no folder repos" in capsys.readouterr().err


def test_the_registry_lists_templates_that_show_tools() -> None:
    held = {
        "examples/tool_chat_template_a.jinja": JSON,
        "examples/tool_chat_template_b.jinja": HIDES,
        "examples/tool_chat_template_c.jinja": texts.CHATML,
    }
    assert all(map(shipped.is_needed, held))
    assert not shipped.is_needed("examples/template_chatml.jinja")
    assert not shipped.is_needed("examples/online/tool_chat_template_a.jinja")
    with Renderer() as renderer:
        (row,) = shipped.rows(held, renderer)
    assert row["path"] == "examples/tool_chat_template_a.jinja"
    assert row["sha256"] == hashlib.sha256(JSON.encode()).hexdigest()
    assert row["opening"] == "<|im_start|>user"
    assert row["call"].startswith('<tool_call>{"name":"get_weather"')
    text = shipped.render(RELEASE, [row])
    assert "{%" not in text
    assert json.loads(text)["vllm"]["source"]["file"] == "vllm-9.9.tar.gz"
    with pytest.raises(IndexFailure):
        shipped.render(RELEASE, [])
