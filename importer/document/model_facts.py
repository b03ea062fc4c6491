"""The facts of a model beside its document: an import records them, and each check of the document uses them.

An edit has no snapshot. The facts in the receipt stand for it, so that an edit, a review and a file by hand
meet the check of the import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from importer.document.argument_check import KEY
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, mapping
from importer.memory import experts
from importer.memory.config_keys import HEADS, LAYERS, Keys
from importer.memory.estimate_types import Unknown
from importer.memory.layers import Attention, Latent
from importer.memory.shape import describe
from importer.signals import context, quantisation, speculation
from importer.signals.architecture import architectures, config_of, model_types, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.overrides import KEY as OVERRIDES
from importer.signals.overrides import given, overridden

if TYPE_CHECKING:
    from importer.document.receipt import Receipt

DSPARK = "dspark"  # its settings in a config begin so (vLLM's ``config/speculative.py``)


@frozen
class ModelFacts:
    """What the checks read of a model; ``None`` is unknown.

    ``heads``    of attention; ``layers`` of the language model; ``experts`` whether it has some.
    ``keys``     heads of keys; ``None`` also where a latent cache (MLA) stands in their place.
    ``drafts``   whether it has layers for multi-token prediction that the engine may draft with.
    ``dspark``   whether the checkpoint has the weights of DSpark, whose drafts have several tokens.
    ``quantised``  whether a file of the repository describes a quantisation.
    ``longest``  context in tokens that the engine takes without a change of the rotary embedding.
    ``variables``  that the chat template names; ``None`` also where the engine renders without it.
    """

    heads: int | None = None
    keys: int | None = None
    layers: int | None = None
    experts: bool | None = None
    drafts: bool | None = None
    dspark: bool | None = None
    longest: int | None = None
    quantised: bool | None = None
    model_types: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    variables: tuple[str, ...] | None = None


def read_model_facts(
    snapshot: Snapshot,
    able: Abilities,
    settings: Mapping[str, object] | None = None,
    variables: tuple[str, ...] | None = None,
) -> ModelFacts:
    """Return the facts of a repository, as the version of the engine reads them.

    ``settings`` may override its config, and with that its context.
    """
    text = text_config(config_of(snapshot))
    keys = Keys.of(text)
    return ModelFacts(
        heads=keys.count(*HEADS),
        keys=_keys(snapshot),
        layers=keys.count(*LAYERS),
        experts=experts.count(keys) > 0 if text else None,
        drafts=speculation.may_draft(snapshot, able) if text else None,
        dspark=any(key.startswith(f"{DSPARK}_") for key in (*config_of(snapshot), *text)) if text else None,
        longest=context.longest(overridden(snapshot, given(settings or {})), able),
        quantised=_quantised(snapshot) if text else None,
        model_types=tuple(model_types(snapshot)),
        architectures=tuple(architectures(snapshot)),
        variables=variables,
    )


def _keys(snapshot: Snapshot) -> int | None:
    """Return the heads of keys of all layers, where they have one number and no layer is latent."""
    shape = describe(config_of(snapshot))
    layers = () if isinstance(shape, Unknown) else shape.layers
    caches = {cached for layer in layers for cached in layer}
    found = {cached.kv_heads for cached in caches if isinstance(cached, Attention)}
    return found.pop() if len(found) == 1 and not any(isinstance(c, Latent) for c in caches) else None


def _quantised(snapshot: Snapshot) -> bool:
    """Return whether vLLM finds a quantisation: a block of the config, or a file beside it, such as
    ``quantize_config.json`` or ``hf_quant_config.json``.
    """
    files = (PurePosixPath(file.path) for file in snapshot.files)
    beside = any(path.suffix == ".json" and "config" in path.stem.partition("quant")[2] for path in files)
    return beside or quantisation.read(snapshot) is not None or quantisation.has_block(snapshot)


@frozen
class RecordedFacts:
    """The facts of a receipt, with the commit and the engine (name, version) that they were read for."""

    facts: ModelFacts
    revision: str | None
    engine: Mapping[str, object]

    def of(self, document: Mapping[str, object]) -> ModelFacts:
        """Return the facts that hold for a document; what is unknown of it is ``None``.

        None hold for another commit. For another version of the engine, those of the version are unknown.
        The context is unknown where the document overrides the model's config.
        """
        block, arguments = mapping(document.get("importer")), mapping(document.get(KEY))
        if block.get("revision", self.revision) != self.revision:
            return ModelFacts()
        if block.get("engine", self.engine) != self.engine:
            return replace(self.facts, drafts=None, longest=None)  # decided by the version
        changed = arguments.get(OVERRIDES.removeprefix(f"{KEY}."))
        return replace(self.facts, longest=None) if changed else self.facts


def facts_json(facts: ModelFacts) -> dict[str, object]:
    """Return the facts as they stand in a receipt."""
    return asdict(facts)


def recorded_facts(receipt: Receipt | None) -> RecordedFacts | None:
    """Return the facts of a receipt, if there is one."""
    if receipt is None:
        return None
    known = {f.name: receipt.model[f.name] for f in fields(ModelFacts) if f.name in receipt.model}
    listed = {name: tuple(value) for name, value in known.items() if isinstance(value, list | tuple)}
    return RecordedFacts(ModelFacts(**{**known, **listed}), receipt.revision, receipt.engine)
