"""All decisions at once: every key with evidence, and both parsers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from importer.chat_template.samples import Thinking
from importer.decisions import way_in
from importer.decisions.decision import Chosen, Decision, Preferences, Target
from importer.decisions.parsers import decide_parser
from importer.decisions.precedence import by_user, decide_setting
from importer.decisions.sampling import decide_sampling, is_sampling
from importer.reasons import Reason
from importer.signals.evidence import Evidence

PARSERS = ("tool_parser", "reasoning_parser")


class PinReason(StrEnum):
    """Reasons for template variables in a document."""

    NO_THOUGHT_BY_DEFAULT = "thought-unsaid"


def decide(
    evidence: Sequence[Evidence],
    preferences: Preferences,
    target: Target,
    thinking: Thinking | None = None,
    pins: Callable[[Any], bool] | None = None,
) -> dict[str, Decision]:
    """Return one decision for each key with evidence, and always for both parsers.

    ``pins`` is ``Proof.pins``: whether a reasoning parser reads an answer without reasoning only if the
    request switches reasoning off.
    """
    decisions: dict[str, Decision] = {}
    keys = dict.fromkeys(e.key for e in evidence if e.key not in PARSERS)
    for key in (k for k in keys if not is_sampling(k)):
        facts = [e for e in evidence if e.key == key]
        decisions[key] = decide_setting(key, facts, preferences)
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    for key in PARSERS:
        facts = [e for e in evidence if e.key == key]
        decisions[key] = decide_parser(key, facts, preferences, target, str(kind))
    decisions = way_in.apply(decisions, evidence, target)
    for key, value in preferences.values.items():
        if key not in decisions:
            decisions[key] = by_user(value)
    if thinking is not None and pins is not None and pins(decisions["reasoning_parser"].value):
        decisions.setdefault("chat_template_kwargs", _pinned(thinking, decisions["reasoning_parser"]))
    sampling = decide_sampling(evidence, preferences, target, decisions, thinking)
    parsers = {key: decisions.pop(key) for key in PARSERS}
    return decisions | sampling | parsers


def _pinned(thinking: Thinking, parser: Decision) -> Decision:
    """Return the variables that switch reasoning off, so template and parser have the same default."""
    reason = Reason(PinReason.NO_THOUGHT_BY_DEFAULT, parser=parser.value)
    return Chosen(dict(thinking.off or {}), "proved", (reason,))
