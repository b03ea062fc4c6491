"""Mistral's own files beside the Hub's usual ones, and the form that an engine reads.

vLLM chooses by the files in the directory (``consolidated*.safetensors``, ``params.json``, ``tekken.json``),
each version by other files, and a copy on disk lacks the second set of weights. So the document names the
form.
"""

from __future__ import annotations

import re

from importer import backends
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.reasons import FormReason

TOKENIZER_MODE, CONFIG_FORMAT, LOAD_FORMAT = (
    "engine_args.tokenizer_mode",
    "engine_args.config_format",
    "load_format",
)
WEIGHTS = re.compile(r"consolidated[^/]*\.safetensors")
OWN_TOKENIZER = re.compile(r"tekken\.json|tokenizer\.model\.v\d+[^/]*")
OTHER_WEIGHTS = re.compile(r"(?!consolidated)[^/]+\.safetensors")
OTHER_TOKENIZER = re.compile(r"tokenizer\.json|tokenizer\.model|vocab\.json")


@frozen
class Forms:
    """The files of each form that the repository has: Mistral's own (``own_…``) and the usual."""

    own_config: bool
    own_weights: bool
    own_tokenizer: bool
    config: bool
    weights: bool
    tokenizer: bool

    @property
    def own(self) -> bool:
        """Return whether the repository has any of Mistral's own files."""
        return self.own_weights or self.own_tokenizer or (self.own_config and not self.config)


def forms(snapshot: Snapshot) -> Forms:
    """Return the forms by the names of the listed files."""
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
    """Return the forms for vLLM, where a repository has any of Mistral's own files; else nothing."""
    present = forms(snapshot)
    if not backends.of(able.engine).adapts or not present.own:
        return []
    facts = []
    if present.own_tokenizer and not present.tokenizer:
        facts.append(_fact(TOKENIZER_MODE, "mistral", FormReason.ONLY_OWN))
    elif present.own_tokenizer:
        facts.append(_fact(TOKENIZER_MODE, "hf", FormReason.BOTH_FORMS))
    own = present.own_config and (present.own_weights or not present.weights)
    if own and not (present.config and present.weights):
        facts.append(_fact(CONFIG_FORMAT, "mistral", FormReason.ONLY_OWN))
        facts += [_fact(LOAD_FORMAT, "mistral", FormReason.ONLY_OWN)] * present.own_weights
    elif present.config and present.weights and (present.own_config or present.own_weights):
        facts.append(_fact(CONFIG_FORMAT, "hf", FormReason.BOTH_FORMS))
        facts.append(_fact(LOAD_FORMAT, "safetensors", FormReason.BOTH_FORMS))
    return facts


def _fact(key: str, value: str, why: FormReason) -> Evidence:
    return Evidence(Rule.FILES, key, value, Source.LISTING, Reason(why))
