"""Mistral's own files beside the Hub's usual ones: which of both an engine is to read.

vLLM chooses by the files that lie there (``consolidated*.safetensors``, ``params.json``, ``tekken.json``),
each version by other ones, and a copy on disk lacks the second set of weights. So the document says it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from importer.evidence.abilities import Abilities
from importer.evidence.fact import Evidence
from importer.hub.snapshot import Snapshot

MODE, CONFIG, LOAD = "engine_args.tokenizer_mode", "engine_args.config_format", "load_format"
WEIGHTS = re.compile(r"consolidated[^/]*\.safetensors")
OWN_TOKENIZER = re.compile(r"tekken\.json|tokenizer\.model\.v\d+[^/]*")
OTHER_WEIGHTS = re.compile(r"(?!consolidated)[^/]+\.safetensors")
OTHER_TOKENIZER = re.compile(r"tokenizer\.json|tokenizer\.model|vocab\.json")


@dataclass(frozen=True, slots=True)
class Forms:
    """Which files of each form are there: Mistral's own (``own_…``) and the usual."""

    own_config: bool
    own_weights: bool
    own_tokenizer: bool
    config: bool
    weights: bool
    tokenizer: bool

    @property
    def own(self) -> bool:
        """Whether any of Mistral's own files is there."""
        return self.own_weights or self.own_tokenizer or (self.own_config and not self.config)


def forms(snapshot: Snapshot) -> Forms:
    """By the names of the listed files."""
    paths = [f.path for f in snapshot.files]

    def some(shape: re.Pattern[str]) -> bool:
        return any(shape.fullmatch(path) for path in paths)

    return Forms(
        own_config="params.json" in paths,
        own_weights=some(WEIGHTS),
        own_tokenizer=some(OWN_TOKENIZER),
        config="config.json" in paths,
        weights=some(OTHER_WEIGHTS),
        tokenizer=some(OTHER_TOKENIZER),
    )


def evidence(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """For vLLM the form of each, where a repository has any of Mistral's own files; else nothing."""
    found = forms(snapshot)
    if able.engine != "vllm" or not found.own:
        return []
    facts = []
    if found.own_tokenizer and not found.tokenizer:
        facts.append(_fact(MODE, "mistral", "its only tokenizer is Mistral's own"))
    elif found.own_tokenizer:
        facts.append(_fact(MODE, "hf", "it has both tokenizers, and the chat template goes with this one"))
    own = found.own_config and (found.own_weights or not found.weights)
    if own and not (found.config and found.weights):
        lacking = "no config.json" if not found.config else "no other weights"
        facts.append(_fact(CONFIG, "mistral", f"it has params.json and {lacking}"))
        facts += [
            _fact(LOAD, "mistral", "its only weights are Mistral's own (consolidated)")
        ] * found.own_weights
    elif found.config and found.weights and (found.own_config or found.own_weights):
        both = "it has Mistral's own form too, which versions of vLLM would take by themselves"
        facts += [_fact(CONFIG, "hf", both), _fact(LOAD, "safetensors", f"{both}; only these are downloaded")]
    return facts


def _fact(key: str, value: str, says: str) -> Evidence:
    return Evidence("files", key, value, "the listed files", says)
