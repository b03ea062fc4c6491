"""The registry of templates that vLLM ships."""

from __future__ import annotations

import hashlib
import json

import pytest

from gen_defaults import shipped
from importer.chat_template.render import Renderer
from importer.wheels.index import IndexFailure, Release
from tests import template_texts as texts
from tests.coverage_faults import JSON, SOUND

pytestmark = pytest.mark.slow  # the makers of tables

HIDES = SOUND.replace("{%- if tools -%}", "{%- if false -%}")
RELEASE = Release("vllm", "9.9", "vllm-9.9.tar.gz", "https://x.example/vllm-9.9.tar.gz", "0" * 64)


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
