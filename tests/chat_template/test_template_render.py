"""The worker: renders as transformers does, and nothing a template does gets past its limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from importer.chat_template.render import Rendered, Renderer, RenderJob, RenderRefused
from importer.chat_template.render_worker import CLOCK
from importer.sentences import render

ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
ASK = RenderJob([{"role": "user", "content": "Zürich <b> & 'x'"}])


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(cpu_seconds=0.4) as warm:
        yield warm


def text(renderer: Renderer, template: str, **kwargs: Any) -> str:
    result = renderer.render(template, [RenderJob(ASK.messages, kwargs=kwargs)]).results[0]
    assert isinstance(result, Rendered), result
    return result.text


def refusal(renderer: Renderer, template: str) -> RenderRefused:
    result = renderer.render(template, [ASK]).results[0]
    assert isinstance(result, RenderRefused), result.text[:100]
    return result


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ messages[0] | tojson }}", '{"role": "user", "content": "Zürich <b> & \'x\'"}'),
        ("{{ {'b': 1, 'a': [1]} | tojson(indent=1, sort_keys=true) }}", '{\n "a": [\n  1\n ],\n "b": 1\n}'),
        ("{{ {'a': 1} | tojson(separators=(',', ':')) }}", '{"a":1}'),
        ("{{ 'é' | tojson(ensure_ascii=true) }}", '"\\u00e9"'),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("a{% generation %}b{{ messages | length }}{% endgeneration %}c", "ab1c"),
        ("{{ strftime_now('%Y-%m-%d') }}", CLOCK.strftime("%Y-%m-%d")),
        ("{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}", "TrueTrueFalse"),
        ("{{ missing }}.{{ missing is defined }}", ".False"),
    ],
)
def test_renders_as_transformers_does(renderer: Renderer, template: str, expected: str) -> None:
    assert text(renderer, template) == expected


def test_variables_and_kwargs(renderer: Renderer) -> None:
    jobs = [
        ASK,
        RenderJob(
            ASK.messages, [{"type": "function"}], add_generation_prompt=True, kwargs={"bos_token": "K"}
        ),
    ]
    template = "{{ bos_token }}{{ tools | tojson }}{{ add_generation_prompt }}"
    results = renderer.render(template, jobs, {"bos_token": "B"}).results
    assert results == (Rendered("BnullFalse"), Rendered('K[{"type": "function"}]True'))


def test_open_variables_are_told_with_their_values(renderer: Renderer) -> None:
    template = (
        "{% set kept = 1 %}{% if effort in ['low', 'high'] %}{% endif %}{{ kept }}"
        "{% set mode = mode | default('x') %}{% if level is defined %}{% set level = 2 %}{% endif %}"
        "{% set copy = amount if amount is defined else 3 %}{% if copy == 4 %}{% endif %}"
        "{{ loop }}{{ range(1) }}"
    )
    variables = renderer.render(template, [ASK]).variables
    assert dict(variables) == {"amount": [4], "effort": ["low", "high"], "level": [], "mode": []}


@pytest.mark.parametrize(
    ("template", "kind", "words"),
    [
        ("{% if %}", "syntax", "Expected"),
        ("{{ x | nosuchfilter }}", "syntax", "nosuchfilter"),
        ("{{ messages[0].content + 1 }}", "refused", "str"),
        ("{{ missing.field }}", "refused", "undefined"),
        ("{{ messages.append(1) }}", "refused", "unsafe"),
        # ways out of the sandbox
        ("{{ ''.__class__.__mro__ }}", "refused", "unsafe"),
        ("{{ messages.__class__.__subclasses__() }}", "refused", "unsafe"),
        ("{{ raise_exception.__globals__.os }}", "refused", "unsafe"),
        ("{{ strftime_now.__code__.co_code }}", "refused", "unsafe"),
        ("{{ cycler.__init__.__globals__.os }}", "refused", "unsafe"),
        ("{{ ('{0.__cl' ~ 'ass__.__mro__}').format(1) }}", "refused", "unsafe"),
        ("{{ (messages | map(attribute='__class__') | list)[0].mro() }}", "refused", ""),
        # other files
        ("{% include 'x' %}", "refused", "no loader"),
        ("{% import '/etc/passwd' as x %}", "refused", "no loader"),
        ("{% extends 'base' %}", "refused", "no loader"),
        # bombs
        ("{{ 'a' * 10**9 }}", "refused", "too long"),
        ("{{ [0] * 10**9 }}", "refused", "too long"),
        ("{{ 10 ** (10 ** 9) }}", "refused", "power"),
        ("{{ range(10**9) | list }}", "refused", "Range too big"),
        (ENDLESS, "limit", "processor time"),
        ("{% for i in range(99999) %}{{ 'x' * 20000 }}{% endfor %}", "limit", "characters"),
        ("{{ lipsum(n=90000) }}", "limit", "time"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "limit", "recursion"),
        ("{{ '%900000000d' | format(1) }}", "memory", "memory"),
        ("{{ 'x'.ljust(9000000000) }}", "memory", "memory"),
        ("{{ '(' * 3000 }}" + "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "syntax", ""),
    ],
)  # fmt: skip
def test_hostile_templates_are_refused_with_a_reason(
    renderer: Renderer, template: str, kind: str, words: str
) -> None:
    refused = refusal(renderer, template)
    assert (refused.kind, words in render(refused.reason)) == (kind, True), refused
    assert text(renderer, "still here") == "still here"


@pytest.mark.slow
def test_doubling_ends_at_some_limit(renderer: Renderer) -> None:
    template = (
        "{% set n = namespace(s='x' * 900000) %}{% for i in range(40) %}{% set n.s = n.s ~ n.s %}{% endfor %}"
    )
    assert refusal(renderer, template).kind in {"limit", "memory"}  # whichever this machine meets first


def test_lone_surrogates_and_long_requests_pass(renderer: Renderer) -> None:
    job = RenderJob([{"role": "user", "content": "\ud83d" + "x" * 90_000}])
    result = renderer.render("{{ messages[0].content }}", [job] * 3).results[2]
    assert isinstance(result, Rendered)
    assert len(result.text) == 90_001


def test_a_mutable_sandbox_only_on_request(renderer: Renderer) -> None:
    template = "{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}"
    assert isinstance(renderer.render(template, [ASK]).results[0], RenderRefused)
    assert renderer.render(template, [ASK], mutable=True).results[0] == Rendered("[1, 2]")
    escape = renderer.render("{{ [].append.__self__.__class__.__mro__ }}", [ASK], mutable=True).results[0]
    assert isinstance(escape, RenderRefused)
