"""All decisions at once: every key with evidence, and both parsers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from importer.chat_template.samples import Thinking
from importer.decisions import request_coverage
from importer.decisions.decision import Chosen, Decision, Preferences, Target, by_user, decide_setting
from importer.decisions.frontends import settle, settle_derived
from importer.decisions.parsers import decide_parser
from importer.decisions.sampling import decide_sampling, is_sampling
from importer.reasons import Reason, ReasonKind
from importer.signals.evidence import Evidence

PARSERS = ("tool_parser", "reasoning_parser")


class PinReason(ReasonKind):
    """Reasons for template variables in a document."""

    DEFAULT_UNSAID = (
        (
            "{parser} reads every answer only where the template's own default is named, so the document "
            "names it"
        ),
        "template's default",
    )


def decide(
    evidence: Sequence[Evidence],
    preferences: Preferences,
    target: Target,
    thinking: Thinking | None = None,
    setting: Callable[[Any], Mapping[str, object] | None] | None = None,
) -> dict[str, Decision]:
    """Return one decision for each key with evidence, and always for both parsers.

    ``setting`` is ``Proof.setting``: the template's variables under which a reasoning parser reads every
    answer, where it does not without them.
    """
    decisions: dict[str, Decision] = {}
    keys = dict.fromkeys(e.key for e in evidence if e.key not in PARSERS)
    for key in (k for k in keys if not is_sampling(k)):
        facts = [e for e in evidence if e.key == key]
        decisions[key] = decide_setting(key, facts, preferences)
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    for key in PARSERS:
        facts = [e for e in evidence if e.key == key]
        tool = decisions["tool_parser"].value if key != "tool_parser" else None
        decisions[key] = decide_parser(key, facts, preferences, target, str(kind), thinking, tool)
    together = settle_derived({key: decisions[key] for key in PARSERS}, evidence, target)
    decisions |= settle(together, target)
    decisions = request_coverage.switches(request_coverage.apply(decisions, evidence, target), evidence)
    for key, value in preferences.values.items():
        if key not in decisions:
            decisions[key] = by_user(value)
    kwargs = None if setting is None else setting(decisions["reasoning_parser"].value)
    if kwargs:
        reason = Reason(PinReason.DEFAULT_UNSAID, parser=decisions["reasoning_parser"].value)
        decisions.setdefault("chat_template_kwargs", Chosen(dict(kwargs), "proved", (reason,)))
    sampling = decide_sampling(evidence, preferences, target, decisions, thinking)
    parsers = {key: decisions.pop(key) for key in PARSERS}
    return decisions | sampling | parsers
