"""Models that an engine renders by its own code: what their template writes is not what the engine writes."""

from __future__ import annotations

from collections.abc import Sequence

from importer.decide.target import Target
from importer.evidence.architecture import architectures
from importer.evidence.fact import Evidence
from importer.evidence.rule import Rule
from importer.hub.snapshot import Snapshot
from importer.proof.reasons import ProofReason
from importer.proof.result import Proof
from importer.reasons import Reason

# vLLM 0.32 ``config/model.py``: architecture to tokenizer mode, for modes that bring a renderer; and the tool
# parsers that belong to these renderers, by which a known family is recognised where no config is at hand.
MODES = {
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV4ForConditionalGeneration": "deepseek_v4",
    "DeepseekV41ForCausalLM": "deepseek_v41",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "InklingForCausalLM": "inkling",
    "InklingForConditionalGeneration": "inkling",
}

BY_FAMILY = (Rule.MODEL_TYPE, Rule.FAMILY_TABLE)


def own_renderer(snapshot: Snapshot, facts: Sequence[Evidence], target: Target) -> str | None:
    """The tokenizer mode in which the engine renders this model itself, or ``None``."""
    if target.backend != "vllm":
        return None
    told = next(
        (f.value for f in facts if f.key == "engine_args.tokenizer_mode" and f.value == "mistral"), None
    )
    by_type = told or next((MODES[a] for a in architectures(snapshot) if a in MODES), None)
    named = (f.value for f in facts if f.key == "tool_parser" and f.rule in BY_FAMILY)
    return by_type or next((v for v in named if v in MODES.values()), None)


def rendered_by(mode: str, target: Target) -> Reason:
    """Why a template proves nothing for this model."""
    return Reason(ProofReason.OWN_RENDERER, engine=target.backend, mode=mode)


def unproved(reason: Reason, target: Target, template: str) -> Proof:
    """A proof that asked nobody, and says why."""
    unasked = dict.fromkeys(("tool_parser", "reasoning_parser"), reason)
    return Proof(target.backend, str(target.version), template, {}, {}, unasked)
