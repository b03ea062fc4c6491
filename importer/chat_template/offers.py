"""Templates with which hidden tools reach the prompt: others of the repository's set, then one of ours.

Templates that an engine ships for models whose own template hides the tools: a generated registry.

The registry holds names, hashes and the form of a call, never a template's text: the user has the file from
the engine's image or its released sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from importer import config
from importer.chat_template import tool_calls
from importer.chat_template.cases import QUESTION
from importer.chat_template.conventions import wrap
from importer.chat_template.find import REPOSITORY, Template
from importer.chat_template.markers import last_marker
from importer.chat_template.probe import TemplateProbe
from importer.chat_template.render import Renders
from importer.chat_template.request_coverage.check import check
from importer.chat_template.samples import Sample, Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import UsageError
from importer.frozen import frozen


def with_offers(
    analysis: TemplateAnalysis,
    template: Template,
    named: Mapping[str, str],
    vocabulary: Vocabulary,
    renderer: Renders,
) -> TemplateAnalysis:
    """Return the analysis with the values of the option that would show its tools, the best first.

    ``named`` holds the texts of the repository's set by name.
    """
    request_coverage = analysis.request_coverage
    if request_coverage is None or request_coverage.tools == "shown" or not analysis.samples:
        return analysis
    others = {name: text for name, text in named.items() if text != template.text}
    found = [*_repository(others, vocabulary, renderer), *_ours(template, vocabulary, renderer)]
    return replace(analysis, request_coverage=replace(request_coverage, offers=tuple(found)))


def _repository(named: Mapping[str, str], vocabulary: Vocabulary, renderer: Renders) -> Iterator[str]:
    for name, text in named.items():
        probe = TemplateProbe(Template(text, name, name), vocabulary, renderer)
        tool_calls.find_form(probe)
        if check(probe, Thinking()).tools == "shown":
            yield REPOSITORY + name


def _ours(template: Template, vocabulary: Vocabulary, renderer: Renders) -> Iterator[str]:
    try:
        wrap.offer_own_calls(template, vocabulary, renderer)
    except UsageError:
        return
    yield wrap.OWN_CALLS


FILE = "shipped_templates.json"  # written by ``python -m gen_defaults shipped``


@frozen
class Shipped:
    """A template of an engine's release.

    ``path``     in the released sources; ``sha256`` of its bytes, hexadecimal.
    ``opening``  the marker before a question; ``call`` the text of the one call, without white space.
    """

    path: str
    sha256: str
    opening: str
    call: str

    def fits(self, shape: Mapping[str, str]) -> bool:
        """Return whether a model's own template writes questions and calls alike.

        Older templates leave out the marker that closes a list of calls.
        """
        call = shape["call"]
        alike = self.call.startswith(call) or call.startswith(self.call)
        return bool(call) and alike and self.opening == shape["opening"]


def shape_of(one_call: Sample) -> dict[str, str]:
    """Return the marker before the question of a sample, and its call without white space."""
    before = one_call.prompt.rpartition(QUESTION)[0]
    call = "".join(one_call.completion[one_call.lead :].split())
    return {"opening": last_marker(before).strip(), "call": call}


@cache
def registry() -> Mapping[str, Any]:
    """Return the registry's data, engine by engine."""
    text = config.data(FILE).read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def release(engine: str) -> str:
    """Return the file of the sources that hold the engine's templates; empty without any."""
    return str(registry().get(engine, {}).get("source", {}).get("file", ""))


def fitting(engine: str, shape: Mapping[str, str]) -> tuple[Shipped, ...]:
    """Return the templates of an engine's release that write calls as a model's own template does."""
    listed = registry().get(engine, {}).get("templates", ())
    return tuple(one for row in listed if (one := Shipped(**row)).fits(shape))
