"""Listing, index, headers and config held against each other: what is there, and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from importer.decisions.decide import decide
from importer.decisions.decision import Preferences, Target
from importer.document.attention import AttentionReason, attention
from importer.engines import registries
from importer.hub.snapshot import RepoFile, Snapshot, UnreadReason
from importer.memory import shape
from importer.reasons import Reason
from importer.sentences import render
from importer.signals import comparison, modalities
from importer.signals.comparison import INDEX, absent, evidence, findings, folders, held_config
from importer.signals.reasons import WeightDoubt, WeightFault

TEXT = [
    "model.embed_tokens.weight",
    *(f"language_model.model.layers.{i}.mlp.up_proj.weight" for i in range(4)),
]
SEES = {"model_type": "qwen3_5", "vision_config": {"depth": 2, "hidden_size": 8}, "image_token_id": 3}
LAYERS = {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 128,
          "vocab_size": 1000}  # fmt: skip
GIB = 1 << 30


def snapshot(
    config: Any = None, named: Iterable[str] = (), files: dict[str, int | None] | None = None, **more: Any
) -> Snapshot:
    """Return a repository whose index places each tensor in one file, unless ``index`` names others."""
    texts = {} if config is None else {"config.json": json.dumps(config)}
    texts |= more.pop("texts", {})
    mapped = more.pop("index", dict.fromkeys(named, "model.safetensors"))
    if mapped:
        texts[INDEX] = json.dumps({"weight_map": mapped})
    sizes = {"model.safetensors": GIB} if files is None else files
    listed = tuple(RepoFile(path, size) for path, size in sizes.items())
    known = (*listed, *(RepoFile(path, len(text)) for path, text in texts.items()))
    more = {"model_id": "someone/thing", "revision": "0" * 40} | more
    return Snapshot(reference="r", files=known, texts=texts, **more)


def kinds(one: Snapshot, engine: str = "mlx") -> list[Any]:
    return [finding.reason.kind for finding in findings(one, engine)]


@pytest.mark.parametrize(
    ("tensors", "gone"),
    [
        (TEXT, {"image", "audio"}),
        ([*TEXT, "lm_head.weight", "model.norm.weight", "mtp.fc.weight"], {"image", "audio"}),
        ([*TEXT, "vision_tower.blocks.0.attn.qkv.weight"], {"audio"}),
        ([*TEXT, "audio_tower.layers.0.fc1.weight"], {"image"}),
        ([*TEXT, "multi_modal_projector.weight"], set()),  # of either tower
        ([*TEXT, "视觉.blocks.0.weight"], set()),  # nobody knows
        ([*TEXT, "model.image_newline"], {"audio"}),
        ([], set()),
    ],
)
def test_towers_that_no_tensor_is_of(tensors: list[str], gone: set[str]) -> None:
    assert absent(snapshot(SEES, tensors)) == gone
    by_headers = snapshot(SEES, TEXT, tensors=tuple(tensors)) if tensors else snapshot(SEES)
    assert absent(by_headers) == gone, "the headers count, whatever the index names"


def test_an_index_of_other_files_shows_no_tower_absent() -> None:
    files: dict[str, int | None] = {"model.safetensors": GIB, "vision.safetensors": GIB}
    assert absent(snapshot(SEES, TEXT, files)) == set()
    assert absent(snapshot(SEES, index={TEXT[0]: "model-00001-of-00009.safetensors"})) == set()


@pytest.mark.parametrize(
    ("config", "there"),
    [
        (SEES, ["image"]),
        ({**SEES, "vision_config": None, "video_token_id": 4}, ["video"]),
        ({**SEES, "vision_config": {}, "video_token_id": 4}, ["image", "video"]),
        ({**SEES, "language_model_only": True}, ["image"]),
    ],
)
def test_uses_follow_the_tensors_and_the_engine(config: Any, there: list[str]) -> None:
    mlx, vlm, vllm = (registries.load_capabilities(name) for name in ("mlx", "mlx-vlm", "vllm"))
    text, whole = snapshot(config, TEXT), snapshot(config, [*TEXT, "vision_tower.blocks.0.weight"])
    assert list(modalities.read_modalities(whole)) == there
    assert not modalities.sees(text)

    def said(one: Snapshot, able: Any) -> dict[str, Any]:
        return {e.key: e.value for e in modalities.evidence(one, able)}

    assert said(text, vlm) == {"modalities": None}
    assert said(text, vllm) == {"modalities": None, "limit_mm_per_prompt": dict.fromkeys(there, 0)}
    assert said(whole, vlm) == {"modalities": there}
    assert said(whole, mlx) == {"modalities": None}, "mlx-lm takes no pictures"


def test_memory_counts_the_tensors_that_are_there() -> None:
    config = {**LAYERS, "vision_config": {"depth": 4, "hidden_size": 64}, "num_nextn_predict_layers": 2,
              "text_config": {**LAYERS, "mtp_num_hidden_layers": 2}}  # fmt: skip
    text = shape.read(snapshot(config, TEXT))
    whole = shape.read(snapshot(config, [*TEXT, "mtp.fc.weight", "visual.blocks.0.weight"]))
    assert isinstance(text, shape.Shape)
    assert isinstance(whole, shape.Shape)
    assert (text.tower, text.drafts, text.unseen) == ((), (), False)
    assert whole.tower
    assert len(whole.drafts) == 2
    assert held_config(snapshot(config)) == config, "without index and headers the config counts"


SHARDS = {f"model-0000{i}-of-00003.safetensors": GIB for i in (1, 2, 3)}
HALF: dict[str, int | None] = {
    "model-00001-of-00003.safetensors": GIB,
    "model-00003-of-00003.safetensors": GIB,
}
MAPPED = {f"model.layers.{i}.a.weight": path for i, path in enumerate(SHARDS)}
LARGE = Reason(UnreadReason.TOO_LARGE, limit="16 MiB")
GONE, POINTER = Reason(UnreadReason.GONE), Reason(UnreadReason.POINTER)


@pytest.mark.parametrize(
    ("one", "engine", "found", "words"),
    [
        (snapshot({}, files=HALF, index=MAPPED), "vllm", WeightFault.MISSING, "00002-of-00003"),
        (snapshot({}, files=HALF), "sglang", WeightFault.PARTS_MISSING, "(1 of 3"),
        (snapshot({}, index=MAPPED), "vllm", WeightFault.FOREIGN_INDEX, "no weights"),
        (snapshot({}, index=MAPPED), "mlx", WeightDoubt.FOREIGN_INDEX, "of another upload"),
        (snapshot({}, files={}, index=MAPPED, info={"tags": []}), "mlx", WeightFault.MISSING, "(3 of 3"),
        (snapshot({}, files={}, index=MAPPED, revision=None), "mlx", None, ""),  # settings alone
        (snapshot({}, files={**SHARDS, "model-extra.safetensors": 9}, index=MAPPED), "mlx", WeightDoubt.STRAY,
         "model-extra.safetensors"),
        (snapshot({}, files={**SHARDS, "model-extra.safetensors": 9}, index=MAPPED), "vllm", None, ""),
        (snapshot({}, files={**SHARDS, "model-mtp.safetensors": 9}, index=MAPPED), "mlx", None, ""),
        (snapshot({}, files={"weights.00.safetensors": GIB}), "mlx", WeightFault.OTHER_NAMES, "weights.00"),
        (snapshot({}, files={**SHARDS, "model.safetensors": 9}), "vllm", WeightDoubt.SETS, "4 files in all"),
        (snapshot({"quantization": {"bits": 4, "group_size": 64}}, TEXT), "mlx", WeightDoubt.PLAIN, "packed"),
        (snapshot({}, files={"model.safetensors": 0}), "vllm", WeightFault.EMPTY, "0 bytes"),
        (snapshot({}, files={"model.safetensors": 9, "tokenizer.json": 0}), "vllm", WeightFault.EMPTY, "tok"),
        (snapshot({}, files={"model.safetensors": 134}), "vllm", WeightFault.POINTER_SIZE, "134 bytes"),
        (snapshot({}, files={"model.safetensors": 134}, revision=None), "vllm", None, ""),  # it was read
        (snapshot({}, broken={"model.safetensors": POINTER}), "vllm", WeightFault.BROKEN, "git lfs pull"),
        (snapshot({}, broken={"model.safetensors": GONE}), "vllm", WeightFault.BROKEN, "link to a file"),
        (snapshot({}, files={"pytorch_model.bin": GIB, "training_args.bin": 9}), "mlx", WeightFault.PICKLES,
         "loads safetensors alone"),
        (snapshot({}, files={"pytorch_model.bin": GIB}), "vllm", WeightDoubt.PICKLES, "never fetches"),
        (snapshot({}, files={"model.safetensors": GIB, "pytorch_model.bin": GIB}), "mlx", None, ""),
        (snapshot({"a": 1}, files={"int4/model.safetensors": GIB}), "mlx", WeightFault.IN_FOLDERS, "(int4)"),
        (snapshot({}, files={"onnx/model_q4.onnx": GIB}), "vllm", WeightFault.OTHER_FORMAT, "model_q4.onnx"),
        (snapshot({"a": 1}, [*TEXT, "model.layers.0.a.scales"]), "mlx", WeightFault.UNQUANTISED, ".scales"),
        (snapshot({"quantization": {"bits": 4, "group_size": 64}}, [*TEXT, "model.layers.0.a.scales"]), "mlx",
         None, ""),
        (snapshot({"a": 1}, [*TEXT, "mtp.a"], tensors=tuple(TEXT)), "vllm", WeightDoubt.GHOSTS, "mtp"),
        (snapshot({"a": 1}, TEXT, tensors=tuple(TEXT)), "vllm", None, ""),
        (snapshot({}, unknown={INDEX: LARGE}), "vllm", WeightDoubt.UNREAD, "larger than 16 MiB"),
        (snapshot({}, unknown={INDEX: Reason(UnreadReason.NOT_AMONG, most=6)}), "vllm", None, ""),
        (snapshot({}, texts={"quantize_config.json": "[]"}), "vllm", WeightDoubt.UNREAD, "quantised"),
        (snapshot({}, texts={"hf_quant_config.json": "{"}), "vllm", WeightDoubt.UNREAD, "quantised"),
    ],
)  # fmt: skip
def test_each_contradiction_is_one_finding(one: Snapshot, engine: str, found: Any, words: str) -> None:
    came = [*findings(one, engine)]
    assert [finding.reason.kind for finding in came] == ([] if found is None else [found])
    assert all(words in render(finding.reason) for finding in came)
    assert all(finding.stops == isinstance(found, WeightFault) for finding in came)


def test_findings_need_attention_and_name_their_files() -> None:
    facts = evidence(snapshot({}, files={**HALF, "tokenizer.json": 0}, index=MAPPED), "vllm")
    decisions = decide(facts, Preferences(), Target("vllm"))
    assert decisions["weights"].value == ["tokenizer.json", "model-00002-of-00003.safetensors"]
    told = [one for one in attention(decisions) if one.key == "weights"]
    assert [one.kind for one in told] == [AttentionReason.WILL_NOT_START] * 2


def test_folders_with_a_model_each() -> None:
    inside: dict[str, int | None] = {"int4/config.json": 9, "int4/model.safetensors": GIB, "README.md": 1}
    assert folders(snapshot(files=inside)) == ("int4",)
    assert folders(snapshot({}, files=inside)) == ()
    assert folders(snapshot(files={**inside, "model_index.json": 9})) == ()
    assert folders(snapshot(files={**inside, "original.gguf": 9})) == ()
    assert folders(snapshot(files={"assets/config.json": 9})) == ()


@pytest.mark.parametrize(
    "text",
    ["{", "[" * 100_000, '{"weight_map": 3}', '{"weight_map": {"a": null, "b": "../../x.safetensors"}}'],
)
def test_a_hostile_index_says_nothing_and_is_named(text: str) -> None:
    one = snapshot(SEES, files={"model.safetensors": GIB})
    one = Snapshot("r", "a/b", "0" * 40, one.files, {**one.texts, INDEX: text})
    assert comparison.tensors(one) is None
    assert kinds(one) == [WeightDoubt.UNREAD]
    assert modalities.sees(one)


def test_a_part_may_claim_any_number_of_others() -> None:
    many = {f"model-00001-of-{n:05}.safetensors": GIB for n in (1024, 99999)}
    assert kinds(snapshot({}, files={**many})) == [WeightFault.PARTS_MISSING]
