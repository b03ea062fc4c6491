"""Templates with which hidden tools reach the prompt: others of the repository's set, then one of ours."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from importer.chat_template import tool_calls
from importer.chat_template.conventions import OWN_CALLS, wrap
from importer.chat_template.find import REPOSITORY, Template
from importer.chat_template.probe import TemplateProbe
from importer.chat_template.render import Renders
from importer.chat_template.request_coverage.check import check
from importer.chat_template.samples import Thinking
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import UsageError


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
    found = []
    for name, text in others.items():
        probe = TemplateProbe(Template(text, name, name), vocabulary, renderer)
        tool_calls.find_form(probe)
        if check(probe, Thinking()).tools == "shown":
            found.append(REPOSITORY + name)
    with suppress(UsageError):
        wrap.offer_own_calls(template, vocabulary, renderer)
        found.append(OWN_CALLS)
    return replace(analysis, request_coverage=replace(request_coverage, offers=tuple(found)))
