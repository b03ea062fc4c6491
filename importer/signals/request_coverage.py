"""Evidence on the way in: whether tools reach the prompt, what requests lose, and what would help."""

from __future__ import annotations

from dataclasses import replace

from importer.chat_template import offers
from importer.chat_template.request_coverage.findings import KEY, VARIABLES
from importer.chat_template.study import TemplateAnalysis
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.reasons import WayInReason


def evidence(analysis: TemplateAnalysis | None, source: str | None = None) -> list[Evidence]:
    """Return what requests lose, and the variables that clients may set; none without a template.

    ``source`` names a template that is not the model's own.
    """
    if analysis is None or analysis.way_in is None:
        return []
    way_in = analysis.way_in
    value = way_in.to_json()
    one_call = next((s for s in analysis.samples if s.case == "one-call"), None)
    if way_in.tools != "shown" and one_call is not None:
        value |= {"shape": offers.shape_of(one_call)}
    reason = Reason(WayInReason.CHECKED, checked=way_in.checked, findings=len(way_in.findings))
    place = source or Source.TEMPLATE
    facts = [Evidence(Rule.TEMPLATE_RENDERED, KEY, value, place, reason)]
    variables = {one.name: {"values": [*one.values], "default": one.default} for one in analysis.variables}
    if variables:
        named = Reason(WayInReason.VARIABLES, names=tuple(variables))
        facts.append(Evidence(Rule.TEMPLATE_RENDERED, VARIABLES, variables, place, named))
    return facts


def for_engine(fact: Evidence, engine: str) -> Evidence:
    """Return the fact with the templates that the engine ships for a model of this form."""
    if fact.key != KEY or "shape" not in fact.value:
        return fact
    value = {name: held for name, held in fact.value.items() if name != "shape"}
    files = [one.path for one in offers.fitting(engine, fact.value["shape"])]
    found = {"shipped": files, "shipped_in": offers.release(engine)} if files else {}
    return replace(fact, value=value | found)
