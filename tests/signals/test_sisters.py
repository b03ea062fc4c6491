"""Quantised repositories of a model: those that the card names, and those that the Hub lists."""

from __future__ import annotations

from typing import Any

import pytest

from importer.hub.related import RelatedReason, RelatedRepositories, RelatedRepository
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.sentences import render
from importer.signals import quantised_variants
from importer.signals.engine_capabilities import Abilities, Machine
from importer.signals.evidence import Evidence, Rule

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


@pytest.mark.parametrize("card", ["a/" * 100_000, "a/" + "b" * 200_000, "https://huggingface.co/" * 9_000])
def test_a_hostile_card_names_none(card: str) -> None:
    assert found(card) == []


OF_IT = ("base_model:quantized:acme/Anvil-7B", "safetensors")
ABLE = Abilities("vllm", "1", methods={"awq": 75, "fp8": 75, "gptq": 60, "inc": 60})
CARD_OF_ITS_OWN = Machine("cuda", 80, "a100-80g")


def listed(
    *repositories: RelatedRepository, able: Abilities = ABLE, problem: Reason | None = None
) -> list[Evidence]:
    snapshot = Snapshot("acme/Anvil-7B", "acme/Anvil-7B", "0" * 40, (), {})
    return quantised_variants.listed(
        RelatedRepositories(repositories, problem), snapshot, able, CARD_OF_ITS_OWN
    )


def one(name: str, *tags: str, downloads: int = 0, **block: Any) -> RelatedRepository:
    return RelatedRepository(name, downloads, (*OF_IT, *tags), block, {"BF16": 7})


def test_the_listed_repositories_that_the_engine_reads() -> None:
    (fact,) = listed(
        one("b/Anvil-AWQ", quant_method="awq", bits=4, downloads=90),
        one("b/Anvil-GGUF", "gguf", downloads=80),
        one("b/Anvil-MLX", "mlx", "4-bit", downloads=70),
        one("b/Anvil-Odd", quant_method="odd-method", downloads=60),
        one("Acme/Hammer", "8-bit", "gptq", downloads=50),
        one("acme/Anvil-FP8", "fp8", downloads=40),
    )
    assert fact.rule is Rule.HUB_LISTING
    rows = [(row["repo"], row["method"], row["bits"]) for row in fact.value]
    assert rows == [("Acme/Hammer", "gptq", 8), ("acme/Anvil-FP8", "fp8", 8), ("b/Anvil-AWQ", "awq", 4)]
    assert "b/Anvil-AWQ (awq, 4 bits)" in render(fact.reason)


def test_weights_of_mlx_are_for_its_engines() -> None:
    listing = [one("b/Anvil-MLX", "mlx", "4-bit"), one("b/Anvil-MLX-8bit", group_size=64, bits=8)]
    assert listed(*listing) == []
    (fact,) = listed(*listing, able=Abilities("mlx", "1", methods={"awq": 0}))
    assert [(row["method"], row["bits"]) for row in fact.value] == [("mlx", 4), ("mlx", 8)]


def test_an_unknown_list_is_a_reason_and_an_empty_one_is_nothing() -> None:
    assert listed() == []
    (fact,) = listed(problem=Reason(RelatedReason.OFFLINE))
    assert fact.value is None
    assert "unknown" in render(fact.reason)
