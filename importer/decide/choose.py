"""All decisions at once: every key that anybody spoke on, and both parsers."""

from __future__ import annotations

from collections.abc import Sequence

from importer.decide.decision import Decision
from importer.decide.parsers import decide_parser
from importer.decide.settings import by_user, decide_setting
from importer.decide.target import Preferences, Target
from importer.evidence.fact import Evidence

PARSERS = ("tool_parser", "reasoning_parser")


def decide(evidence: Sequence[Evidence], preferences: Preferences, target: Target) -> dict[str, Decision]:
    """One decision per key that anybody spoke on; both parsers always, spoken on or not."""
    decisions: dict[str, Decision] = {}
    keys = dict.fromkeys(e.key for e in evidence if e.key not in PARSERS)
    for key in keys:
        facts = [e for e in evidence if e.key == key]
        decisions[key] = decide_setting(key, facts, preferences)
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    for key in PARSERS:
        facts = [e for e in evidence if e.key == key]
        decisions[key] = decide_parser(key, facts, preferences, target, str(kind))
    for key, value in preferences.values.items():
        if key not in decisions:
            decisions[key] = by_user(value)
    return decisions
