"""Mistral's own files beside the usual ones: which form vLLM is told to read."""

from __future__ import annotations

import pytest

from importer.engines import registries
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sentences import render
from importer.signals import loading

OWN = ("params.json", "consolidated.safetensors", "tekken.json")
USUAL = ("config.json", "model-00001-of-00001.safetensors", "tokenizer.json")
MISTRAL = {
    loading.TOKENIZER_MODE: "mistral",
    loading.CONFIG_FORMAT: "mistral",
    loading.LOAD_FORMAT: "mistral",
}
HF = {loading.TOKENIZER_MODE: "hf", loading.CONFIG_FORMAT: "hf", loading.LOAD_FORMAT: "safetensors"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (OWN, MISTRAL),
        (("params.json", "consolidated-00001.safetensors", "tokenizer.model.v3"), MISTRAL),
        ((*OWN, *USUAL), HF),
        ((*OWN, *USUAL[:2]), {**HF, loading.TOKENIZER_MODE: "mistral"}),  # no usual tokenizer
        ((*OWN, "config.json"), MISTRAL),  # a config that has no weights of its form
        ((*USUAL, "tekken.json"), {loading.TOKENIZER_MODE: "hf"}),  # a re-upload that kept the tokenizer
        ((*USUAL, "params.json", "tekken.json"), HF),
        ((*USUAL, "tokenizer.model"), {}),
        (USUAL, {}),
        ((), {}),
    ],
)
def test_the_form_is_said_where_there_are_two(files: tuple[str, ...], found: dict[str, str]) -> None:
    told = Snapshot("r", "a/b", None, tuple(RepoFile(f) for f in files), {})
    facts = loading.mistral_evidence(told, registries.load_capabilities("vllm"))
    assert {e.key: e.value for e in facts} == found
    assert all(render(e.reason) for e in facts)
    assert loading.mistral_evidence(told, registries.load_capabilities("mlx")) == []
