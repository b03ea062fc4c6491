"""What the compared prompts say about a document: the form of contents, warnings, and weaker proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from importer.decisions.decision import RUST, Chosen, Decision, PromptVerdict, Target
from importer.hub.snapshot import Snapshot
from importer.proof.prompt_result import (
    AUTO,
    LOSSES,
    FormatOutcome,
    FrontendPrompts,
    PromptCase,
    PromptDifference,
)
from importer.proof.result import ProofReason
from importer.reasons import Reason
from importer.signals.architecture import MODES, architectures, model_types
from importer.signals.evidence import Evidence, Rule, warning

FORMAT = "engine_args.chat_template_content_format"


KEY = "prompts"


# The conversations that a parser's proof continues: what the model reads before it writes.
BEFORE: Mapping[str, tuple[PromptCase, ...]] = {
    "tool_parser": (PromptCase.TOOLS, PromptCase.CALL, PromptCase.RESULTS, PromptCase.NESTED),
    "reasoning_parser": (PromptCase.PLAIN, PromptCase.SYSTEM, PromptCase.TURNS),
}


GRAVE = (*LOSSES, PromptDifference.OTHER)


# ``renderers/online_renderer.py``: a model type, rendered by the library openai-harmony in any mode.
HARMONY = {"gpt_oss": "harmony"}


BY_FAMILY = (Rule.MODEL_TYPE, Rule.FAMILY_TABLE)


def own_renderer(snapshot: Snapshot, facts: Sequence[Evidence], target: Target) -> str | None:
    """Return the engine's own renderer for this model, a tokenizer mode or ``harmony``; else ``None``."""
    if target.backend != "vllm":
        return None
    mistral = next(
        (f.value for f in facts if f.key == "engine_args.tokenizer_mode" and f.value == "mistral"), None
    )
    by_type = mistral or next((MODES[a] for a in architectures(snapshot) if a in MODES), None)
    named = (f.value for f in facts if f.key == "tool_parser" and f.rule in BY_FAMILY)
    by_type = by_type or next((HARMONY[t] for t in model_types(snapshot) if t in HARMONY), None)
    return by_type or next((v for v in named if v in MODES.values()), None)


def rendered_by(mode: str, target: Target) -> Reason:
    """Return the reason why a template proves nothing for a model with the engine's own renderer."""
    return Reason(ProofReason.OWN_RENDERER, engine=target.backend, mode=mode)


def evidence_of(prompts: Sequence[FrontendPrompts], target: Target) -> list[Evidence]:
    """Return the form of contents where the engine's own choice is worse, and a fact about differences."""
    served = serving(prompts, target)
    if served is None:
        return []
    source = f"{served.frontend} {served.version}".strip()
    if served.failed is not None:
        return [Evidence(Rule.PROMPTS, KEY, None, source, _failed(served.failed))]
    facts = []
    chosen, own = served.chosen, next(iter(served.outcomes.values()))
    if served.best != AUTO:
        reason = Reason(
            PromptVerdict.FORMAT, engine=source, form=served.best, equal=chosen.equal, of=chosen.of,
            lost=len(own.losses),
        )  # fmt: skip
        facts.append(Evidence(Rule.PROMPTS, FORMAT, served.best, source, reason))
    if chosen.findings:
        value = {"equal": chosen.equal, "of": chosen.of, "lost": len(chosen.losses)}
        facts.append(Evidence(Rule.PROMPTS, KEY, value, source, _differing(chosen, source)))
    return facts


def serving(prompts: Sequence[FrontendPrompts], target: Target) -> FrontendPrompts | None:
    """Return the prompts of the frontend that serves the document, where it was asked."""
    name = f"{target.backend}-{RUST}" if target.frontend == RUST else target.backend
    return next((one for one in prompts if one.frontend == name), None)


def _failed(reason: Reason) -> Reason:
    return reason if reason.kind is PromptVerdict.OWN_CODE else warning(reason)


def _differing(outcome: FormatOutcome, engine: str) -> Reason:
    order = [*PromptDifference]
    first = min(outcome.findings, key=lambda f: order.index(PromptDifference(f.kind)))
    if not outcome.losses:
        return Reason(PromptVerdict.DIFFER, engine=engine, equal=outcome.equal, of=outcome.of, first=first)
    return warning(
        Reason(PromptVerdict.LOST, engine=engine, count=len(outcome.losses), of=outcome.of, first=first)
    )


def downgraded(
    decisions: Mapping[str, Decision], prompts: Sequence[FrontendPrompts], target: Target
) -> dict[str, Decision]:
    """Return the decisions; a parser proved behind a prompt that the engine writes otherwise is declared."""
    served = serving(prompts, target)
    found = () if served is None else served.chosen.findings
    changed = dict(decisions)
    for key, cases in BEFORE.items():
        decision = decisions.get(key)
        grave = next((f for f in found if f.kind in GRAVE and f.fields["case"] in cases), None)
        if served is None or grave is None or not isinstance(decision, Chosen) or decision.status != "proved":
            continue
        why = Reason(PromptVerdict.OTHER_PROMPT, engine=served.frontend, first=grave)
        changed[key] = replace(decision, status="declared", why=(why, *decision.why))
    return changed
