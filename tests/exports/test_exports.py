"""Exports without their consumers: what each carries and says, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.document import schema
from importer.document.document_keys import digest
from importer.document.receipt import Receipt, ReviewEntry
from importer.document.template_file import ChatTemplate
from importer.engines.base import Address
from importer.engines.mlx import Mlx
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.vllm import VllmCpu, VllmCuda
from importer.engines.vllm_mlx import VllmMlx
from importer.errors import DocumentError
from importer.exports import FORMATS
from importer.exports.base import Exported, Options
from importer.exports.kinds import ExportRemedy, Unexportable
from tests.exporting import (
    COMMIT,
    DOCUMENTS,
    ON_MLX,
    ON_MLX_VLM,
    ON_SGLANG,
    ON_VLLM_MLX,
    VLLM,
    commands,
    export,
    fetched,
    flattened,
    in_a_pod,
    in_compose,
    text,
    unescaped,
)
from tests.product.test_structure import PURE, imports, room
from tests.syntax import MODULES

OPTIONS = Options()
BACKENDS = ("mlx-vlm", "mlx", "sglang", "vllm-mlx", "vllm")  # a name before those that begin it
PINS = [f"--{of}revision={COMMIT}" for of in ("", "tokenizer-", "code-")]
OF_VLLM = (
    "vllm-config", "vllm-command", "compose", "kserve", "llm-d", "kubernetes", "kaito", "ray-serve", "kubeai",
)  # fmt: skip
FETCHED_FIRST = ("kserve", "llm-d", "ray-serve", "kubeai")  # they have no place for a file beside the model
IN_A_STREAM = ("kubernetes", "kaito")  # the file is an object of its own
RECEIPT = Receipt(
    name="tiny-8b", reference="acme/Tiny-8B", model_id="acme/Tiny-8B", revision=COMMIT, directory=None,
    digest=digest(VLLM), imported_at="", importer="", engine={}, decisions={}, evidence=(), unknown={},
    review={"state": "pending"},
)  # fmt: skip


def test_an_export_opens_starts_and_asks_nothing() -> None:
    modules = [name for name in MODULES if room(name) == "exports"]
    assert {one.module for one in FORMATS.values()} < {*modules}
    whole = {name for module in modules for name in imports(module)}
    used = {name.split(".")[0] for name in whole if not name.startswith("urllib.parse.")} - {"importer"}
    assert used <= PURE | {"hashlib", "importlib", "json", "shlex", "yaml"}


# What each carries


@pytest.mark.parametrize(("high", "gib"), [(None, "4"), (2**30, "4"), (2**33, "8")])
def test_on_processors_vllm_is_started_by_its_module_with_a_cache_that_leaves_memory(
    high: int | None, gib: str
) -> None:
    """The build for processors has no ``vllm serve`` that works; unset, its cache is 92 % of all memory."""
    document = {key: value for key, value in VLLM.items() if key != "gpu_memory_utilization"}
    terms = [] if high is None else [{"part": "kv cache", "high": high}, {"part": "weights", "high": 1}]
    receipt = replace(RECEIPT, fit={"device": None, "estimate": {"terms": terms}})
    for name in ("vllm-command", "vllm-config"):
        script = text(name, document, receipt=receipt, device="cpu")
        start = f"VLLM_CPU_KVCACHE_SPACE={gib} python -m vllm.entrypoints.openai.api_server"
        assert start in script
        assert "VLLM_CPU_KVCACHE_SPACE is a guess" in script
    told = text("vllm-command", {**document, "engine_args": {"kv_cache_memory_bytes": 1}}, device="cpu")
    assert "VLLM_CPU_KVCACHE_SPACE" not in told
    assert "vllm serve acme/Tiny-8B" in text("vllm-command", document)


@pytest.mark.parametrize(("device", "engine"), [("gpu", VllmCuda()), ("cpu", VllmCpu())])
def test_compose(device: str, engine: VllmCpu | VllmCuda) -> None:
    data = yaml.safe_load(text("compose", VLLM, device=device))
    schema.check("compose", data, "compose.yaml")
    service = data["services"]["vllm"]
    words = engine.settings(VLLM, Address("0.0.0.0"), COMMIT)
    assert [in_compose(w) for w in service["command"]] == ["acme/Tiny-8B", *words]
    image = "vllm/vllm-openai-cpu" if device == "cpu" else "vllm/vllm-openai"
    assert service["image"] == f"{image}:v0.32.0"
    assert ("--enforce-eager" in words) == (device == "cpu") == ("deploy" not in service)
    assert "HF_TOKEN" in service["environment"]
    if device == "gpu":
        card = service["deploy"]["resources"]["reservations"]["devices"][0]
        assert (card["count"], card["capabilities"]) == (2, ["gpu"])


FIT = {
    "device": {"name": "this machine", "count": 1, "kind": "cpu", "memory": 2**35, "share": 0.85},
    "verdict": "fits", "message": "", "wanted": None, "chosen": {}, "cards": 2,
    "weights": {"low": 1, "likely": 5 * 2**30, "high": 1, "source": "files"},
    "estimate": {"load": {}, "terms": [], "total": {"low": 1, "likely": 1, "high": 7.5 * 2**30}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "asked", "image", "memory", "warned"),
    [
        ("cpu", None, "vllm/vllm-openai-cpu", "15Gi", False),
        ("cpu", "gpu", "vllm/vllm-openai", "13Gi", True),
        ("cuda", None, "vllm/vllm-openai", "13Gi", False),
        ("rocm", None, "vllm/vllm-openai", "13Gi", True),
        (None, None, "vllm/vllm-openai", "16Gi", False),
    ],
)
def test_an_export_is_for_what_the_document_was_fitted_to(
    kind: str | None, asked: str | None, image: str, memory: str, warned: bool
) -> None:
    fit = None if kind is None else {**FIT, "device": {**FIT["device"], "kind": kind}}  # type: ignore[dict-item]
    for name in ("kserve", "compose"):
        told = text(name, VLLM, receipt=replace(RECEIPT, fit=fit), device=asked)
        assert f'"{image}:v0.32.0"' in told
        assert ("WARNING: this is for" in told) == warned
        assert (f"chosen for this machine ({kind})" in told) == (kind is not None)
        assert name != "kserve" or f'memory: "{memory}"' in told


def test_the_comment_on_the_fit_has_the_number_of_cards() -> None:
    fit = {**FIT, "device": {**FIT["device"], "name": "t4", "count": 2, "kind": "cuda"}}  # type: ignore[dict-item]
    assert "chosen for 2xt4 (cuda)" in text("compose", VLLM, receipt=replace(RECEIPT, fit=fit))


@pytest.mark.parametrize(
    ("kind", "changes", "space", "gib"),
    [
        ("cuda", {}, "6", 21),  # the share of a card is none of this memory
        (None, {"engine_args": {}}, "6", 21),
        ("cpu", {"env": {"VLLM_CPU_KVCACHE_SPACE": "10"}}, "10", 25),
        ("cpu", {"engine_args": {"kv_cache_memory_bytes": 8 * 2**30}}, None, 23),
        ("cpu", {"gpu_memory_utilization": 0.5}, None, 21),
    ],
)
def test_a_pod_on_processors_has_memory_for_weights_and_cache(
    kind: str | None, changes: dict[str, Any], space: str | None, gib: int
) -> None:
    terms = [{"part": "weights", "high": 15 * 2**30}, {"part": "kv cache", "high": 6 * 2**30}]
    device = None if kind is None else {**FIT["device"], "kind": kind}  # type: ignore[dict-item]
    fit = {**FIT, "device": device, "estimate": {"terms": terms, "total": {"high": 21 * 2**30}}}
    document = VLLM | {"tensor_parallel_size": 1} | changes
    told = text("kubernetes", document, receipt=replace(RECEIPT, fit=fit), device="cpu")
    container = next(yaml.safe_load_all(told))["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["memory"] == f"{gib}Gi"
    chosen = {one["name"]: one.get("value") for one in container["env"]}
    assert chosen.get("VLLM_CPU_KVCACHE_SPACE") == space


def refused(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """Why there is no such export, and what helps."""
    with pytest.raises(DocumentError) as caught:
        export(name, document, RECEIPT)
    assert caught.value.kind == "cannot-export"
    return dict(caught.value.details)


def test_compose_mounts_a_directory_of_this_machine() -> None:
    block = {k: v for k, v in VLLM["importer"].items() if k not in ("model_id", "revision")}
    here = VLLM | {"parameters": {"model": "./my$model"}, "importer": block, "artifacts": []}
    receipt = replace(RECEIPT, model_id=None, revision=None, directory="/srv/my$model")
    service = yaml.safe_load(text("compose", here, receipt=receipt))["services"]["vllm"]
    assert service["command"][0] == "/model"
    mount = service["volumes"][1]
    assert (mount["source"], mount["target"], mount["read_only"]) == ("/srv/my$$model", "/model", True)
    assert not [word for word in service["command"] if "revision" in word]
    assert refused("kserve", here)["reason"].kind is Unexportable.DIRECTORY


@pytest.mark.parametrize(("device", "cards"), [("gpu", "2"), ("cpu", None)])
def test_kserve(device: str, cards: str | None) -> None:
    data = yaml.safe_load(text("kserve", VLLM, device=device))
    schema.check("inferenceservice", data, "kserve")
    model = data["spec"]["predictor"]["model"]
    assert model["storageUri"] == f"hf://acme/Tiny-8B:{COMMIT}"
    assert model["resources"]["limits"].get("nvidia.com/gpu") == cards
    engine = VllmCuda() if cards else VllmCpu()
    words = [in_a_pod(w) for w in model["args"]]
    assert [unescaped(w) for w in words] == [unescaped(w) for w in engine.settings(VLLM)]
    assert data["metadata"]["annotations"]["importer/revision"] == COMMIT


def test_a_pod_has_the_cards_of_one_machine() -> None:
    """Of copies over machines those of its own."""
    over = {**VLLM["engine_args"], "data_parallel_size": 8, "data_parallel_size_local": 4}
    data = yaml.safe_load(text("kserve", VLLM | {"engine_args": over}))
    assert data["spec"]["predictor"]["model"]["resources"]["limits"]["nvidia.com/gpu"] == "8"


@pytest.mark.parametrize(
    ("name", "kubernetes"),
    [("tiny-8b", "tiny-8b"), ("qwen2.5_x", "qwen2-5-x"), ("01-ai", "m-01-ai"), ("a" * 90, "a" * 52)],
)
def test_a_name_that_kubernetes_takes(name: str, kubernetes: str) -> None:
    data = yaml.safe_load(text("kserve", VLLM | {"name": name}))
    schema.check("inferenceservice", data, "kserve")
    assert data["metadata"]["name"] == kubernetes
    assert f"--served-model-name={name}" in data["spec"]["predictor"]["model"]["args"]


@pytest.mark.parametrize(
    ("name", "document", "engine", "program"),
    [
        ("mlx-command", ON_MLX, Mlx(), "mlx_lm.server"),
        ("mlx-vlm-command", ON_MLX_VLM, MlxVlm(), "mlx_vlm.server"),
        ("vllm-mlx-command", ON_VLLM_MLX, VllmMlx(), "vllm-mlx serve"),
    ],
)
def test_mlx_fetches_the_commit_first(name: str, document: dict[str, Any], engine: Any, program: str) -> None:
    script = text(name, document)
    *fetch, serve = commands(script)
    link = f"./tiny-8b.{engine.name}"
    assert fetch == fetched("acme/Tiny-8B", COMMIT, link)
    assert serve == ["exec", *program.split(), *engine.settings(document, link, Address(port=8080))]
    assert f"{program} takes no revision" in script
    assert "set -e" in script
    assert ('"seed": 7' in script) == (engine.name != "vllm-mlx")  # no request of its clients can have one
    assert ("infers its parsers" in script) == (engine.name != "vllm-mlx")


@pytest.mark.parametrize("there", ["file", "folder", "link", None])
def test_the_script_for_mlx_replaces_a_link_and_nothing_else(there: str | None, tmp_path: Path) -> None:
    link, weights = tmp_path / "tiny-8b.mlx", tmp_path / "weights"
    weights.mkdir()
    if there == "file":
        link.write_text("mine")
    elif there == "folder":
        link.mkdir()
    elif there == "link":
        link.symlink_to("gone")
    (code, said), replaced = (
        _run(text("mlx-command", ON_MLX), f"echo {weights}", tmp_path),
        there in ("link", None),
    )
    assert (code, "is not a symbolic link" in said) == ((0, False) if replaced else (1, True))
    assert link.is_symlink() == replaced
    if replaced:
        assert link.readlink() == weights
    else:
        assert link.is_dir() and not [*link.iterdir()] if there == "folder" else link.read_text() == "mine"


def test_the_script_for_mlx_ends_with_the_code_of_a_failed_download(tmp_path: Path) -> None:
    assert _run(text("mlx-command", ON_MLX), "exit 3", tmp_path)[0] == 3
    (entry,) = yaml.safe_load(text("llama-swap", ON_MLX))["models"].values()
    assert _run(entry["cmd"], "exit 3", tmp_path)[0] == 3
    assert not (tmp_path / "tiny-8b.mlx").is_symlink()


def _run(script: str, download: str, folder: Path) -> tuple[int, str]:
    """Run a script where ``hf`` is ``download``; return its exit code and its errors."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name, line in (("hf", download), ("mlx_lm.server", "exit 0")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=path, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stderr


def test_sglang_gets_each_value_and_the_rest_is_said() -> None:
    made = export("sglang-command", ON_SGLANG)
    assert isinstance(made, Exported)
    ((*_, script),) = [made.files.values()]
    ((program, command, *words),) = commands(script)
    assert (program, command) == ("sglang", "serve")
    assert words[0] == "--model-path=acme/Tiny-8B"
    expected = (
        "--tool-call-parser=qwen", "--reasoning-parser=qwen3", "--context-length=32768", "--tp-size=2",
        f"--revision={COMMIT}", "--mem-fraction-static=0.8", "--kv-cache-dtype=fp8_e4m3",
    )  # fmt: skip
    assert {*expected} < {*words}
    assert '"temperature": 0' in script
    assert made.lost == ()
    lost = export("sglang-command", ON_SGLANG | {"gpu_memory_utilization": 0.9})
    assert isinstance(lost, Exported)
    assert keys(lost) == ["gpu_memory_utilization"]


def test_sglang_is_given_its_template_as_a_file() -> None:
    document = ON_SGLANG | {"importer": {**ON_SGLANG["importer"], "chat_template": "tiny-8b.jinja"}}
    options = Options(template=ChatTemplate(Path("tiny-8b.jinja"), "{{ 1 }}"))
    made = FORMATS["sglang-config"].export(document, None, options)
    assert isinstance(made, Exported)
    assert made.files["tiny-8b.sglang/chat_template.jinja"] == "{{ 1 }}"
    data = yaml.safe_load(made.files["tiny-8b.sglang.yaml"])
    assert data["chat-template"] == "./tiny-8b.sglang/chat_template.jinja"


def test_compose_serves_either_engine_and_no_other() -> None:
    data = yaml.safe_load(text("compose", ON_SGLANG))
    service = data["services"]["sglang"]
    assert service["image"] == "lmsysorg/sglang:v0.5.23"
    assert service["deploy"]["resources"]["reservations"]["devices"][0]["count"] == 2
    assert service["ports"] == ["127.0.0.1:30000:30000"]
    schema.check("compose", data, "compose.yaml")
    assert refused("compose", ON_MLX)


@pytest.mark.parametrize(
    ("key", "value"), [("api_key", "x"), ("speculative_algorithm", "EAGLE3"), ("page_size", [1])]
)
def test_sglang_is_refused_other_options(key: str, value: object) -> None:
    with pytest.raises(DocumentError, match=key):
        export("sglang-command", ON_SGLANG | {"engine_args": {key: value}})


# What each says


def backend_of(name: str) -> str:
    return next(one for one in BACKENDS if name.startswith(one) or one == "vllm")


@pytest.mark.parametrize("name", FORMATS)
def test_where_it_comes_from_and_who_approved_it(name: str) -> None:
    backend = backend_of(name)
    document = DOCUMENTS[backend]
    draft = text(name, document)
    for said in ("acme/Tiny-8B", COMMIT, digest(document), backend, "WARNING: this document is not approved"):
        assert said in draft
    receipt = replace(RECEIPT, digest=digest(document))
    approved = receipt.with_review(ReviewEntry("approved", "me", "now"), document)
    told = text(name, document, receipt=approved)
    assert "review: approved" in told
    assert "WARNING" not in told
    stale = text(name, document | {"description": "edited"}, receipt=approved)
    assert "review: stale" in stale
    assert "WARNING" in stale


def keys(made: Exported) -> list[object]:
    return [loss.fields["key"] for loss in made.lost]


@pytest.mark.parametrize("name", OF_VLLM)
def test_what_the_server_cannot_take_is_said(name: str) -> None:
    document = VLLM | {"system_prompt": "Be kind.", "stopwords": ["x"], "context_size": 5, "threads": 4}
    made = export(name, document | {"options": [*VLLM["options"], "colour:red"]})
    assert keys(made) == ["system_prompt", "context_size", "threads", "options: colour:red"]
    (told,) = made.files.values()
    assert '# vLLM takes these from clients only, so send them: {"seed": 7, "stop": ["x"]}' in told
    assert f"# vLLM has no option for: {', '.join(keys(made))}" in told
    assert export(name, VLLM).lost == ()


ENDS = {"end_tokens": {"2": "</s>", "106": "<end>"}}
STOPS = VLLM | {"stopwords": ["<end>"], "importer": {**VLLM["importer"], **ENDS}}


@pytest.mark.parametrize("name", OF_VLLM)
def test_stop_words_that_are_end_tokens_come_in_a_file_where_there_is_room_for_one(name: str) -> None:
    made = export(name, STOPS)
    told = next(iter(made.files.values()))
    assert made.lost == ()
    if name in FETCHED_FIRST:
        assert len(made.files) == 1
        assert '"stop": ["<end>"]' in told
        return
    if name in IN_A_STREAM:
        settings, *_ = yaml.safe_load_all(told)
        assert json.loads(settings["data"]["generation_config.json"]) == {"eos_token_id": [2, 106]}
        assert '"name": "tiny-8b-settings"' in json.dumps([*yaml.safe_load_all(told)][1])
        return
    assert json.loads(made.files["tiny-8b.vllm/generation_config.json"]) == {"eos_token_id": [2, 106]}
    assert '"stop"' not in told
    if name == "compose":
        service = yaml.safe_load(told)["services"]["vllm"]
        assert "--generation-config=/settings" in service["command"]
        mount = {"type": "bind", "source": "./tiny-8b.vllm", "target": "/settings", "read_only": True}
        assert mount in service["volumes"]
    else:
        words = commands(told)[0] if name == "vllm-command" else ["=".join(flattened(told)[-2:])]
        assert words[-1] == "--generation-config=./tiny-8b.vllm"


def test_what_mlx_cannot_take_is_said() -> None:
    assert keys(export("mlx-command", ON_MLX)) == ["max_model_len"]
    told = text("mlx-command", ON_MLX)
    assert '{"repetition_penalty": 1.05, "presence_penalty": -0.5, "seed": 7}' in told


OF_LOCALAI = ("localai", "localai-gallery")
ON_MLX_ALONE = ("mlx-command", "mlx-vlm-command", "vllm-mlx-command")


@pytest.mark.parametrize("name", [*OF_VLLM, *ON_MLX_ALONE, *OF_LOCALAI])
@pytest.mark.parametrize("backend", ["vllm", "mlx", "mlx-vlm", "vllm-mlx"])
def test_an_engine_that_the_format_is_not_for_is_a_reason_and_a_step(name: str, backend: str) -> None:
    meant = {"vllm"} if name in OF_VLLM else {name.removesuffix("-command")}
    meant = {"vllm", "mlx", "mlx-vlm"} if name.startswith("localai") else meant
    document = DOCUMENTS.get(backend, VLLM) | {"backend": backend}
    if backend in meant:
        assert export(name, document).files
        return
    why = refused(name, document)
    assert why["reason"].fields["backend"] == backend
    assert why["remedy"].kind is ExportRemedy.IMPORT_FOR


def test_a_commit_of_another_model_pins_nothing() -> None:
    moved = VLLM | {"parameters": {"model": "other/model"}}
    assert "revision" not in " ".join(*commands(text("vllm-command", moved)))
    assert "names no commit" in text("vllm-command", moved)


# llama-swap and KubeAI


def test_llama_swap_tells_clients_what_the_model_can() -> None:
    """Its list of models passes these on; an encoder has no text to give."""
    seeing = VLLM | {"limit_mm_per_prompt": {"image": 2}, "max_model_len": 8192}
    ranking = {key: value for key, value in VLLM.items() if key not in ("options", "limit_mm_per_prompt")}
    ranking |= {"known_usecases": ["rerank"]}
    for document, capabilities in (
        (seeing, {"in": ["text", "image"], "out": ["text"], "tools": True, "context": 8192}),
        (ranking, {"in": ["text"], "reranker": True, "context": VLLM["max_model_len"]}),
    ):
        (entry,) = yaml.safe_load(text("llama-swap", document))["models"].values()
        assert entry["capabilities"] == capabilities


def test_a_macro_of_llama_swap_is_plain_text() -> None:
    """An unknown macro ends its start; one of the environment is replaced before the YAML is read."""
    changed = VLLM | {"description": "${X}", "env": {"NCCL_TOPO_FILE": "${X}"}}
    entry = yaml.safe_load(text("llama-swap", changed))["models"]["tiny-8b"]
    assert ("${HOME}" in entry["cmd"], "${HOME}" in " ".join(shlex.split(entry["cmd"]))) == (False, True)
    assert (entry["description"], "NCCL_TOPO_FILE=${X}" in entry["env"]) == ("$ {X}", True)
    with pytest.raises(DocumentError, match="variable of llama-swap"):
        export("llama-swap", VLLM | {"env": {"NCCL_TOPO_FILE": "${env.HOME}"}})


def test_kubeai_has_a_feature_for_chats_and_vectors_alone() -> None:
    plain = {key: value for key, value in VLLM.items() if key != "options"}
    made = yaml.safe_load(text("kubeai", plain | {"known_usecases": ["embeddings"]}))
    assert made["spec"]["features"] == ["TextEmbedding"]
    why = refused("kubeai", plain | {"known_usecases": ["rerank"]})
    assert why["reason"].kind is Unexportable.NO_FEATURE
    long = text("kubeai", VLLM | {"name": "m" * 60})
    assert len(yaml.safe_load(long)["metadata"]["name"]) == 40


# Nothing breaks out


@pytest.mark.parametrize("model", ["--trust-remote-code", "-x"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_model_that_looks_like_an_option_is_refused(name: str, model: str) -> None:
    with pytest.raises(DocumentError, match="begins like an option"):
        FORMATS[name].export(DOCUMENTS[backend_of(name)] | {"parameters": {"model": model}}, None, OPTIONS)


def test_an_image_is_named_by_a_version_alone() -> None:
    for version in ("0.32.0 evil", "latest", "${X}", "0.32.0\nx"):
        block = {**VLLM["importer"], "engine": {"name": "vllm", "version": version}}
        for name in ("compose", "kserve"):
            with pytest.raises(DocumentError, match="not a version"):
                export(name, VLLM | {"importer": block})


def test_the_docs_have_a_row_for_each_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
    table = page.partition("## Start the server")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == list(FORMATS)
