"""Kinds: architecture, files, name and tags heard together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.cli.messages import hint
from importer.hub.snapshot import RepoFile, Snapshot
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.evidence import is_warning
from importer.signals.kind import find_kind, holds_nothing
from importer.signals.reasons import KindReason

TEMPLATE = {"chat_template.jinja": "{{ messages }}"}
SETTINGS = {"tokenizer_config.json": '{"eos_token": "</s>"}'}


def snapshot(
    model_id: str | None = "someone/Thing-7B",
    files: tuple[str, ...] = (),
    texts: dict[str, str] | None = None,
    config: dict[str, Any] | None = None,
    **info: Any,
) -> Snapshot:
    texts = dict(texts or {})
    if config is not None:
        texts["config.json"] = json.dumps(config)
    listed = tuple(RepoFile(f) for f in sorted({*files, *texts}))
    return Snapshot("ref", model_id, None, listed, texts, info)


def arch(name: str) -> dict[str, Any]:
    return {"architectures": [name]}


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("BertModel", "embedding"), ("XLMRobertaModel", "embedding"), ("ColQwen3_5", "embedding"),
        ("Gemma3TextModel", "embedding"), ("Qwen3Model", "embedding"),
        ("LlamaBidirectionalModel", "embedding"),
        ("Qwen3ForSequenceClassification", "classifier"), ("Qwen2ForRewardModel", "reward"),
        ("WhisperForConditionalGeneration", "speech"), ("Qwen3ASRForConditionalGeneration", "speech"),
        ("FalconPerceptionForSegmentation", "image"), ("LlamaForCausalLMEagle3", "draft"),
        ("DeepseekOCR2ForCausalLM", "ocr"), ("MarianMTModel", "translation"),
        ("PanguEmbeddedForCausalLM", "chat"), ("Eagle2_5_VLForConditionalGeneration", "chat"),
        ("LlamaForCausalLM", "chat"), ("Qwen2AudioForConditionalGeneration", "chat"),
        ("Qwen3_5ForConditionalGeneration", "chat"), ("ChatGLMModel", "chat"),
    ],
)  # fmt: skip
def test_architectures(architecture: str, kind: str) -> None:
    found = find_kind(snapshot(texts=TEMPLATE, config=arch(architecture)), ignore_name=True)
    assert found.kind == kind


@pytest.mark.parametrize("key", ["speculators_model_type", "dflash_config"])
def test_a_draft_model_says_so_in_its_config(key: str) -> None:
    assert find_kind(snapshot(config={**arch("LlamaForCausalLM"), key: {}})).kind == "draft"


def test_the_name_outweighs_a_chat_template() -> None:
    found = find_kind(snapshot("Qwen/Qwen3-8B-Base", texts=TEMPLATE))
    assert found.kind == "base"
    assert find_kind(snapshot("Qwen/Qwen3-8B-Base", texts=TEMPLATE), ignore_name=True).kind == "chat"


@pytest.mark.parametrize("tag", ["feature-extraction", "automatic-speech-recognition", "text-to-image"])
def test_a_wrong_tag_does_not_refuse_a_chat_model(tag: str) -> None:
    assert find_kind(snapshot(texts=TEMPLATE, pipeline_tag=tag)).kind == "chat"
    assert find_kind(snapshot("x/Llama-3.1-8B-Instruct", pipeline_tag=tag)).kind == "chat"
    assert find_kind(snapshot(pipeline_tag=tag, tags=["conversational"])).kind == "chat"


def test_a_tag_is_heard_where_nothing_else_speaks() -> None:
    found = find_kind(snapshot(pipeline_tag="sentence-similarity", library_name="sentence-transformers"))
    assert found.kind == "embedding"
    assert find_kind(snapshot(pipeline_tag="sentence-similarity"), ignore_name=True).kind == "chat"
    assert find_kind(snapshot(pipeline_tag=7, tags=[None, "image-to-video"])).kind == "image"


def test_settings_without_a_template_are_a_base_models_unless_something_chats() -> None:
    assert find_kind(snapshot(texts=SETTINGS)).kind == "base"
    assert find_kind(snapshot("x/Thing-7B-Chat", texts=SETTINGS)).kind == "chat"
    assert find_kind(snapshot("x/Thing-7B-Chat", texts=SETTINGS), ignore_name=True).kind == "base"
    assert find_kind(snapshot(texts=SETTINGS, tags=["conversational"])).kind == "chat"


@pytest.mark.parametrize(("name", "kind"), [("x/Thing-Flash-0731", "chat"), ("x/Thing-Flash-Base", "base")])
def test_no_template_means_nothing_where_the_engine_renders_by_its_own_code(name: str, kind: str) -> None:
    one = snapshot(name, texts=SETTINGS, config=arch("DeepseekV4ForCausalLM"))
    assert find_kind(one).kind == kind


def test_a_template_in_the_hubs_answer_counts() -> None:
    told = {"tokenizer_config": {"chat_template": "{{ messages }}"}}
    answer = Snapshot("ref", "x/Y", None, (), SETTINGS, {"config": told})
    assert find_kind(answer).evidence[0].source == "the Hub's answer"


def test_a_model_type_that_publishes_no_template_still_chats() -> None:
    found = find_kind(snapshot(texts=SETTINGS, config={"model_type": "deepseek_v4"}), ignore_name=True)
    assert found.kind == "chat"
    assert found.evidence[0].rule == "kind-model-type"


@pytest.mark.parametrize(
    "texts",
    [
        {"chat_template.jinja": "x"},
        {"tokenizer_config.json": '{"chat_template": [{"name": "default", "template": "x"}]}'},
        {"additional_chat_templates/tool_use.jinja": "x"},
    ],
)
def test_every_place_of_a_template(texts: dict[str, str]) -> None:
    found = find_kind(snapshot(texts={**SETTINGS, **texts}))
    assert (found.kind, found.evidence[0].rule) == ("chat", "kind-template")


def test_gguf_only_names_the_original() -> None:
    found = find_kind(snapshot("x/Qwen3-8B-GGUF", ("a.Q4_K_M.gguf",), card={"base_model": ["Qwen/Qwen3-8B"]}))
    assert (found.kind, found.made_from) == ("gguf-only", "Qwen/Qwen3-8B")
    error = found.error("x/Qwen3-8B-GGUF")
    assert error is not None
    assert (error.kind, error.exit_code) == ("gguf-only", 4)
    assert "Qwen/Qwen3-8B" in hint(error)


@pytest.mark.parametrize(
    "info",
    [{"card": {"base_model": "acme/demo"}}, {"tags": ["gguf", "base_model:quantized:acme/demo"]}],
)  # fmt: skip
def test_gguf_only_names_an_original_of_its_own_name(info: dict[str, Any]) -> None:
    found = find_kind(snapshot("acme/demo-GGUF", ("demo-Q4_K_M.gguf",), **info))
    assert (found.kind, found.made_from) == ("gguf-only", "acme/demo")


def test_gguf_only_without_a_card() -> None:
    found = find_kind(snapshot("x/Qwen3-8B-GGUF", ("a.gguf",), card={"base_model": "./local"}))
    error = found.error("x")
    assert found.made_from is None
    assert error is not None
    assert "original safetensors weights" in hint(error)


def test_gguf_beside_other_weights_is_no_reason_to_refuse() -> None:
    assert find_kind(snapshot("x/Y-it", ("a.gguf", "model.safetensors"))).kind == "chat"


@pytest.mark.parametrize("kind", ["draft", "image", "speech"])
def test_a_refusal_says_what_it_is(kind: str) -> None:
    names = {
        "speech": "x/Y-TTS", "image": "x/stable-diffusion-9", "draft": "x/Y-eagle3",
    }  # fmt: skip
    error = find_kind(snapshot(names[kind])).error("x/Y")
    assert error is not None
    assert error.kind == "not-chat"
    assert error.details["what"] == Reason(KindReason.IS, of=kind)
    assert render(Reason(KindReason.IS, of=kind)) in error.message
    assert hint(error)


def listing(*files: str, **texts: Any) -> Snapshot:
    """Return a folder with these files listed, and with the texts, whose names have no dots, as JSON."""
    written = {name.replace("__", "."): json.dumps(data) for name, data in texts.items()}
    return Snapshot("r", None, None, tuple(RepoFile(f) for f in (*files, *written)), written)


ADAPTER = {"base_model_name_or_path": "acme/Base-7B", "peft_type": "LORA"}
MLX_ADAPTER = {"model": "acme/Base-7B", "fine_tune_type": "lora"}


@pytest.mark.parametrize(
    ("folder", "adapter"),
    [
        (listing("adapter_model.safetensors", adapter_config__json=ADAPTER), True),
        (listing(adapter_config__json=ADAPTER), True),
        (
            listing("adapter_model.bin", adapter_config__json=ADAPTER, config__json={"model_type": "llama"}),
            True,
        ),
        (listing("model.safetensors", "adapter_model.safetensors", adapter_config__json=ADAPTER), False),
        (
            listing(
                "adapter_model.safetensors",
                "optimizer.pt",
                "rng_state_0.pth",
                "scheduler.pt",
                "training_args.bin",
                "random_states_0.pkl",
                "checkpoint-9/optimizer.bin",
                "global_step9/mp_rank_00_model_states.pt",
                adapter_config__json=ADAPTER,
            ),
            True,
        ),
        (listing(adapter_config__json=ADAPTER, config__json={"model_type": "llama"}), False),
        (listing("speech-lora/adapter_model.safetensors", "speech-lora/adapter_config.json"), True),
        (listing("model.safetensors", "speech-lora/adapter_model.safetensors"), False),
        (
            listing("adapters.safetensors", "0000100_adapters.safetensors", adapter_config__json=MLX_ADAPTER),
            True,
        ),
        (listing("adapters.npz", adapter_config__json=MLX_ADAPTER), True),
        (listing("model.safetensors", "adapters.safetensors", adapter_config__json=MLX_ADAPTER), False),
        (listing("qlora.safetensors", config__json={"model_type": "llama"}), False),
    ],
)
def test_an_adapter_without_its_model(folder: Snapshot, adapter: bool) -> None:
    found = find_kind(folder)
    assert (found.kind == "adapter") is adapter
    error = found.error("r")
    assert (error is not None) is adapter
    if error is not None:
        assert ("acme/Base-7B" in hint(error)) is bool(folder.texts)  # else no file names the base model


def test_an_adapter_that_only_its_name_shows() -> None:
    assert find_kind(listing("pytorch_lora_weights.safetensors")).kind == "adapter"


def test_models_in_folders_are_refused_by_name() -> None:
    inside = ("int4/config.json", "int4/model.safetensors", "int8/config.json", "int8/pytorch_model.bin")
    error = find_kind(listing(*inside, "README.md")).error("acme/two")
    assert error is not None
    assert error.kind == "in-folders"
    assert "int4, int8" in error.message
    assert find_kind(listing(*inside, config__json={"model_type": "llama"})).kind != "in-folders"


@pytest.mark.parametrize(
    ("folder", "nothing"),
    [
        (listing("README.md"), True),
        (listing(config__json={}), True),
        (listing("tokenizer.json", tokenizer_config__json={"chat_template": "x"}), True),
        (listing("tokenizer.model", "chat_template.jinja"), True),
        (listing("chat_template.jinja"), False),
        (listing(tokenizer_config__json={"eos_token": "x"}), False),
        (listing(config__json={"model_type": "llama"}), False),
        (listing("tokenizer.json", "model-00001-of-00002.safetensors"), False),
        (listing("params.json", "tekken.json"), False),
        (Snapshot("r", "a/b", None, (), {}, {"config": {"model_type": "llama"}}), False),
    ],
)
def test_a_repository_that_shows_no_model(folder: Snapshot, nothing: bool) -> None:
    assert holds_nothing(folder) is nothing


def test_a_trainer_s_state_is_no_weights() -> None:
    gguf = find_kind(listing("m-Q8_0.gguf", "training_args.bin", config__json={"model_type": "llama"}))
    assert gguf.kind == "gguf-only"


@pytest.mark.parametrize(
    ("task", "tags", "warned"),
    [
        ("text-to-speech", ["text-to-speech"], True),
        ("text-to-image", [], True),
        (None, ["text-to-speech"], True),
        ("text-generation", ["text-to-speech"], True),
        ("any-to-any", ["text-to-speech"], False),
        ("automatic-speech-recognition", [], False),
        ("image-text-to-text", [], False),
    ],
)
def test_a_task_that_returns_no_text_is_shown_beside_a_template(
    task: str | None, tags: list[str], warned: bool
) -> None:
    found = find_kind(snapshot(texts=TEMPLATE, config=arch("LlamaForCausalLM"), pipeline_tag=task, tags=tags))
    assert found.kind == "chat"
    assert any(is_warning(e.reason) for e in found.evidence) is warned


def test_a_tag_of_the_card_counts_in_a_folder() -> None:
    card = "---\ntags:\n- 7\n- [x]\n- text-to-speech\n---\n"
    found = find_kind(snapshot(texts={**TEMPLATE, "README.md": card}, config=arch("LlamaForCausalLM")))
    assert any(is_warning(e.reason) for e in found.evidence)
