"""Models that return no chat: their kind, their flags, the shape of what they return."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from importer.cli.messages import hint
from importer.engines import registries
from importer.hub.snapshot import RepoFile, Snapshot
from importer.signals import context, loading
from importer.signals.collect import collect
from importer.signals.engine_capabilities import Machine
from importer.signals.evidence import is_warning
from importer.signals.kind import find_kind
from importer.signals.tasks import task_evidence

ABLE = registries.load_capabilities("vllm")
ST = "sentence_transformers.models."
MODULES = [{"path": "", "type": ST + "Transformer"}, {"path": "1_Pooling", "type": ST + "Pooling"}]
TEMPLATE = {"chat_template.jinja": "{{ messages }}"}


def snapshot(config: dict[str, Any], texts: dict[str, Any] | None = None, **info: Any) -> Snapshot:
    """Return a repository with these files; a value that is no text is written as JSON."""
    whole = {"config.json": config, **(texts or {})}
    written = {k: v if isinstance(v, str) else json.dumps(v) for k, v in whole.items()}
    listed = tuple(RepoFile(f) for f in sorted(written))
    return Snapshot("ref", "someone/Thing", None, listed, written, info)


def classifier(architecture: str, labels: int) -> dict[str, Any]:
    return {"architectures": [architecture], "id2label": {str(i): f"L{i}" for i in range(labels)}}


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (classifier("BertForSequenceClassification", 1), "reranker"),
        (classifier("BertForSequenceClassification", 3), "classifier"),
        (classifier("BertForTokenClassification", 1), "classifier"),
        ({"architectures": ["SomethingNewForSequenceClassification"], "num_labels": 1}, "reranker"),
        ({"architectures": ["WhisperForConditionalGeneration"]}, "transcription"),
        ({"architectures": ["VoxtralForConditionalGeneration"]}, "chat"),
        ({"architectures": ["Wav2Vec2ForCTC"]}, "speech"),
        ({"architectures": ["JinaVLForRanking"]}, "reranker"),
        ({"architectures": ["BartForConditionalGeneration"], "is_encoder_decoder": True}, "encoder-decoder"),
        ({"architectures": ["NewForCausalLM"]}, "chat"),
        (
            {"architectures": ["NewModel9"], "is_encoder_decoder": True, "auto_map": {"AutoModel": "a.B"}},
            "chat",
        ),
    ],
)
def test_the_registry_and_the_labels_decide(config: dict[str, Any], kind: str) -> None:
    assert find_kind(snapshot(config, TEMPLATE), ignore_name=True, able=ABLE).kind == kind


def test_a_card_of_a_reranker_outweighs_a_template_in_a_folder_too() -> None:
    config = {"architectures": ["Qwen3ForCausalLM"]}
    card = {"README.md": "---\npipeline_tag: text-ranking\n---\n# One\n", **TEMPLATE}
    assert find_kind(snapshot(config, card), able=ABLE).kind == "reranker"
    assert find_kind(snapshot(config, card), ignore_name=True, able=ABLE).kind == "chat"
    other = {**card, "README.md": card["README.md"].replace("ranking", "classification")}
    assert find_kind(snapshot(config, other), able=ABLE).kind == "chat"


def test_one_score_of_a_decoder_is_doubted_unless_something_says_that_it_ranks() -> None:
    config = classifier("LlamaForSequenceClassification", 1)

    def doubted(texts: dict[str, Any], **more: Any) -> bool:
        return is_warning(find_kind(snapshot({**config, **more}, texts), able=ABLE).evidence[0].reason)

    assert doubted(TEMPLATE)
    assert not doubted({})
    assert not doubted({**TEMPLATE, "README.md": "---\npipeline_tag: text-ranking\n---\n"})
    assert not doubted(TEMPLATE, sentence_transformers={"version": "5.0.0"})


@pytest.mark.parametrize("kind_of_use", [None, "base"])
def test_a_model_without_chats_has_no_sampling_of_its_family(kind_of_use: str | None) -> None:
    named = replace(
        snapshot(classifier("LlamaForSequenceClassification", 1)), model_id="x/Llama-3-8B-Instruct"
    )
    kind = find_kind(named, able=ABLE)
    other = replace(kind, kind=kind_of_use or kind.kind)
    facts = collect(named, other, None, "linux", ignore_name=False)
    chats = collect(named, replace(kind, kind="chat"), None, "linux", ignore_name=False)
    assert not [e.key for e in facts if e.key.startswith("parameters.")]
    assert [e.key for e in chats if e.key.startswith("parameters.")]


def test_a_ranking_tag_outweighs_files_that_every_sentence_encoder_has() -> None:
    files = {"modules.json": MODULES, **TEMPLATE}
    config = {"architectures": ["Qwen3ForCausalLM"]}
    assert find_kind(snapshot(config, files), able=ABLE).kind == "embedding"
    assert find_kind(snapshot(config, files, pipeline_tag="text-ranking"), able=ABLE).kind == "reranker"


def values(snap: Snapshot, kind: str) -> dict[str, Any]:
    """Return the evidence of such a model by key."""
    return {e.key: e.value for e in task_evidence(snap, kind, ABLE)}


def test_a_generating_architecture_is_converted_and_a_pooling_one_is_not() -> None:
    generates = snapshot({"architectures": ["Qwen3ForCausalLM"], "hidden_size": 64})
    pools = snapshot({"architectures": ["BertModel"], "hidden_size": 64})
    assert values(generates, "embedding") == {
        "engine_args.runner": "pooling", "engine_args.convert": "embed", "outputs": {"dimensions": 64},
    }  # fmt: skip
    assert values(pools, "embedding") == {"engine_args.runner": "pooling", "outputs": {"dimensions": 64}}
    ranks = values(generates, "reranker")
    assert ranks["engine_args.convert"] == "classify"
    assert ranks["engine_args.hf_overrides"]["classifier_from_token"] == ["no", "yes"]
    other = task_evidence(snapshot({"architectures": ["LlamaForCausalLM"]}), "reranker", ABLE)
    assert [e.key for e in other if is_warning(e.reason)] == ["engine_args.convert"]
    assert values(generates, "chat") == values(generates, "transcription") == {}


def test_the_modules_name_width_and_length_of_a_vector() -> None:
    dense = {"path": "2_Dense", "type": ST + "Dense"}
    texts = {"modules.json": [*MODULES, dense], "2_Dense/config.json": {"out_features": 24}}
    config = {"architectures": ["BertModel"], "hidden_size": 64}
    assert values(snapshot(config, texts), "embedding")["outputs"] == {"dimensions": 24, "normalized": False}
    unread = {"modules.json": texts["modules.json"]}
    assert values(snapshot(config, unread), "embedding")["outputs"] == {"normalized": False}
    unit = {"modules.json": [*MODULES, {"path": "2_Normalize", "type": ST + "Normalize"}]}
    assert values(snapshot(config, unit), "embedding")["outputs"] == {"dimensions": 64, "normalized": True}


def test_some_architectures_return_a_result_for_each_token() -> None:
    late = snapshot({"architectures": ["HF_ColBERT"], "hidden_size": 64})
    assert values(late, "embedding")["outputs"] == {"each": "token"}
    projected = snapshot({"architectures": ["HF_ColBERT"], "hidden_size": 64, "dim": 16})
    assert values(projected, "embedding")["outputs"] == {"dimensions": 16, "each": "token"}


@pytest.mark.parametrize("text", ["{", '[{"type": 7, "path": 7}]', "[" * 100_000])
def test_broken_modules_describe_nothing(text: str) -> None:
    outputs = values(snapshot({"architectures": ["BertModel"]}, {"modules.json": text}), "embedding")
    assert "dimensions" not in outputs.get("outputs", {})


def test_the_length_of_sentence_transformers_is_the_context() -> None:
    texts = {"sentence_xlm-roberta_config.json": {"max_seq_length": 256}}
    found = context.evidence(snapshot({"model_type": "bert", "max_position_embeddings": 512}, texts), ABLE)
    assert (found[0].key, found[0].value) == ("max_model_len", 256)


def test_mlx_weights_of_such_a_kind_are_refused_with_their_engine() -> None:
    config = {"architectures": ["Qwen3Model"], "quantization": {"group_size": 64, "bits": 4}}
    error = find_kind(snapshot(config), able=ABLE).error("x/Y")
    assert error is not None
    assert "mlx-embeddings" in hint(error)


@pytest.mark.parametrize(
    ("config", "files", "kind", "words"),
    [
        ({"architectures": ["NewModel9"], "sampling_rate": 16000}, {}, "speech", "mlx-audio"),
        ({"architectures": ["NewForDepth"]}, {}, "no-text", "transformers"),
        ({"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True}, {}, "encoder-decoder",
         "transformers"),
        ({"alignment_heads": [[7, 0]], "lang_ids": [5]}, {"model.bin": ""}, "unnamed", "library"),
    ],
)  # fmt: skip
def test_what_no_engine_generates_text_with_is_refused(
    config: dict[str, Any], files: dict[str, Any], kind: str, words: str
) -> None:
    found = find_kind(snapshot(config, files), ignore_name=True, able=ABLE)
    error = found.error("x/Y")
    assert found.kind == kind
    assert error is not None
    assert error.kind == "not-chat"
    assert words in hint(error)


@pytest.mark.parametrize("more", ["params.json", "chat_template.jinja"])
def test_a_config_that_names_nothing_is_no_refusal_beside_another_source(more: str) -> None:
    files = {"model.safetensors": "", more: "{}"}
    assert find_kind(snapshot({"dim": 5}, files), able=ABLE).error("x/Y") is None


@pytest.mark.parametrize(
    ("files", "info", "words"),
    [
        ({"model_index.json": {}}, {"library_name": "nemo"}, "nemo"),
        ({"model_index.json": {}}, {"library_name": "<script>"}, "diffusers"),
    ],
)
def test_a_refusal_names_what_serves_the_model(
    files: dict[str, Any], info: dict[str, Any], words: str
) -> None:
    error = find_kind(snapshot({}, files, **info), able=ABLE).error("x/Y")
    assert error is not None
    assert words in hint(error)


@pytest.mark.parametrize(
    ("config", "can", "warned"),
    [
        ({"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"}, True, False),
        ({"architectures": ["BertModel"], "model_type": "bert"}, True, False),
        ({"architectures": ["DebertaV2ForSequenceClassification"], "model_type": "deberta-v2"}, None, False),
        ({"architectures": ["NewestForCausalLM"], "model_type": "llama"}, None, False),
        ({"architectures": ["NewestForCausalLM"], "model_type": "newest"}, False, True),
        ({"architectures": ["NewestForCausalLM"], "model_type": "newest", "auto_map": {"AutoModel": "a.B"}},
         None, False),
    ],
)  # fmt: skip
def test_an_architecture_outside_the_registry_has_a_warning(
    config: dict[str, Any], can: bool | None, warned: bool
) -> None:
    told = snapshot(config)
    assert loading.serves(told, ABLE).can is can
    facts = loading.evidence(told, ABLE, Machine("cuda"))
    assert any(e.key == "backend" and is_warning(e.reason) for e in facts) is warned


def test_a_head_that_vllm_lacks_is_not_dropped_in_silence() -> None:
    def kind(name: str, texts: dict[str, Any]) -> str:
        return find_kind(snapshot({"architectures": [name]}, texts), able=ABLE).kind

    assert kind("BertForQuestionAnswering", {}) == "no-text"
    assert kind("BertForQuestionAnswering", {"modules.json": MODULES}) == "embedding"
    assert kind("BertForPreTraining", {}) == kind("BertForMaskedLM", {}) == "embedding"


@pytest.mark.parametrize(
    ("architecture", "remedy"),
    [
        ("ViTForImageClassification", "transformers"),
        ("FluxTransformer2DModel", "diffusers"),
        ("ParlerTTSForConditionalGeneration", "mlx-audio"),
    ],
)
def test_the_remedy_serves_what_the_class_returns(architecture: str, remedy: str) -> None:
    error = find_kind(snapshot({"architectures": [architecture]}), able=ABLE).error("r")
    assert error is not None
    assert hint(error).startswith("Serve it with")
    assert remedy in hint(error)
    assert ("vLLM-Omni" in hint(error)) is (remedy != "transformers")


@pytest.mark.parametrize(
    "texts",
    [
        {"modules.json": [{"type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}]},
        {"modules.json": MODULES, "config_sentence_transformers.json": {"model_type": "CrossEncoder"}},
    ],
)
def test_a_cross_encoder_is_described_by_its_modules_or_its_settings(texts: dict[str, Any]) -> None:
    config = {"architectures": ["Qwen3ForCausalLM"]}
    assert find_kind(snapshot(config, {**texts, **TEMPLATE}), able=ABLE).kind == "reranker"


def pooled(settings: dict[str, Any], version: str, module: str = ST + "Pooling") -> list[Any]:
    modules = [
        {"path": "", "type": ST + "Transformer"},
        {"path": "1_Pooling", "type": module},
        {"type": "a.Normalize"},
    ]
    texts = {"modules.json": modules, "1_Pooling/config.json": settings}
    able = registries.load_capabilities("vllm", version)
    facts = task_evidence(snapshot({"architectures": ["BertModel"]}, texts), "embedding", able)
    return [e.value for e in facts if e.key == "engine_args.pooler_config"] + [
        e.reason.fields["reason"].kind.value for e in facts if is_warning(e.reason)
    ]


NEW = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
OLD_FORM = {"word_embedding_dimension": 8, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


@pytest.mark.parametrize(
    ("settings", "version", "module", "found"),
    [
        ({"pooling_mode": "mean"}, "0.27.1", NEW, [{"pooling_type": "MEAN", "use_activation": True}]),
        (
            {"pooling_mode": "lasttoken"},
            "0.14.1",
            ST + "Pooling",
            [{"pooling_type": "LAST", "use_activation": True}],
        ),
        (OLD_FORM, "0.27.1", NEW, [{"pooling_type": "MEAN", "use_activation": True}]),
        ({"pooling_mode": "mean"}, "0.32.0", NEW, []),
        (OLD_FORM, "0.14.1", ST + "Pooling", []),
        ({"pooling_mode": "max"}, "0.32.0", NEW, ["no-way"]),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "0.27.1", NEW, ["no-way"]),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "0.14.1", ST + "Pooling", []),
        ({"include_prompt": True}, "0.27.1", NEW, []),
    ],
)
def test_a_pooling_that_the_version_does_not_read_is_written(
    settings: dict[str, Any], version: str, module: str, found: list[Any]
) -> None:
    assert pooled(settings, version, module) == found


def test_sparse_vectors_are_no_dense_ones() -> None:
    texts = {"modules.json": MODULES, "config_sentence_transformers.json": {"model_type": "SparseEncoder"}}
    facts = task_evidence(snapshot({"architectures": ["BertForMaskedLM"]}, texts), "embedding", ABLE)
    assert [e.key for e in facts if is_warning(e.reason)] == ["engine_args.runner"]
