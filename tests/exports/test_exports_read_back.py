"""Exports are read back to the same values, and no value leaves its place."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from importer.document import schema
from importer.engines.base import Address
from importer.engines.mlx import Mlx
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.sglang import SGLang
from importer.engines.vllm import SPACE, VllmCpu, VllmCuda, server, sizes_cache
from importer.engines.vllm_mlx import VllmMlx
from importer.errors import DocumentError
from importer.exports import FORMATS
from importer.exports.base import Options
from importer.exports.kinds import ExportComment
from importer.exports.texts import commented, yaml_text
from importer.reasons import Reason
from tests.cluster_objects import faults
from tests.exporting import (
    COMMIT,
    NASTY,
    VLLM,
    apart,
    commands,
    documents,
    fetched,
    flattened,
    in_a_pod,
    in_compose,
    rebuilt,
    text,
    unescaped,
)


@pytest.mark.slow
@given(documents(), st.sampled_from(("gpu", "cpu")))
@example(
    {"name": "0", "backend": "vllm-mlx", "parameters": {"model": "acme/Tiny-8B"}, "options": ["a:\\"]}, "gpu"
)
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_any_document_reads_back_to_the_same_values(document: dict[str, Any], device: Any) -> None:
    kinds: set[str] = set()
    for name, form in FORMATS.items():
        try:
            made = form.export(document, None, Options(device))
        except DocumentError as refused:  # a value that is no word or number where one belongs
            kinds.add(refused.kind)
            continue
        told = next(iter(made.files.values()))
        assert all(c.isprintable() or c == "\n" for c in told), told
        READ_BACK[name](document, told, VllmCpu() if device == "cpu" else VllmCuda())
    assert kinds <= {"invalid", "cannot-export"}


def _pin(document: dict[str, Any]) -> str | None:
    model, block = document["parameters"]["model"], document.get("importer", {})
    pinned = [(block.get("model_id"), block.get("revision"))] if block else []
    pinned += [(a["source"]["repo"], a["source"]["revision"]) for a in document.get("artifacts", ())]
    here = "/" not in model or model.startswith(".") or (block and "model_id" not in block)
    return None if here or (model, COMMIT) not in pinned else COMMIT


def _vllm_command(document: dict[str, Any], told: str, engine: Any) -> None:
    words = engine.settings(document, Address(), _pin(document), f"./{document['name']}.vllm")
    model = document["parameters"]["model"]
    start = ["vllm", "serve", model] if engine.needs_card else ["python", *server(document, model)]
    (found,) = commands(told)
    sized = engine.needs_card or sizes_cache(document)
    assert found == [*([] if sized else ["env", f"{SPACE}=4"]), *start, *words]


def _vllm_config(document: dict[str, Any], told: str, engine: Any) -> None:
    words = engine.settings(document, Address(), _pin(document), f"./{document['name']}.vllm")
    assert flattened(told) == ["--model", document["parameters"]["model"], *apart(words)]


def _sglang_command(document: dict[str, Any], told: str, _engine: Any) -> None:
    words = SGLang().settings(document, Address(port=30000), _pin(document), f"./{document['name']}.sglang")
    (found,) = commands(told)
    assert found == ["sglang", "serve", f"--model-path={document['parameters']['model']}", *words]


def _sglang_config(document: dict[str, Any], told: str, _engine: Any) -> None:
    words = SGLang().settings(document, Address(port=30000), _pin(document), f"./{document['name']}.sglang")
    assert flattened(told) == ["--model-path", document["parameters"]["model"], *apart(words)]


def _compose(document: dict[str, Any], told: str, engine: Any) -> None:
    data = yaml.safe_load(told)
    schema.check("compose", data, "compose.yaml")
    if document["backend"] == "sglang":
        model, *words = data["services"]["sglang"]["command"]
        address = Address("0.0.0.0", 30000)
        assert [in_compose(w) for w in words] == SGLang().settings(
            document, address, _pin(document), "/settings"
        )
        return
    model, *words = data["services"]["vllm"]["command"]
    assert in_compose(model) in (document["parameters"]["model"], "/model")
    address = Address("0.0.0.0")
    assert [in_compose(w) for w in words] == engine.settings(document, address, _pin(document), "/settings")


def _kserve(document: dict[str, Any], told: str, engine: Any) -> None:
    data = yaml.safe_load(told)
    schema.check("inferenceservice", data, "kserve")
    words = [in_a_pod(w) for w in data["spec"]["predictor"]["model"]["args"]]
    assert [unescaped(w) for w in words] == [unescaped(w) for w in engine.settings(document)]


def objects(told: str) -> dict[str, dict[str, Any]]:
    """The objects of a stream by kind, each without a fault."""
    found = {item["kind"]: item for item in yaml.safe_load_all(told)}
    assert [fault for item in found.values() for fault in faults(item)] == []
    return found


def _in_pod(document: dict[str, Any], pod: dict[str, Any], engine: Any, port: int) -> None:
    model, *words = [in_compose(word) for word in pod["containers"][0]["args"]]
    assert model == document["parameters"]["model"]
    assert words == engine.settings(document, Address("0.0.0.0", port), _pin(document), "/settings")


def _kubernetes(document: dict[str, Any], told: str, engine: Any) -> None:
    _in_pod(document, objects(told)["Deployment"]["spec"]["template"]["spec"], engine, 8000)


def _kaito(document: dict[str, Any], told: str, engine: Any) -> None:
    _in_pod(document, objects(told)["Workspace"]["inference"]["template"]["spec"], engine, 5000)


def _kubernetes_job(document: dict[str, Any], told: str, _engine: Any) -> None:
    """The document comes out of the ConfigMap as it went in, and a shell names it whole."""
    found = objects(told)
    (text,) = found["ConfigMap"]["data"].values()
    assert yaml.safe_load(text) == document
    (container,) = found["Job"]["spec"]["template"]["spec"]["containers"]
    *_, script = container["command"]
    words = ["python3", "-P", "-m", "importer", "validate", document["name"], "--dir", "/importer/work"]
    assert shlex.split(in_compose(script).partition(" exec ")[2]) == words


def _llm_d(document: dict[str, Any], told: str, engine: Any) -> None:
    """A shell splits the variable into the words of the adapter, but for the name, which is KServe's."""
    spec = objects(told)["LLMInferenceService"]["spec"]
    value = spec["template"]["containers"][0]["env"][0]["value"]
    words = engine.settings(document)
    assert f"--served-model-name={spec['model']['name']}" in words
    assert [unescaped(w) for w in shlex.split(in_a_pod(value))] == [unescaped(w) for w in unnamed(words)]


def unnamed(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("--served-model-name=")]


def _ray_serve(document: dict[str, Any], told: str, engine: Any) -> None:
    """Each keyword is the flag of the adapter, with the same value."""
    (application,) = yaml.safe_load(told)["applications"]
    (model,) = application["args"]["llm_configs"]
    loaded = {"model_id": document["name"], "model_source": document["parameters"]["model"]}
    assert model["model_loading_config"] == loaded
    words = unnamed(engine.settings(document, None, _pin(document)))
    assert [*keyword_words(model["engine_kwargs"])] == [unescaped(word) for word in words]


def keyword_words(keywords: dict[str, Any]) -> Iterator[Any]:
    """The flags of an engine's keywords, as ``unescaped`` reads flags."""
    for key, value in keywords.items():
        flag = f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            yield (flag if value else f"--no-{flag[2:]}", "")
        elif isinstance(value, list):
            yield (flag, "")
            yield from ((str(item), "") for item in value)
        else:
            yield (flag, value if isinstance(value, dict) else str(value))


def _gpustack(document: dict[str, Any], told: str, engine: Any) -> None:
    (entry,) = yaml.safe_load(told)["model_sets"]
    (spec,) = entry["specs"]
    assert (entry["name"], spec["huggingface_repo_id"]) == (document["name"], document["parameters"]["model"])
    split = [word for parameter in spec["backend_parameters"] for word in shlex.split(parameter)]
    assert not any("{{" in word or "{data_dir}" in word for word in split)
    assert [unescaped(w) for w in split] == [unescaped(w) for w in unnamed(engine.settings(document))]


# llama-swap's ``config-schema.json`` and its ``SanitizeCommand``, read on 2026-11-28, for what an export has.
MODALITIES = {
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {"enum": ["text", "audio", "image"]},
}
LLAMA_SWAP = {
    "type": "object", "required": ["models"], "additionalProperties": False,
    "properties": {
        "healthCheckTimeout": {"type": "integer", "minimum": 15},
        "models": {
            "type": "object",
            "additionalProperties": {
                "type": "object", "required": ["cmd"], "additionalProperties": False,
                "properties": {
                    "cmd": {"type": "string", "minLength": 1},
                    "proxy": {"const": "http://127.0.0.1:${PORT}"},
                    "name": {"type": "string", "maxLength": 128},
                    "description": {"type": "string", "maxLength": 1024},
                    "env": {"type": "array", "items": {"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*="}},
                    "useModelName": {"type": "string"},
                    "metadata": {"type": "object"},
                    "capabilities": {
                        "type": "object", "additionalProperties": False,
                        "properties": {
                            "in": MODALITIES, "out": MODALITIES, "tools": {"type": "boolean"},
                            "reranker": {"type": "boolean"}, "context": {"type": "integer", "minimum": 0},
                        },
                    },
                },
            },
        },
    },
}  # fmt: skip


def swapped(told: str) -> tuple[dict[str, Any], list[str]]:
    """The entry of a configuration and the words of its command, as llama-swap makes them: macros in every
    text, unknown ones refused; comment lines and a backslash at the end of a line; then a shell's rules.
    """
    data = yaml.safe_load(told)
    assert [*Draft202012Validator(LLAMA_SWAP).iter_errors(data)] == []
    (entry,) = data["models"].values()
    assert re.findall(r"\$\{env\.\w+\}", told) == []
    texts = json.dumps({**entry, "env": ""}).replace("${PORT}", "5800")
    assert re.findall(r"\$\{[\w-]+\}", texts) == []
    lines = [line.strip() for line in entry["cmd"].replace("${PORT}", "5800").split("\n")]
    assert not any(line.startswith("#") or line.endswith("\\") for line in lines)
    return entry, shlex.split("\n".join(lines))


def _llama_swap(document: dict[str, Any], told: str, engine: Any) -> None:
    entry, words = swapped(told)
    model, pin, backend = document["parameters"]["model"], _pin(document), document["backend"]
    folder, local = f"./{document['name']}.{backend}", Address(port=5800)
    if backend in ("mlx", "mlx-vlm", "vllm-mlx"):
        served = model if pin is None else folder
        program = {"mlx": "mlx_lm.server", "mlx-vlm": "mlx_vlm.server", "vllm-mlx": "vllm-mlx serve"}[backend]
        on_mlx = {"mlx": Mlx(), "mlx-vlm": MlxVlm(), "vllm-mlx": VllmMlx()}[backend]
        if pin is not None:
            assert words[:2] == ["sh", "-c"]
            first, _, last = words[2].rpartition(" && exec ")
            assert [shlex.split(part) for part in first.split(" && ")[-2:]] == fetched(model, pin, served)
            words = shlex.split(last)
        expected = [*program.split(), *on_mlx.settings(document, served, local)]
        assert entry.get("useModelName") == (None if backend == "vllm-mlx" else served)
    elif backend == "sglang":
        expected = [
            "sglang",
            "serve",
            f"--model-path={model}",
            *SGLang().settings(document, local, pin, folder),
        ]
    else:
        start = ["vllm", "serve", model] if engine.needs_card else ["python", *server(document, model)]
        expected = [*start, *engine.settings(document, local, pin, folder)]
    assert [unescaped(word) for word in words] == [unescaped(word) for word in expected]


def _kubeai(document: dict[str, Any], told: str, engine: Any) -> None:
    """KubeAI's controller adds the model and its name; Kubernetes puts variables into the rest."""
    spec = objects(told)["Model"]["spec"]
    assert spec["url"] == f"hf://{document['parameters']['model']}"
    words = unnamed(engine.settings(document, None, _pin(document)))
    assert [in_compose(word) for word in spec["args"]] == words


def _recipe(document: dict[str, Any], told: str, engine: Any) -> None:
    """Every word of the server stands in the recipe once, but for the name that only we serve."""
    data = yaml.safe_load(told)
    schema.check("vllm-recipe", data, "recipe")
    words = engine.settings(document)
    assert data["model"]["model_id"] == document["parameters"]["model"]
    assert sorted(rebuilt(data)) == sorted(w for w in words if not w.startswith("--served-model-name="))


def _on_mlx(engine: Any, program: str) -> Any:
    def check(document: dict[str, Any], told: str, _engine: Any) -> None:
        pin, model = _pin(document), document["parameters"]["model"]
        link = f"./{document['name']}.{engine.name}"
        expected = [] if pin is None else fetched(model, pin, link)
        words = engine.settings(document, model if pin is None else link, Address(port=8080))
        *first, found = commands(told)
        alone = pin is None and engine.name != "mlx"
        assert found == [*([] if alone else ["exec"]), *program.split(), *words]
        assert first == expected

    return check


def _localai(document: dict[str, Any], told: str, _engine: Any) -> None:
    data = yaml.safe_load(told)
    schema.check("localai-model", data, "localai")
    assert data["name"] == document["name"]
    for key in ("description", "system_prompt", "stopwords"):
        assert data.get(key) == document.get(key)
    for key in ("top_p", "presence_penalty"):
        if document["parameters"].get(key) is not None:
            assert data["parameters"][key] == document["parameters"][key]


def _localai_gallery(document: dict[str, Any], told: str, _engine: Any) -> None:
    data = yaml.safe_load(told)
    schema.check("localai-gallery", data, "gallery")
    (entry,) = data
    schema.check("localai-model", entry["config_file"], "gallery")
    assert entry["description"].startswith(document.get("description", "").strip())  # facts follow


READ_BACK = {
    "vllm-command": _vllm_command, "vllm-config": _vllm_config, "compose": _compose, "kserve": _kserve,
    "llm-d": _llm_d, "kubernetes": _kubernetes, "kubernetes-job": _kubernetes_job, "kaito": _kaito,
    "kubeai": _kubeai, "llama-swap": _llama_swap,
    "ray-serve": _ray_serve, "gpustack": _gpustack, "vllm-recipe": _recipe,
    "sglang-command": _sglang_command, "sglang-config": _sglang_config,
    "mlx-command": _on_mlx(Mlx(), "mlx_lm.server"),
    "mlx-vlm-command": _on_mlx(MlxVlm(), "mlx_vlm.server"),
    "vllm-mlx-command": _on_mlx(VllmMlx(), "vllm-mlx serve"),
    "localai": _localai, "localai-gallery": _localai_gallery,
}  # fmt: skip


def test_every_format_is_read_back() -> None:
    assert set(READ_BACK) == set(FORMATS)


def comment(text: str) -> Reason:
    return Reason(ExportComment.COMMAND, command=text)


@given(st.recursive(st.text() | st.sampled_from(NASTY) | st.integers() | st.booleans(), st.lists))
def test_yaml_that_every_library_reads_alike(data: Any) -> None:
    told = yaml_text(data, map(comment, ["a comment\nthat: breaks", "\x85out\u2028"]))
    assert yaml.safe_load(told) == data
    bare = [t.value for t in yaml.scan(told) if isinstance(t, yaml.ScalarToken) and t.plain]
    assert all(re.fullmatch(r"-?[0-9]+|true|false|[A-Za-z/][\w./+@-]+", word, re.ASCII) for word in bare)


@given(st.lists(st.text()))
def test_a_comment_stays_a_comment(lines: list[str]) -> None:
    told = commented(map(comment, lines))
    assert told.count("\n") == len(lines)
    assert all(line.startswith("# ") for line in told.splitlines())


# The schemas refuse what is broken


def broken(name: str, data: Any) -> bool:
    try:
        schema.check(name, data, "x")
    except DocumentError:
        return True
    return False


def changed(data: Any, path: str, value: Any) -> Any:
    """A copy with one value changed; ``None`` takes it out."""
    copy = json.loads(json.dumps(data))
    *steps, last = [int(s) if s.isdecimal() else s for s in path.split("|")]
    place = copy
    for step in steps:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copy


SERVICE, MODEL = "services|vllm|", "spec|predictor|model|"


@pytest.mark.parametrize(
    ("form", "name", "path", "value"),
    [
        ("localai", "localai-model", "importer", {}),
        ("localai", "localai-model", "parameters|model", "/etc/passwd"),
        ("localai", "localai-model", "artifacts|0|source|token_env", "AWS_SECRET"),
        ("localai-gallery", "localai-gallery", "0|name", "../x"),
        ("compose", "compose", f"{SERVICE}command|1", "$HOME"),
        ("compose", "compose", f"{SERVICE}image", "vllm/vllm-openai:latest"),
        ("compose", "compose", f"{SERVICE}environment|0", "HF_TOKEN=hf_secret"),
        ("compose", "compose", f"{SERVICE}privileged", True),
        ("kserve", "inferenceservice", f"{MODEL}args|0", "--x=$(HF_TOKEN)"),
        ("kserve", "inferenceservice", f"{MODEL}env|0|name", "HF_TOKEN"),
    ],
)
def test_the_schemas_refuse_what_is_broken(form: str, name: str, path: str, value: Any) -> None:
    data = yaml.safe_load(text(form, VLLM))
    assert not broken(name, data)
    assert broken(name, changed(data, path, value))


@pytest.mark.parametrize(
    ("form", "kind", "path", "value"),
    [
        ("kubernetes", "Deployment", "spec|template|spec|containers|0|args|1", "--x=$(HF_TOKEN)"),
        ("kubernetes", "Deployment", "spec|template|spec|containers|0|securityContext|privileged", True),
        (
            "kubernetes",
            "Deployment",
            "spec|template|spec|containers|0|env|0",
            {"name": "HF_TOKEN", "value": "x"},
        ),
        ("kubernetes", "Deployment", "metadata|name", "Qwen2.5"),
        ("kaito", "Workspace", "resource|labelSelector", None),
        ("kubeai", "Model", "spec|args|0", "--x=$(HF_TOKEN)"),
        ("kubeai", "Model", "spec|url", "s3://bucket/model"),
        ("kubeai", "Model", "spec|features|0", "Chat"),
        ("llm-d", "LLMInferenceService", "spec|model|uri", "hf://acme/Tiny-8B:main"),
        ("llm-d", "LLMInferenceService", "spec|template|containers|0|name", "vllm"),
    ],
)
def test_objects_that_are_broken_have_faults(form: str, kind: str, path: str, value: Any) -> None:
    item = objects(text(form, VLLM))[kind]
    assert faults(changed(item, path, value))


@pytest.mark.parametrize("name", ["kserve", "llm-d", "kubernetes", "kaito"])
def test_a_variable_of_a_pod_is_no_reference_to_another(name: str) -> None:
    """Kubernetes puts other variables into values, too."""
    told = text(name, VLLM | {"env": {"NCCL_TOPO_FILE": "$(HOME)"}})
    assert '"$$(HOME)"' in told
