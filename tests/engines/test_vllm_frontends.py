"""vLLM's two frontends: their registries, and how a document is started with the one in Rust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from importer.app.target import bind
from importer.document.document_keys import frontend_of
from importer.engines import registries, vllm
from importer.engines.vllm import VllmCpu, VllmCuda
from importer.errors import DocumentError, UsageError


def document(frontend: str | None = "rust", version: str = "0.33.0", **more: Any) -> dict[str, Any]:
    engine = {"name": "vllm", "version": version, **({} if frontend is None else {"frontend": frontend})}
    base = {"name": "m", "backend": "vllm", "parameters": {"model": "o/m"}, "importer": {"engine": engine}}
    return {**base, **more}


def test_the_registry_of_the_frontend_in_rust() -> None:
    rust, python = registries.load("vllm", "0.33.0", "rust"), registries.load("vllm", "0.33.0", "python")
    assert (len(rust.names("tool")), len(rust.names("reasoning"))) == (32, 27)
    assert not rust.has("tool", "mistral_x")
    assert not rust.has("tool", "granite")
    assert python.has("tool", "granite")
    assert rust.has("reasoning", "cohere_cmd")
    assert not python.has("reasoning", "cohere_cmd")
    assert {"hf", "beam", "gemma4", "kimi_k3"} <= rust.joint
    assert "hermes" not in rust.joint
    assert python.joint == frozenset()
    assert rust.entries["tool"]["qwen3_xml"].aliases == ("qwen3_coder",)
    assert registries.load("vllm", None, "rust").version == "0.33.0"


def test_documents_for_cards_name_the_newest_version_with_registries() -> None:
    """``python -m gen_defaults`` adds a registry for each new version; then the pin moves with it."""
    newest = registries.versions("vllm")[-1]
    assert registries.PINNED["vllm-cuda"] == newest
    assert registries.versions("vllm-rust")[-1] == newest
    assert registries.load_capabilities("vllm", newest).architectures


def test_the_frontend_guesses_by_the_models_id() -> None:
    rust = registries.load("vllm", "0.33.0", "rust")
    assert rust.guess("reasoning", "Qwen/Qwen3-4B-Instruct-2507") == "qwen3"
    assert rust.guess("tool", "google/gemma-4-12B-it") == "gemma4"
    assert rust.guess("tool", "acme/anvil") is None
    assert registries.load("vllm", "0.33.0").guess("tool", "Qwen/Qwen3-4B") is None


def test_versions_with_several_frontends() -> None:
    assert registries.frontends("vllm", "0.33.0") == ("python", "rust")
    assert registries.frontends("vllm-cuda", "0.33.0") == ("python", "rust")
    assert registries.frontends("vllm", "0.32.0") == ()
    assert registries.frontends("mlx", "0.33.0") == ()
    with pytest.raises(UsageError, match="no frontend in Rust"):
        registries.load("vllm", "0.32.0", "rust")


def test_a_target_for_each_frontend(importer_home: Path) -> None:
    rust = bind("vllm", frontend="rust", ask=False).target
    assert (rust.version, rust.frontend) == ("0.33.0", "rust")
    assert not rust.has("tool_parser", "granite")
    assert "granite" in rust.elsewhere["tool_parser"]
    assert rust.templates == ("json",)
    cards = bind("vllm", kind="cuda", ask=False).target
    assert (cards.version, cards.frontend) == (registries.PINNED["vllm-cuda"], "python")
    processors = bind("vllm", kind="cpu", ask=False).target
    assert (processors.version, processors.frontend) == (registries.PINNED["vllm"], None)
    with pytest.raises(UsageError, match="only vLLM has several frontends"):
        bind("mlx", frontend="rust", ask=False)
    with pytest.raises(UsageError, match="no frontend in Rust"):
        bind("vllm", "0.32.0", frontend="rust", ask=False)


def test_the_words_of_a_start_with_rust() -> None:
    options = ["tool_parser:hermes"]
    parameters = {"model": "o/m", "temperature": 0.6, "seed": 3}
    data = document(options=options, parameters=parameters, stopwords=["END"], max_model_len=4096)
    launch = VllmCuda().launch(data, Path("/models/m"), 8000)
    assert launch.arguments[:4] == ("-m", "vllm.entrypoints.cli.main", "serve", "/models/m")
    assert launch.env["VLLM_USE_RUST_FRONTEND"] == "1"
    words = [*launch.arguments]
    assert "--tool-call-parser=hermes" in words
    assert "--reasoning-parser=none" in words
    assert "--max-model-len=4096" in words
    assert "--enable-auto-tool-choice" not in words
    assert not any(word.startswith(("--override", "--generation")) for word in words)
    assert not any("auto" in word for word in words)
    assert VllmCuda().client_sampling(data) == {"temperature": 0.6, "seed": 3, "stopwords": ["END"]}
    assert launch.files == {}


def test_what_the_frontend_has_no_option_for() -> None:
    lacking = {"mm_processor_kwargs": {"a": 1}, "max_num_seqs": 8}
    words = VllmCuda().settings(document(engine_args=lacking))
    assert "--max-num-seqs=8" in words
    assert not any("mm-processor" in word for word in words)
    python = VllmCuda().settings(document("python", engine_args=lacking))
    assert any("mm-processor" in word for word in python)
    unset = document()
    unset["importer"]["unset"] = ["temperature"]
    assert "--generation-config=vllm" in VllmCuda().settings(unset)
    itself = document()
    itself["importer"]["no_parser"] = {"tool_parser": "built-in", "reasoning_parser": "built-in"}
    assert not any("parser" in word for word in VllmCuda().settings(itself))


def test_an_earlier_version_cannot_be_started_so() -> None:
    with pytest.raises(DocumentError, match=r"0\.33"):
        VllmCpu().settings(document(version="0.32.0"))


@pytest.mark.parametrize("engine", [None, "vllm", {"frontend": "go"}, {"frontend": ["rust"]}])
def test_a_frontend_that_is_none_is_none(engine: object) -> None:
    assert frontend_of({"importer": {"engine": engine}}) is None
    assert frontend_of({"importer": 3}) is None


def test_a_document_for_rust_promises_the_endpoints_of_its_server() -> None:
    offered = VllmCuda().offers
    assert {"messages", "responses", "tokenize"} <= vllm.offers(document("python"), offered)
    rust = vllm.offers(document(), offered)
    assert "tokenize" in rust
    assert not rust & {"messages", "responses", "call-pieces"}
    mlx = {**document(), "backend": "mlx"}
    assert vllm.offers(mlx, offered) == offered
