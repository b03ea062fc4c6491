"""Quantised repositories of a model: those that the card names, and those that the Hub lists."""

from __future__ import annotations

from typing import Any

from importer.hub.snapshot import Snapshot
from importer.signals import quantised_variants

CARD = """# Acme Anvil 7B
Quantised: [FP8](https://huggingface.co/acme/Anvil-7B-FP8), `acme/Anvil-7B-AWQ`, and
`vllm serve other/Anvil-7B-NVFP4 --port 1`. GGUF files: acme/Anvil-7B-GGUF, in 16 bits acme/Anvil-7B-bf16.
See also acme/Anvil-14B-FP8, acme/Anvil-7B, acme/Anvil-7B-Instruct-FP8, a/b/c/Anvil-7B-FP8,
p/Anvil-7B-FP8.txt.
"""


def found(card: str, name: str = "acme/Anvil-7B", **config: Any) -> list[str]:
    snapshot = Snapshot(name, name, "0" * 40, (), {"README.md": card}, {"config": config})
    return [value for e in quantised_variants.evidence(snapshot) for value in e.value]


def test_a_card_names_them() -> None:
    assert found(CARD) == ["acme/Anvil-7B-FP8", "acme/Anvil-7B-AWQ", "other/Anvil-7B-NVFP4"]
    assert found("nothing") == []
    assert found(CARD, "acme/Anvil-14B") == ["acme/Anvil-14B-FP8"]


def test_a_quantised_repository_has_none() -> None:
    assert found(CARD, quantization_config={"quant_method": "fp8"}) == []
