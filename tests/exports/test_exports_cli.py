"""``importer export``: files, drafts, folders, JSON, and what cannot be exported."""

from __future__ import annotations

import json
import os

import pytest
import yaml

from importer.exports import FORMATS
from tests.commandline import Desk, desk
from tests.exporting import commands

__all__ = ["desk"]


# The command


def imported(desk: Desk, *words: str) -> None:
    assert desk("acme/chat", "--name", "tiny", "--backend", "vllm", "--no-validate", *words).code == 0


@pytest.mark.slow
def test_the_command(desk: Desk) -> None:
    imported(desk, "--yes")
    ran = desk("export", "tiny", "vllm-command")
    assert ran.code == 0, ran.err
    assert [c[:3] for c in commands(ran.out)] == [["vllm", "serve", "acme/chat"]]
    assert "Warning" not in ran.err
    by_file = desk("export", "models/tiny.yaml", "vllm-command")
    assert by_file.out == ran.out
    elsewhere = desk("export", "tiny", "vllm-command", "--dir", "nowhere")
    assert (elsewhere.code, "nowhere" in elsewhere.err) == (5, True)


def test_files_are_written_once_and_never_over_something_else(desk: Desk) -> None:
    imported(desk, "--yes")
    assert desk("export", "tiny", "compose", "--output", "out/").code == 0
    written = desk.folder / "out" / "compose.yaml"
    first = written.read_text()
    assert desk("export", "tiny", "compose", "--output", "out").code == 0
    assert desk("export", "tiny", "compose", "--output", "-").out == first
    assert desk("export", "tiny", "compose", "--output", "other.yaml").code == 0
    assert (desk.folder / "other.yaml").read_text() == first
    written.write_text(first + "# mine\n")
    ran = desk("export", "tiny", "compose", "--output", "out")
    assert (ran.code, "exists already" in ran.err) == (5, True)
    assert written.read_text() == first + "# mine\n"


def test_each_document_of_a_folder_is_written_and_others_are_named(desk: Desk) -> None:
    imported(desk)
    for name, backend in (("twin", "vllm"), ("apple", "mlx")):
        words = ("--name", name, "--backend", backend, "--no-validate")
        assert desk("acme/chat", *words).code == 0
    ran = desk("export", "models/", "compose", "-o", "composed")
    assert ran.code == 0, ran.err
    for name in ("tiny", "twin"):
        written = (desk.folder / "composed" / name / "compose.yaml").read_text()
        assert written.startswith(f"# {name}: ")
    ran = desk("export", "models/", "vllm-config", "-o", "out")
    assert (ran.code, "Left out: apple has no such export" in ran.err) == (0, True)
    assert sorted(path.name for path in (desk.folder / "out").iterdir()) == [
        "tiny.vllm.yaml",
        "twin.vllm.yaml",
    ]
    (desk.folder / "out" / "tiny.vllm.yaml").write_text("# mine\n")
    ran = desk("export", "./models", "vllm-config", "-o", "out")
    assert (ran.code, "Left out: " in ran.err and "exists already" in ran.err) == (5, True)
    assert (
        desk("export", "models/", "sglang-config", "-o", "none").code,
        desk("export", "no/", "compose").code,
    ) == (5, 2)
    assert desk("export", "no/", "compose", "-o", "none").code == 5
    assert not (desk.folder / "none").exists()


def test_a_draft_is_exported_with_a_warning_or_not_at_all(desk: Desk) -> None:
    imported(desk)
    ran = desk("export", "tiny", "localai")
    assert (ran.code, "not approved (review: draft)" in ran.err) == (0, True)
    assert "# WARNING" in ran.out
    refused = desk("export", "tiny", "localai", "--approved-only")
    assert (refused.code, refused.out) == (5, "")
    assert desk("review", "tiny", "--approve").code == 0
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
    assert os.access(desk.folder / "out" / "tiny.vllm.sh", os.X_OK)  # it is run as it lies


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
        (("export", "tiny"), 2, "both are required"),
        (("export",), 2, "both are required"),
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
