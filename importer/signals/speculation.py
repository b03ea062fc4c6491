"""Heads for multi-token prediction: whether weights hold them, and whether the engine drafts with them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from importer import backends
from importer.frozen import frozen
from importer.hub.reference import is_id
from importer.hub.snapshot import Snapshot, listed, mapping, text, whole
from importer.reasons import Reason
from importer.signals import quantisation
from importer.signals.architecture import architectures, config_of, model_types, text_config
from importer.signals.comparison import head_tensor, tensors
from importer.signals.engine_capabilities import Abilities, Machine
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import DraftReason

KEY = "engine_args.speculative_config"
KEYS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
TOKENS = 1
OWN_HEADS = "mtp"
PARALLEL = "peagle"  # a method of speculators that is eagle3 with all drafts at once
OTHER_NAMES = {PARALLEL: "eagle3", "dflash2": "dflash"}  # of speculators, and vLLM's
AS_TRAINED = ("fp8", "mxfp4", "mxfp8")  # quantisations of vendors' original models


@frozen
class Heads:
    """The number of heads, and the quote of the config."""

    count: int
    quote: str


def spelled_out(method: str) -> dict[str, object]:
    """Return the value of ``speculative_config`` that the name of a method alone means."""
    return {"method": method, "num_speculative_tokens": TOKENS}


def read(config: Mapping[str, object]) -> Heads | None:
    """Return the heads that a config declares, at its top or in the part about the language model."""
    for part in (config, text_config(config)):
        for key in KEYS:
            count = whole(part.get(key), 1, 99)
            if count is not None:
                return Heads(count, f"{key}: {count}")
    return None


def evidence(snapshot: Snapshot, able: Abilities, machine: Machine) -> list[Evidence]:
    """Return the offer of these heads, where vLLM drafts with them; only the user switches them on."""
    heads = read(config_of(snapshot))
    if heads is None or not backends.of(able.engine).adapts or not _drafts(snapshot, able):
        return []
    how = _held(snapshot)
    if how is None or (machine.kind == "cpu" and not able.drafts_on_processors):
        return []
    offer = json.dumps(spelled_out(OWN_HEADS))
    reason = Reason(DraftReason.OFFERED, quote=heads.quote, how=how, offer=offer)
    return [Evidence(Rule.CONFIG, KEY, None, "config.json", reason, heads.quote)]


@frozen
class Draft:
    """The model that a draft in the form of speculators is for, and vLLM's settings for both."""

    verifier: str
    settings: Mapping[str, object]


def of_speculators(snapshot: Snapshot) -> Draft | None:
    """Return the pair that a draft's config names, as vLLM reads it (``build_vllm_speculative_config``)."""
    config = config_of(snapshot)
    about = mapping(config.get("speculators_config"))
    verifier = mapping(about.get("verifier")).get("name_or_path")
    first = next(iter(listed(about.get("proposal_methods"))), None)
    tokens = whole(mapping(first).get("speculative_tokens"), 1, 99)
    method = text(config.get("speculators_model_type"))
    if snapshot.model_id is None or tokens is None or method is None or not is_id(str(verifier)):
        return None
    settings: dict[str, object] = {
        "model": snapshot.model_id, "revision": snapshot.revision,
        "method": OTHER_NAMES.get(method, method), "num_speculative_tokens": tokens,
    }  # fmt: skip
    parallel = {"parallel_drafting": True} if method == PARALLEL else {}
    return Draft(str(verifier), settings | parallel)


def may_draft(snapshot: Snapshot, able: Abilities) -> bool:
    """Return whether config or weights name heads, or the engine drafts with models of this type."""
    named = read(config_of(snapshot)) is not None or _drafts(snapshot, able)
    return named or head_tensor(snapshot) is not None


def _drafts(snapshot: Snapshot, able: Abilities) -> bool:
    return any(t in able.mtp_types for t in model_types(snapshot)) or any(
        a in able.mtp_architectures for a in architectures(snapshot)
    )


def _held(snapshot: Snapshot) -> Reason | None:
    """Return what shows that the weights hold the heads; re-uploads often leave them out."""
    from importer.signals.family import base_models

    found = head_tensor(snapshot)
    if found is not None:
        return Reason(DraftReason.HOLDS, place=found)
    quantised = quantisation.read(snapshot)
    requantised = quantised is not None and quantised.method not in AS_TRAINED
    if tensors(snapshot) is not None or base_models(snapshot) or requantised:
        return None
    return Reason(DraftReason.AS_TRAINED)
