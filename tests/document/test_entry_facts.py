"""The facts that lists and galleries show: out of receipts old and new, whole and damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.document.document_keys import digest
from importer.document.entry_facts import entry_facts, size_class
from tests.any_json import altered
from tests.exporting import ON_MLX, VLLM
from tests.exports.test_exports import RECEIPT

GIB = 2**30
FIT: dict[str, Any] = {
    "device": {"name": "h100-80g", "count": 2, "kind": "cuda", "memory": 80 * GIB, "share": 0.9},
    "verdict": "fits", "message": "", "wanted": 32768, "chosen": {}, "cards": 2,
    "weights": {"low": 1, "likely": 16 * GIB, "high": 1, "parameters": 8_190_000_000,
                "active": 3_000_000_000},
    "estimate": {"load": {"context": 32768}, "terms": [], "total": {"low": 1, "likely": 18 * GIB, "high": 1}},
}  # fmt: skip
PLAIN = {**ON_MLX, "description": "Imported from acme/Tiny-8B"}


def run(document: dict[str, Any], *outcomes: str, passed: bool = True) -> dict[str, Any]:
    block = document["importer"]["engine"]
    told = [{"probe": f"p{i}", "outcome": one, "reason": ""} for i, one in enumerate(outcomes)]
    return {
        "engine": block, "passed": passed, "outcomes": told, "digest": digest(document),
        "started": "2026-11-23T08:00:00+00:00", "seconds": {},
    }  # fmt: skip


def test_the_card_describes_it_and_a_person_comes_first() -> None:
    receipt = replace(RECEIPT, description="Tiny answers questions about trains.")
    facts = entry_facts(PLAIN, receipt)
    assert (facts.description, facts.described_by) == ("Tiny answers questions about trains.", "card")
    own = entry_facts({**PLAIN, "description": " Ours, for the night shift. "}, receipt)
    assert (own.description, own.described_by) == ("Ours, for the night shift.", "person")
    without = entry_facts(PLAIN, RECEIPT)
    assert without.description == without.summary
    assert without.described_by == "facts"


def test_sizes_abilities_and_the_validation_are_facts() -> None:
    document = {
        **PLAIN,
        "importer": {**PLAIN["importer"], "modalities": ["image"], "quantization_scheme": "w4a16"},
    }
    receipt = replace(RECEIPT, fit=FIT, validation=run(document, *["pass"] * 40, *["not-applicable"] * 14))
    facts = entry_facts(document, receipt)
    assert (facts.license, facts.family, facts.context, facts.modalities) == (
        "apache-2.0", "tiny", 32768, ("text", "image"),
    )  # fmt: skip
    assert facts.validated is not None
    assert facts.validated.message == (
        "validated on mlx-lm 0.32.2: all 40 applicable probes passed (14 do not apply)"
    )
    assert facts.last_checked == "2026-11-23"
    assert facts.memory is not None
    assert (facts.memory.bytes, facts.memory.device, facts.memory.cards) == (18 * GIB, "h100-80g", 2)
    assert facts.tags == (
        "llm", "mlx", "tiny", "chat", "tools", "reasoning", "vision", "quantized", "w4a16", "moe", "8b",
    )  # fmt: skip
    assert facts.text == (
        "A chat model of the family tiny with 8.19 billion parameters, 3 billion of them active:"
        " context 32,768 tokens; inputs text, image; quantisation w4a16; weights 16.0 GiB;"
        " licence apache-2.0.\n\nIt needs 18.0 GiB of each of 2 h100-80g for 32,768 tokens."
        " Validated on mlx-lm 0.32.2: all 40 applicable probes passed (14 do not apply)."
    )


def test_a_run_of_other_data_validates_nothing() -> None:
    receipt = replace(RECEIPT, validation=run({**PLAIN, "max_model_len": 1}, "pass"))
    facts = entry_facts(PLAIN, receipt)
    assert (facts.validated, facts.last_checked) == (None, None)
    failed = entry_facts(PLAIN, replace(RECEIPT, validation=run(PLAIN, "pass", "fail", passed=False)))
    assert failed.validated is not None
    assert failed.validated.message == "validation failed on mlx-lm 0.32.2: 1 of 2 probes passed (1 failed)"


def test_a_document_without_a_paragraph_has_a_sentence_of_facts() -> None:
    assert entry_facts(VLLM, None).summary == (
        "A chat model of the family tiny: context 32,768 tokens; licence apache-2.0."
    )


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        (189_056, "189k"), (135_000_000, "135m"), (494_000_000, "0.5b"), (1_500_000_000, "1.5b"),
        (2_000_000_000, "2b"), (8_190_000_000, "8b"), (671_000_000_000, "671b"),
    ],
)  # fmt: skip
def test_a_size_is_named_as_models_are(parameters: int, name: str) -> None:
    assert size_class(parameters) == name


def readable(value: object) -> bool:
    """Whether YAML can have it: half of a surrogate pair is refused by its reader."""
    try:
        return bool(json.dumps(value, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        return False


@pytest.mark.slow
@given(st.data())
def test_whatever_a_receipt_holds_there_are_facts(data: st.DataObject) -> None:
    fit = data.draw(altered(FIT))
    changed = altered({k: PLAIN[k] for k in ("description", "max_model_len", "importer")})
    document = data.draw(changed.filter(readable))
    whole = PLAIN | (document if isinstance(document, dict) else {})
    facts = entry_facts(whole, replace(RECEIPT, fit=fit if isinstance(fit, dict) else None))
    assert facts.description
    json.dumps(facts.to_json())
