"""Exports without their consumers: what they say and refuse, and that no value leaves its place."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from importer.document import schema
from importer.document.digest import digest
from importer.document.receipt import Receipt, Word
from importer.engines.base import Address
from importer.engines.mlx import Mlx
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.vllm import VllmCpu, VllmCuda
from importer.errors import DocumentError
from importer.exports import FORMATS
from importer.exports.base import Exported, Options, Refused
from importer.exports.text import commented, yaml_text
from tests.commandline import Desk, desk
from tests.exporting import COMMIT, DOCUMENTS, NASTY, ON_MLX, ON_MLX_VLM, VLLM, documents, export, text
from tests.test_structure import MODULES, PURE, imports, room

__all__ = ["desk"]
OPTIONS = Options()
PINS = [f"--{of}revision={COMMIT}" for of in ("", "tokenizer-", "code-")]
OF_VLLM = ("vllm-config", "vllm-command", "compose", "kserve")
RECEIPT = Receipt(
    name="tiny-8b", reference="acme/Tiny-8B", model_id="acme/Tiny-8B", revision=COMMIT, directory=None,
    digest=digest(VLLM), imported_at="", importer="", engine={}, decisions={}, evidence=(), unknown={},
    review={"state": "pending"},
)  # fmt: skip


def commands(script: str) -> list[list[str]]:
    """The commands of a script as a shell splits them."""
    lines = [shlex.split(line, comments=True) for line in script.split("\n")]
    return [line for line in lines if line and line != ["set", "-e"]]


def flattened(config: str) -> list[str]:
    """What vLLM makes of its configuration file: a flag for each key, its argument behind it."""
    words: list[str] = []
    for key, value in yaml.safe_load(config).items():
        assert value is not False, "vLLM would drop it"
        assert not isinstance(value, list), "vLLM would split it"
        words += (
            [f"--{key}"]
            if value is True
            else [f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)]
        )
    return words


def apart(words: list[str]) -> list[str]:
    """Flag and argument as two words."""
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]


def in_compose(value: str) -> str:
    """A string after Compose has put variables into it: there must be none."""
    assert re.fullmatch(r"(?:[^$]|\$\$)*", value, re.DOTALL), value
    return value.replace("$$", "$")


def in_a_pod(word: str) -> str:
    """An argument after KServe's Go template and Kubernetes' variables."""
    assert "{{" not in word
    return in_compose(word)


def test_an_export_opens_starts_and_asks_nothing() -> None:
    modules = [name for name in MODULES if room(name) == "exports"]
    assert len(modules) > len(FORMATS)
    used = {name.split(".")[0] for module in modules for name in imports(module)} - {"importer"}
    assert used <= PURE | {"importlib", "json", "shlex", "yaml"}


# What each carries


def test_vllm_is_told_what_the_adapter_tells_it() -> None:
    words = VllmCuda().settings(VLLM, Address(), COMMIT)
    assert set(PINS) < set(words)
    assert commands(text("vllm-command", VLLM)) == [["vllm", "serve", "acme/Tiny-8B", *words]]
    assert flattened(text("vllm-config", VLLM)) == ["--model", "acme/Tiny-8B", *apart(words)]


def test_what_vllm_serve_would_drop_is_written_as_the_flag_that_it_means() -> None:
    data = yaml.safe_load(text("vllm-config", VLLM))
    assert data["no-enable-prefix-caching"] is True
    assert data["enable-chunked-prefill"] is True


def test_a_number_that_vllms_configuration_cannot_say_is_refused() -> None:
    with pytest.raises(DocumentError, match="cannot say"):
        text("vllm-config", VLLM | {"engine_args": {"cpu_offload_gb": -0.5}})


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
    "verdict": "fits",
    "says": "",
    "wanted": None,
    "chosen": {},
    "weights": {"low": 1, "likely": 5 * 2**30, "high": 1, "source": "files"},
    "estimate": {"load": {}, "terms": [], "total": {"low": 1, "likely": 1, "high": 7.5 * 2**30}},
    "cards": 2,
}


@pytest.mark.parametrize(
    ("kind", "asked", "image", "memory", "warned"),
    [
        ("cpu", None, "vllm/vllm-openai-cpu", "15Gi", False),
        ("cpu", "gpu", "vllm/vllm-openai", "13Gi", True),
        ("cuda", None, "vllm/vllm-openai", "13Gi", False),
        ("cuda", "cpu", "vllm/vllm-openai-cpu", "16Gi", True),
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


def test_compose_mounts_a_directory_of_this_machine() -> None:
    block = {k: v for k, v in VLLM["importer"].items() if k not in ("model_id", "revision")}
    here = VLLM | {"parameters": {"model": "./my$model"}, "importer": block, "artifacts": []}
    receipt = replace(RECEIPT, model_id=None, revision=None, directory="/srv/my$model")
    service = yaml.safe_load(text("compose", here, receipt=receipt))["services"]["vllm"]
    assert service["command"][0] == "/model"
    mount = service["volumes"][1]
    assert (mount["source"], mount["target"], mount["read_only"]) == ("/srv/my$$model", "/model", True)
    assert not [word for word in service["command"] if "revision" in word]
    refused = FORMATS["kserve"].export(here, receipt, OPTIONS)
    assert isinstance(refused, Refused)
    assert "directory" in refused.reason


@pytest.mark.parametrize(("device", "cards"), [("gpu", "2"), ("cpu", None)])
def test_kserve(device: str, cards: str | None) -> None:
    data = yaml.safe_load(text("kserve", VLLM, device=device))
    schema.check("inferenceservice", data, "kserve")
    model = data["spec"]["predictor"]["model"]
    assert model["storageUri"] == f"hf://acme/Tiny-8B:{COMMIT}"
    assert model["resources"]["limits"].get("nvidia.com/gpu") == cards
    engine = VllmCuda() if cards else VllmCpu()
    words = [in_a_pod(w) for w in model["args"]]
    assert [_value(w) for w in words] == [_value(w) for w in engine.settings(VLLM)]
    assert data["metadata"]["annotations"]["importer/revision"] == COMMIT


def _value(word: str) -> Any:
    """A word with its JSON read: braces may be written as escapes."""
    flag, _, value = word.partition("=")
    return (flag, json.loads(value) if value.startswith("{") else value)


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
    ],
)
def test_mlx_fetches_the_commit_first(name: str, document: dict[str, Any], engine: Any, program: str) -> None:
    script = text(name, document)
    fetch, serve = commands(script)
    assert fetch == ["hf", "download", "acme/Tiny-8B", "--revision", COMMIT, "--local-dir", "./tiny-8b"]
    assert serve == [program, *engine.settings(document, "./tiny-8b", Address(port=8080))]
    assert f"{program} takes no revision" in script
    assert "set -e" in script
    assert '"seed": 7' in script


def test_mlx_without_a_commit_serves_the_newest_and_says_so() -> None:
    block = {k: v for k, v in ON_MLX["importer"].items() if k != "revision"}
    script = text("mlx-command", ON_MLX | {"importer": block, "artifacts": []})
    assert [c[:3] for c in commands(script)] == [["mlx_lm.server", "--model", "acme/Tiny-8B"]]
    assert "names no commit" in script


# What each says


@pytest.mark.parametrize("name", FORMATS)
def test_where_it_comes_from_and_who_approved_it(name: str) -> None:
    backend = next(b for b in ("mlx-vlm", "mlx", "vllm") if name.startswith(b) or b == "vllm")
    document = DOCUMENTS[backend]
    draft = text(name, document)
    for said in ("acme/Tiny-8B", COMMIT, digest(document), backend, "WARNING: nobody has approved"):
        assert said in draft
    receipt = replace(RECEIPT, digest=digest(document))
    approved = receipt.with_review(Word("approved", "me", "now"), document)
    told = text(name, document, receipt=approved)
    assert "review: approved" in told
    assert "WARNING" not in told
    stale = text(name, document | {"description": "edited"}, receipt=approved)
    assert "review: stale" in stale
    assert "WARNING" in stale


@pytest.mark.parametrize("name", OF_VLLM)
def test_what_the_server_cannot_take_is_said(name: str) -> None:
    document = VLLM | {"system_prompt": "Be kind.", "stopwords": ["x"], "context_size": 5, "threads": 4}
    made = export(name, document | {"options": [*VLLM["options"], "colour:red"]})
    assert made.lost == ("system_prompt", "context_size", "threads", "options: colour:red")
    (told,) = made.files.values()
    assert '# vLLM takes these from clients only, so send them: {"seed": 7, "stopwords": ["x"]}' in told
    assert f"# vLLM has no option for: {', '.join(made.lost)}" in told
    assert export(name, VLLM).lost == ()


STOPS = VLLM | {
    "stopwords": ["<end>"],
    "importer": {**VLLM["importer"], "end_tokens": {"2": "</s>", "106": "<end>"}},
}


@pytest.mark.parametrize("name", OF_VLLM)
def test_stop_words_that_are_end_tokens_come_in_a_file_where_there_is_room_for_one(name: str) -> None:
    made = export(name, STOPS)
    told = next(iter(made.files.values()))
    assert made.lost == ()
    if name == "kserve":
        assert len(made.files) == 1
        assert '"stopwords": ["<end>"]' in told
        return
    assert json.loads(made.files["tiny-8b.vllm/generation_config.json"]) == {"eos_token_id": [2, 106]}
    assert '"stopwords"' not in told
    if name == "compose":
        service = yaml.safe_load(told)["services"]["vllm"]
        assert "--generation-config=/settings" in service["command"]
        mount = {"type": "bind", "source": "./tiny-8b.vllm", "target": "/settings", "read_only": True}
        assert mount in service["volumes"]
    else:
        words = commands(told)[0] if name == "vllm-command" else ["=".join(flattened(told)[-2:])]
        assert words[-1] == "--generation-config=./tiny-8b.vllm"


def test_what_mlx_cannot_take_is_said() -> None:
    assert export("mlx-command", ON_MLX).lost == ("max_model_len",)
    told = text("mlx-command", ON_MLX)
    assert '{"repeat_penalty": 1.05, "presence_penalty": -0.5, "seed": 7}' in told


@pytest.mark.parametrize("name", [*OF_VLLM, "mlx-command", "mlx-vlm-command", "localai", "localai-gallery"])
@pytest.mark.parametrize("backend", ["vllm", "mlx", "mlx-vlm", "vllm-mlx"])
def test_an_engine_that_the_format_is_not_for_is_a_reason_and_a_step(name: str, backend: str) -> None:
    meant = {"vllm"} if name in OF_VLLM else {name.removesuffix("-command")}
    meant = {"vllm", "mlx", "mlx-vlm"} if name.startswith("localai") else meant
    made = FORMATS[name].export(DOCUMENTS.get(backend, VLLM) | {"backend": backend}, None, OPTIONS)
    assert isinstance(made, Exported) == (backend in meant)
    if isinstance(made, Refused):
        assert backend in made.reason
        assert "--backend" in made.remedy


def test_a_commit_of_another_model_pins_nothing() -> None:
    moved = VLLM | {"parameters": {"model": "other/model"}}
    assert "revision" not in " ".join(*commands(text("vllm-command", moved)))
    assert "names no commit" in text("vllm-command", moved)


# Nothing breaks out


@pytest.mark.parametrize("model", ["--trust-remote-code", "-x", "--model=evil/model"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_model_that_looks_like_an_option_is_refused(name: str, model: str) -> None:
    backend = next(b for b in ("mlx-vlm", "mlx", "vllm") if name.startswith(b) or b == "vllm")
    with pytest.raises(DocumentError, match="begins like an option"):
        FORMATS[name].export(DOCUMENTS[backend] | {"parameters": {"model": model}}, None, OPTIONS)


def test_an_image_is_named_by_a_version_alone() -> None:
    for version in ("0.32.0 evil", "latest", "${X}", "0.32.0\nx"):
        block = {**VLLM["importer"], "engine": {"name": "vllm", "version": version}}
        for name in ("compose", "kserve"):
            with pytest.raises(DocumentError, match="not a version"):
                export(name, VLLM | {"importer": block})


@given(documents(), st.sampled_from(("gpu", "cpu")))
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_any_document_reads_back_to_the_same_values(document: dict[str, Any], device: Any) -> None:
    kinds: set[str] = set()
    for name, form in FORMATS.items():
        try:
            made = form.export(document, None, Options(device))
        except DocumentError as refused:  # a value that is no word or number where one belongs
            kinds.add(refused.kind)
            continue
        if isinstance(made, Exported):
            told = next(iter(made.files.values()))
            assert all(c.isprintable() or c == "\n" for c in told), told
            READ_BACK[name](document, told, VllmCpu() if device == "cpu" else VllmCuda())
    assert kinds <= {"invalid"}


def _pin(document: dict[str, Any]) -> str | None:
    model, block = document["parameters"]["model"], document.get("importer", {})
    pinned = [(block.get("model_id"), block.get("revision"))] if block else []
    pinned += [(a["source"]["repo"], a["source"]["revision"]) for a in document.get("artifacts", ())]
    here = "/" not in model or model.startswith(".") or (block and "model_id" not in block)
    return None if here or (model, COMMIT) not in pinned else COMMIT


def _vllm_command(document: dict[str, Any], told: str, engine: Any) -> None:
    words = engine.settings(document, Address(), _pin(document), f"./{document['name']}.vllm")
    found = shlex.split(told.replace("#!/bin/sh", ""), comments=True)
    assert found == ["vllm", "serve", document["parameters"]["model"], *words]


def _vllm_config(document: dict[str, Any], told: str, engine: Any) -> None:
    words = engine.settings(document, Address(), _pin(document), f"./{document['name']}.vllm")
    assert flattened(told) == ["--model", document["parameters"]["model"], *apart(words)]


def _compose(document: dict[str, Any], told: str, engine: Any) -> None:
    data = yaml.safe_load(told)
    schema.check("compose", data, "compose.yaml")
    model, *words = data["services"]["vllm"]["command"]
    assert in_compose(model) in (document["parameters"]["model"], "/model")
    address = Address("0.0.0.0")
    assert [in_compose(w) for w in words] == engine.settings(document, address, _pin(document), "/settings")


def _kserve(document: dict[str, Any], told: str, engine: Any) -> None:
    data = yaml.safe_load(told)
    schema.check("inferenceservice", data, "kserve")
    words = [in_a_pod(w) for w in data["spec"]["predictor"]["model"]["args"]]
    assert [_value(w) for w in words] == [_value(w) for w in engine.settings(document)]


def _on_mlx(engine: Any, program: str) -> Any:
    def check(document: dict[str, Any], told: str, _engine: Any) -> None:
        pin, model = _pin(document), document["parameters"]["model"]
        expected = (
            [] if pin is None else ["set", "-e", "hf", "download", model, "--revision", pin, "--local-dir"]
        )
        if pin is not None:
            model = f"./{document['name']}"
            expected.append(model)
        words = engine.settings(document, model, Address(port=8080))
        assert shlex.split(told.replace("#!/bin/sh", ""), comments=True) == [*expected, program, *words]

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
    assert entry["description"] == document.get("description", entry["description"])


READ_BACK = {
    "vllm-command": _vllm_command,
    "vllm-config": _vllm_config,
    "compose": _compose,
    "kserve": _kserve,
    "mlx-command": _on_mlx(Mlx(), "mlx_lm.server"),
    "mlx-vlm-command": _on_mlx(MlxVlm(), "mlx_vlm.server"),
    "localai": _localai,
    "localai-gallery": _localai_gallery,
}


def test_every_format_is_read_back() -> None:
    assert set(READ_BACK) == set(FORMATS)


@given(st.recursive(st.text() | st.sampled_from(NASTY) | st.integers() | st.booleans(), st.lists))
def test_yaml_that_every_library_reads_alike(data: Any) -> None:
    told = yaml_text(data, ["a comment\nthat: breaks", "\x85out\u2028"])
    assert yaml.safe_load(told) == data
    bare = [t.value for t in yaml.scan(told) if isinstance(t, yaml.ScalarToken) and t.plain]
    assert all(re.fullmatch(r"-?[0-9]+|true|false|[A-Za-z/][\w./+@-]+", word, re.ASCII) for word in bare)


@given(st.lists(st.text()))
def test_a_comment_stays_a_comment(lines: list[str]) -> None:
    told = commented(lines)
    assert told.count("\n") == len(lines)
    assert all(line.startswith("# ") for line in told.splitlines())


# LocalAI


def localai(document: dict[str, Any]) -> tuple[dict[str, Any], str]:
    made = export("localai", document)
    (told,) = made.files.values()
    data = yaml.safe_load(told)
    schema.check("localai-model", data, "localai")
    return data, " ".join(made.lost)


def test_localai_reads_zero_as_unset() -> None:
    data, lost = localai(VLLM)
    assert data["parameters"]["temperature"] == 0.01
    assert "temperature 0 is written as 0.01" in lost


def test_localai_fills_nothing_in_from_its_own_tables() -> None:
    data, lost = localai(VLLM | {"parameters": {"model": "acme/Tiny-8B"}})
    neutral = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
    assert data["parameters"] == {"model": "acme/Tiny-8B", **neutral, "max_tokens": 32768}
    assert "presence_penalty" in lost
    for options in ([], ["tool_parser:none"], ["colour:red"]):
        data, _ = localai(VLLM | {"options": options})
        # an empty name is none, and keeps LocalAI from adding one by the model's name
        assert data["options"][:2] == ["tool_parser:", "reasoning_parser:"]


def test_localais_limits_stand_where_its_backend_looks() -> None:
    plain = {k: v for k, v in VLLM.items() if k != "max_model_len"}
    data, lost = localai(plain | {"context_size": 4096})
    assert data["max_model_len"] == 4096
    assert data["engine_args"]["limit_mm_per_prompt"] == {"image": 2, "video": 0}
    assert "tool_strict_level" not in data["engine_args"]
    assert "tool_strict_level is left out" in lost


def test_localai_is_given_the_commit_where_it_can_take_one() -> None:
    data, lost = localai(VLLM)
    assert data["artifacts"] == VLLM["artifacts"]
    assert "not pinned" not in lost
    data, lost = localai(ON_MLX)
    assert "artifacts" not in data
    assert "The commit is not pinned" in lost


def test_localais_mlx_reads_a_repetition_penalty_among_the_options() -> None:
    data, lost = localai(ON_MLX)
    assert "repetition_penalty:1.05" in data["options"]
    assert "engine_args" not in data
    assert "kv_bits" in lost
    data, lost = localai(VLLM)
    assert "repeat_penalty does not reach vLLM" in lost


def test_localai_gets_no_flag_of_the_engine_and_nothing_of_ours() -> None:
    for flag in ("--trust-remote-code:true", " --worker-cls=evil"):
        with pytest.raises(DocumentError, match="from its own key of the document or never"):
            localai(VLLM | {"options": [flag]})
    data, lost = localai(VLLM | {"options": ["--enable-eplb", "-x evil"]})
    assert [o for o in data["options"] if "-" in o] == []
    assert data["engine_args"]["enable_eplb"] is True
    assert "-x" in lost
    assert "importer" not in data
    with pytest.raises(DocumentError, match="none of the options"):
        localai(VLLM | {"engine_args": {"worker_cls": "evil.Worker"}})


def test_localai_is_told_of_thinking_as_far_as_it_listens() -> None:
    data, lost = localai(VLLM)
    assert data["reasoning"] == {"disable": True}
    assert "enable_thinking: false does not reach" in lost
    data, lost = localai(VLLM | {"chat_template_kwargs": {"enable_thinking": True}})
    assert data["reasoning"] == {"disable": False}
    assert "enable_thinking" not in lost


def test_a_parser_that_some_vllm_lacks_is_said() -> None:
    _, lost = localai(VLLM | {"options": ["tool_parser:gemma4"]})
    assert "tool_parser gemma4 is not in vLLM 0.14.1" in lost
    assert "hermes" not in localai(VLLM)[1]


def test_a_gallery_of_one_entry() -> None:
    (entry,) = yaml.safe_load(text("localai-gallery", VLLM))
    schema.check("localai-gallery", [entry], "gallery")
    assert (entry["name"], entry["license"], entry["urls"]) == (
        "tiny-8b", "apache-2.0", ["https://huggingface.co/acme/Tiny-8B"],
    )  # fmt: skip
    assert {"llm", "vllm", "tiny", "chat"} == set(entry["tags"])
    assert entry["overrides"] == {"known_usecases": ["chat"]}
    alone, _ = localai(VLLM)
    assert entry["config_file"] == {k: v for k, v in alone.items() if k != "description"}


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
        ("localai", "localai-model", "temperature", 0.5),
        ("localai", "localai-model", "backend", "vllm-mlx"),
        ("localai", "localai-model", "parameters|model", "/etc/passwd"),
        ("localai", "localai-model", "parameters|model", "a/../b"),
        ("localai", "localai-model", "parameters|repetition_penalty", 1.1),
        ("localai", "localai-model", "parameters|temperature", "0.5"),
        ("localai", "localai-model", "parameters|seed", 2**40),
        ("localai", "localai-model", "options|0", "--enforce-eager"),
        ("localai", "localai-model", "artifacts|0|name", "other"),
        ("localai", "localai-model", "artifacts|0|source|revision", "main"),
        ("localai", "localai-model", "artifacts|0|source|token_env", "AWS_SECRET"),
        ("localai", "localai-model", "limit_mm_per_prompt|smell", 1),
        ("localai-gallery", "localai-gallery", "0|config_file", "a: text"),
        ("localai-gallery", "localai-gallery", "0|name", "../x"),
        ("localai-gallery", "localai-gallery", "0|urls|0", "file:///etc/passwd"),
        ("localai-gallery", "localai-gallery", "0|overrides|backend", "x"),
        ("localai-gallery", "localai-gallery", "0|files", [{"filename": "a", "uri": "b"}]),
        ("localai-gallery", "localai-gallery", "0|config_file", None),
        ("compose", "compose", f"{SERVICE}command", "serve --model x"),
        ("compose", "compose", f"{SERVICE}command|1", "$HOME"),
        ("compose", "compose", f"{SERVICE}image", "vllm/vllm-openai:latest"),
        ("compose", "compose", f"{SERVICE}environment|0", "HF_TOKEN=hf_secret"),
        ("compose", "compose", f"{SERVICE}privileged", True),
        ("compose", "compose", f"{SERVICE}ports|0", "8000:8000"),
        ("compose", "compose", f"{SERVICE}healthcheck", None),
        ("kserve", "inferenceservice", f"{MODEL}args|0", "--x=$(HF_TOKEN)"),
        ("kserve", "inferenceservice", f"{MODEL}args|0", "--x={{.Name}}"),
        ("kserve", "inferenceservice", f"{MODEL}storageUri", "hf://acme/Tiny-8B:main"),
        ("kserve", "inferenceservice", f"{MODEL}env|0|name", "HF_TOKEN"),
        ("kserve", "inferenceservice", f"{MODEL}resources|limits|memory", "a lot"),
        ("kserve", "inferenceservice", "metadata|name", "Qwen2.5"),
        ("kserve", "inferenceservice", "kind", "Pod"),
    ],
)
def test_the_schemas_refuse_what_is_broken(form: str, name: str, path: str, value: Any) -> None:
    data = yaml.safe_load(text(form, VLLM))
    assert not broken(name, data)
    assert broken(name, changed(data, path, value))


# The command


def imported(desk: Desk, *words: str) -> None:
    assert desk("acme/chat", "--name", "tiny", "--backend", "vllm", "--no-validate", *words).code == 0


def test_the_command(desk: Desk) -> None:
    imported(desk, "--yes")
    ran = desk("export", "tiny", "vllm-command")
    assert ran.code == 0, ran.err
    assert [c[:3] for c in commands(ran.out)] == [["vllm", "serve", "acme/chat"]]
    assert "Warning" not in ran.err
    by_file = desk("export", "models/tiny.yaml", "vllm-command")
    assert by_file.out == ran.out
    elsewhere = desk("export", "tiny", "vllm-command", "--documents", "nowhere")
    assert (elsewhere.code, "nowhere" in elsewhere.err) == (5, True)


def test_files_are_written_once_and_never_over_something_else(desk: Desk) -> None:
    imported(desk, "--yes")
    assert desk("export", "tiny", "compose", "--output", "out/").code == 0
    written = desk.folder / "out" / "compose.yaml"
    first = written.read_text()
    assert desk("export", "tiny", "compose", "--output", "out").code == 0
    assert desk("export", "tiny", "compose", "--output", "other.yaml").code == 0
    assert (desk.folder / "other.yaml").read_text() == first
    written.write_text(first + "# mine\n")
    ran = desk("export", "tiny", "compose", "--output", "out")
    assert (ran.code, "exists already" in ran.err) == (5, True)
    assert written.read_text() == first + "# mine\n"


def test_a_draft_is_exported_with_a_warning_or_not_at_all(desk: Desk) -> None:
    imported(desk)
    ran = desk("export", "tiny", "localai")
    assert (ran.code, "not approved (review: draft)" in ran.err) == (0, True)
    assert "# WARNING" in ran.out
    refused = desk("export", "tiny", "localai", "--approved-only")
    assert (refused.code, refused.out) == (5, "")
    assert desk("approve", "tiny").code == 0
    assert "WARNING" not in desk("export", "tiny", "localai", "--approved-only").out


def test_an_export_of_several_files_needs_a_folder(desk: Desk) -> None:
    imported(desk, "--yes")
    path = desk.folder / "models" / "tiny.yaml"
    block = "importer:\n  end_tokens: {'7': <|im_end|>}\n"
    path.write_text(path.read_text().replace("importer:\n", block) + "stopwords: [<|im_end|>]\n")
    ran = desk("export", "tiny", "vllm-command")
    assert (ran.code, ran.out, "name a folder" in ran.err) == (2, "", True)
    ran = desk("export", "tiny", "vllm-command", "--output", "out", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["written"] == ["out/tiny.vllm.sh", "out/tiny.vllm/generation_config.json"]
    assert json.loads((desk.folder / json.loads(ran.out)["written"][1]).read_text()) == {"eos_token_id": [7]}
    # its script is run where it lies
    assert "--generation-config=./tiny.vllm" in (desk.folder / "out" / "tiny.vllm.sh").read_text()


def test_one_line_of_json(desk: Desk) -> None:
    imported(desk)
    ran = desk("export", "tiny", "vllm-config", "--json")
    line = json.loads(ran.out)
    assert (line["format"], line["review"], line["written"]) == ("vllm-config", "draft", None)
    assert line["revision"] == desk.hub.repos["acme/chat"].sha
    assert yaml.safe_load(line["files"]["tiny.vllm.yaml"])["model"] == "acme/chat"
    listed = desk("export", "--list", "--json").out.splitlines()
    assert [json.loads(row)["format"] for row in listed] == list(FORMATS)
    assert all(name in desk("export", "--list").out for name in FORMATS)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("export", "tiny", "vlm-config"), 2, "vllm-config"),
        (("export", "tiny"), 2, "give both"),
        (("export",), 2, "give both"),
        (("export", "tiny", "mlx-command"), 5, "Import the model again with --backend mlx"),
        (("export", "tiny", "kserve", "--device", "tpu"), 2, "--device"),
    ],
)
def test_what_cannot_be_exported_is_a_sentence_and_a_step(
    desk: Desk, words: tuple[str, ...], code: int, says: str
) -> None:
    imported(desk)
    ran = desk(*words)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err


def test_the_licence_comes_from_the_hub(desk: Desk) -> None:
    desk.hub.repos["acme/chat"].info["cardData"] = {"license": "mit"}
    imported(desk)
    (entry,) = yaml.safe_load(desk("export", "tiny", "localai-gallery").out)
    assert entry["license"] == "mit"


def test_the_docs_have_a_row_for_each_format() -> None:
    page = (Path(__file__).parents[1] / "docs" / "exports.md").read_text(encoding="utf-8")
    table = page.partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == list(FORMATS)
