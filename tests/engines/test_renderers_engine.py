"""Prompts as the real servers render them, without weights: vLLM's two frontends, mlx-lm and mlx-vlm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from importer.chat_template.analyze import analyze
from importer.chat_template.find import Template
from importer.chat_template.render import Renderer
from importer.chat_template.vocabulary import Token, Vocabulary
from importer.engines import get, install
from importer.engines.install import Installed
from importer.engines.parsers import ParserWorker
from importer.engines.rust_renderer import RustRenderer, program
from importer.engines.tokens import Tokens
from importer.proof.prompts import Frontend, Ours, compare
from importer.proof.result import FrontendPrompts
from importer.proof.tokens import rendering_tokens
from tests import template_texts as texts

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("parsers")]

WORDS = Vocabulary(
    (Token("<|im_start|>", True), Token("<|im_end|>", True)), ("tokenizer_config.json",), True,
    {"eos_token": "<|im_end|>", "bos_token": "<s>"},
)  # fmt: skip
# Loops over the parts of contents under a name that vLLM's detection does not follow.
PARTS = """{{ bos_token }}
{%- for m in messages %}
{%- set said = m.content %}
{{- '<' + m.role + '>' }}{% for part in said %}{{ part.text }}{% endfor %}{{ '</' + m.role + '>' }}
{%- endfor %}"""
# A loop over the user's parts, and a result that is printed as it comes.
USER_PARTS = """
{%- for m in messages %}
{%- if m.role == 'tool' %}{{- '<result>' + (m.content if m.content is string else m.content | tojson) }}
{%- elif m.content is string %}{{- '<' + m.role + '>' + m.content }}
{%- else %}{{- '<' + m.role + '>' }}{% for part in m.content %}{{ part.text }}{% endfor %}
{%- endif %}
{%- for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}
{%- endfor %}"""
IMAGES = """
{%- for m in messages %}
{{- '<' + m.role + '>' }}
{%- if m.content is string %}{{- m.content }}{% else %}
{%- for part in m.content %}{{- part.text if part.type == 'text' else '<image>' }}{% endfor %}
{%- endif %}
{%- endfor %}"""
TEXT_ARGUMENTS = texts.OFFER + texts.TURNS.replace(
    "CALL", "{{- '<call>' + c.function.name + ' ' + c.function.arguments + '</call>' }}"
)


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer() as renderer:
        yield renderer


@pytest.fixture(scope="module")
def python(vllm_parsers: Installed) -> Iterator[ParserWorker]:
    with ParserWorker("vllm", vllm_parsers.python) as worker:
        yield worker


@pytest.fixture(scope="module")
def rust() -> RustRenderer:
    found = install.find(get("vllm-cuda"))
    path = program(None if found is None else found.python)
    if path is None:
        pytest.skip("no vllm-rs: it is in each wheel of vLLM from 0.33 on; IMPORTER_VLLM_RS names one")
    return RustRenderer(path)


@pytest.fixture(scope="module")
def mlx(mlx_engine: Installed) -> Iterator[ParserWorker]:
    with ParserWorker("mlx", mlx_engine.python) as worker:
        yield worker


@pytest.fixture(scope="module")
def mlx_vlm(mlx_vlm_engine: Installed) -> Iterator[ParserWorker]:
    with ParserWorker("mlx-vlm", mlx_vlm_engine.python) as worker:
        yield worker


def prompts(engine: Frontend, renderer: Renderer, text: str, *, images: bool = False) -> FrontendPrompts:
    template = Template(text, "chat_template.jinja")
    tokens = rendering_tokens(Tokens(chat_template=text, model_type="qwen3"), template, WORDS)
    ours = Ours(template, WORDS, renderer, analyze(template, WORDS, renderer), images)
    return compare(ours, tokens, engine)


def kinds(found: FrontendPrompts, form: str = "auto") -> set[str]:
    return {f.kind.value for f in found.outcomes[form].findings}


@pytest.mark.parametrize("engine", ["python", "rust", "mlx"])
def test_plain_templates_are_rendered_as_transformers_does(
    engine: str, renderer: Renderer, request: pytest.FixtureRequest
) -> None:
    frontend = request.getfixturevalue(engine)
    for text in (texts.CHATML_JSON, texts.XML_PARAMETERS):
        found = prompts(frontend, renderer, text)
        assert found.outcomes["auto"].findings == ()
        assert found.outcomes["auto"].of == 11
        assert found.version


def test_mlx_vlm_sorts_the_keys_of_tools(mlx_vlm: ParserWorker, renderer: Renderer) -> None:
    found = prompts(mlx_vlm, renderer, texts.CHATML_JSON)
    assert kinds(found) == {"form"}
    assert found.outcomes["auto"].losses == ()


@pytest.mark.parametrize("engine", ["mlx", "mlx_vlm"])
def test_mlx_switches_thinking_off_by_itself(
    engine: str, renderer: Renderer, request: pytest.FixtureRequest
) -> None:
    """A vocabulary without thinking markers, and any in mlx-vlm: the variable is false unless requested."""
    found = prompts(request.getfixturevalue(engine), renderer, texts.OFFER + texts.SWITCHED)
    assert "switched" in kinds(found)


def test_vllm_loses_contents_in_parts_and_openai_keeps_them(python: ParserWorker, renderer: Renderer) -> None:
    found = prompts(python, renderer, PARTS)
    assert (found.outcomes["auto"].applied, found.best) == ("string", "openai")
    assert len(found.outcomes["auto"].losses) == 11
    assert {f.fields["place"] for f in found.chosen.losses} == {"tool.content"}  # text in every form


def test_an_image_keeps_its_place_in_parts_alone(python: ParserWorker, renderer: Renderer) -> None:
    """As text, vLLM puts the images of a turn before its words."""
    found = prompts(python, renderer, IMAGES, images=True)
    assert found.outcomes["auto"].of == 12
    (moved,) = (f for f in found.outcomes["string"].findings if f.fields["case"] == "image")
    assert (moved.kind.value, moved.fields["place"]) == ("moved", "user.content")
    assert "moved" not in kinds(found, "openai")
    unseen = prompts(python, renderer, IMAGES)
    assert (unseen.unseen, unseen.best) == (True, "auto")


def test_each_template_is_detected_by_itself(python: ParserWorker, renderer: Renderer) -> None:
    """vLLM keeps the detected form by the name of the model; here every template has the same name."""
    assert prompts(python, renderer, texts.CHATML_JSON).outcomes["auto"].applied == "string"
    assert prompts(python, renderer, USER_PARTS).outcomes["auto"].applied == "openai"
    assert prompts(python, renderer, texts.CHATML_JSON).outcomes["auto"].applied == "string"


def test_arguments_are_objects_for_a_template_that_concatenates_text(
    python: ParserWorker, renderer: Renderer
) -> None:
    found = prompts(python, renderer, TEXT_ARGUMENTS)
    assert kinds(found) == {"refused"}
    assert {"call", "results"} <= {f.fields["case"] for f in found.outcomes["auto"].losses}


def test_the_rust_frontend_prints_the_parts_of_a_result(rust: RustRenderer, renderer: Renderer) -> None:
    found = prompts(rust, renderer, USER_PARTS)
    assert "parts-printed" in kinds(found)
    assert found.best == "string"
    assert found.outcomes["string"].findings == ()


def test_the_rust_frontend_refuses_a_list_of_templates(rust: RustRenderer, renderer: Renderer) -> None:
    template = Template(texts.CHATML_JSON, "tokenizer_config.json", plain=texts.XML_PARAMETERS)
    settings = {"chat_template": [{"name": "default", "template": "x"}]}
    tokens = rendering_tokens(Tokens(settings=settings), template, WORDS)
    found = compare(Ours(template, WORDS, renderer, analyze(template, WORDS, renderer)), tokens, rust)
    assert found.failed is not None
    assert "expected a string" in str(found.failed.fields["problem"])
