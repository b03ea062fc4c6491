"""What LocalAI is told of a document, and of its gallery."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml

from importer.document import schema
from importer.exports.kinds import Loss
from importer.exports.localai_gallery import GalleryEntry, entry
from importer.sentences import render
from tests.exporting import ON_MLX, VLLM, export, text
from tests.exports.test_exports import RECEIPT

# LocalAI


def localai(document: dict[str, Any]) -> tuple[dict[str, Any], str]:
    made = export("localai", document)
    (told,) = made.files.values()
    data = yaml.safe_load(told)
    schema.check("localai-model", data, "localai")
    return data, " ".join(map(render, made.lost))


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
    for key in ("tool_strict_level", "chat_template_content_format"):  # of vLLM's server alone
        assert key not in data["engine_args"]
        assert f"{key} is left out" in lost


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
    data, lost = localai(VLLM | {"options": ["--trust-remote-code:true", "-x evil"]})
    assert [o for o in data["options"] if "-" in o] == []
    assert "-x" in lost
    assert "importer" not in data


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
    assert {"llm", "vllm", "tiny", "chat", "tools", "reasoning"} == set(entry["tags"])
    assert entry["overrides"] == {"known_usecases": ["chat"]}
    alone, _ = localai(VLLM)
    assert entry["config_file"] == {k: v for k, v in alone.items() if k != "description"}


def test_an_entry_for_mlx_has_the_files_of_the_commit_with_their_digests() -> None:
    document = ON_MLX
    commit, weights = document["importer"]["revision"], "a" * 64
    files = {"config.json": "b" * 40, "model.safetensors": weights}
    made = entry(document, replace(RECEIPT, revision=commit, content_files=files))
    assert isinstance(made, GalleryEntry)
    (item,) = yaml.safe_load(made.item)
    schema.check("localai-gallery", [item], "gallery")
    folder = f"models--{document['parameters']['model'].replace('/', '--')}/snapshots/{commit}"
    url = f"https://huggingface.co/{document['parameters']['model']}/resolve/{commit}"
    assert item["files"] == yaml.safe_load(made.file)["files"] == [
        {"filename": f"{folder}/config.json", "uri": f"{url}/config.json"},
        {"filename": f"{folder}/model.safetensors", "sha256": weights, "uri": f"{url}/model.safetensors"},
    ]  # fmt: skip
    odd = {"content_files": {"a b#1.json": "b" * 40, "../x": weights, "..": weights}}
    kept = entry(document, replace(RECEIPT, **{"revision": commit, **odd}))
    assert isinstance(kept, GalleryEntry)
    assert [file["uri"] for file in yaml.safe_load(kept.item)[0]["files"]] == [f"{url}/a%20b%231.json"]
    assert [loss.kind for loss in kept.lost if loss.fields.get("file")] == [Loss.FILE_NAME] * 2
    for other in ({"revision": "0" * 40}, {"content_files": {"../x": weights}}):
        moved = entry(document, replace(RECEIPT, **{"revision": commit, "content_files": files, **other}))
        assert isinstance(moved, GalleryEntry)
        assert "files" not in yaml.safe_load(moved.item)[0]
