"""Mistral's own files beside the usual ones: which form vLLM is told to read."""

from __future__ import annotations

import pytest

from importer.engines import registries
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sentences import render
from importer.signals import mistral_files
from importer.signals.mistral_files import CONFIG_FORMAT, LOAD_FORMAT, TOKENIZER_MODE

OWN = ("params.json", "consolidated.safetensors", "tekken.json")
USUAL = ("config.json", "model-00001-of-00001.safetensors", "tokenizer.json")
MISTRAL = {TOKENIZER_MODE: "mistral", CONFIG_FORMAT: "mistral", LOAD_FORMAT: "mistral"}
HF = {TOKENIZER_MODE: "hf", CONFIG_FORMAT: "hf", LOAD_FORMAT: "safetensors"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (OWN, MISTRAL),
        (("params.json", "consolidated-00001.safetensors", "tokenizer.model.v3"), MISTRAL),
        ((*OWN, *USUAL), HF),
        ((*OWN, *USUAL[:2]), {**HF, TOKENIZER_MODE: "mistral"}),  # no usual tokenizer
        ((*OWN, "config.json"), MISTRAL),  # a config that has no weights of its form
        ((*USUAL, "tekken.json"), {TOKENIZER_MODE: "hf"}),  # a re-upload that kept the tokenizer
        ((*USUAL, "params.json", "tekken.json"), HF),
        ((*USUAL, "tokenizer.model"), {}),
        (USUAL, {}),
        ((), {}),
    ],
)
def test_the_form_is_said_where_there_are_two(files: tuple[str, ...], found: dict[str, str]) -> None:
    told = Snapshot("r", "a/b", None, tuple(RepoFile(f) for f in files), {})
    facts = mistral_files.evidence(told, registries.load_capabilities("vllm"))
    assert {e.key: e.value for e in facts} == found
    assert all(render(e.reason) for e in facts)
    assert mistral_files.evidence(told, registries.load_capabilities("mlx")) == []
