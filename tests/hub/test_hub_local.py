"""Directories as snapshots: the same files and limits, and nothing from outside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from importer.errors import RepositoryError
from importer.hub import resolve
from importer.hub.local import ANYWHERE
from importer.hub.reference import parse
from importer.hub.snapshot import POINTER_SIZES, JsonReason, Snapshot, UnreadReason


def read(directory: Path) -> Snapshot:
    return resolve(parse(str(directory)), ANYWHERE)


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "toy"}', "utf-8")
    (tmp_path / "README.md").write_text("\ufeff---\nlicense: mit\n---\n", "utf-8")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("x")
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 10)
    (tmp_path / "gone.safetensors").symlink_to("nowhere")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("x")
    snapshot = read(tmp_path)
    assert (snapshot.model_id, snapshot.revision, snapshot.directory) == (None, None, tmp_path.resolve())
    assert snapshot.json("config.json") == {"model_type": "toy"}
    assert snapshot.texts["additional_chat_templates/tool_use.jinja"] == "x"
    assert [(f.path, f.size) for f in snapshot.files] == [
        ("README.md", (tmp_path / "README.md").stat().st_size),
        ("additional_chat_templates/tool_use.jinja", 1),
        ("config.json", (tmp_path / "config.json").stat().st_size),
        ("gone.safetensors", None),
        ("model.safetensors", 10),
    ]
    assert set(snapshot.unknown) == {"tokenizer_config.json", "generation_config.json"}


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    """A pointer of git-lfs and a link without a target: known by name, whatever the other files hold."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 4932100201\n"
    (tmp_path / "model-00001-of-00002.safetensors").write_text(pointer)
    (tmp_path / "model-00002-of-00002.safetensors").symlink_to("nowhere")
    (tmp_path / "outside.safetensors").symlink_to("/etc/hosts")  # an engine follows the link
    (tmp_path / "notes.txt").write_text("version https://git-lfs is a program")
    (tmp_path / "tokenizer.json").write_text("{}")
    assert len(pointer) in POINTER_SIZES
    assert {path: reason.kind for path, reason in read(tmp_path).broken.items()} == {
        "model-00001-of-00002.safetensors": UnreadReason.POINTER,
        "model-00002-of-00002.safetensors": UnreadReason.GONE,
    }
    (tmp_path / "config.json").write_text(pointer)
    with pytest.raises(RepositoryError) as caught:
        read(tmp_path).json("config.json")
    assert caught.value.details["problem"].kind is UnreadReason.POINTER


def test_a_byte_order_mark_is_left_to_engines(tmp_path: Path) -> None:
    """They refuse one in JSON and render one in a template; a card is for people."""
    (tmp_path / "config.json").write_text('\ufeff{"model_type": "toy"}', "utf-8")
    (tmp_path / "chat_template.jinja").write_text("\ufeff{{ messages }}", "utf-8")
    (tmp_path / "README.md").write_text("\ufeff# A model", "utf-8")
    snapshot = read(tmp_path)
    assert snapshot.texts["chat_template.jinja"] == "\ufeff{{ messages }}"
    assert snapshot.texts["README.md"] == "# A model"
    with pytest.raises(RepositoryError) as caught:
        snapshot.json("config.json")
    assert caught.value.kind == "broken-json"
    assert caught.value.details["problem"].kind is JsonReason.MARKED


def test_everything_allowed_is_read_and_nothing_else(tmp_path: Path) -> None:
    allowed = {
        "config.json", "chat_template.jinja", "tokenizer_config.json", "generation_config.json",
        "chat_template.json", "hf_quant_config.json", "added_tokens.json", "special_tokens_map.json",
        "processor_config.json", "preprocessor_config.json", "params.json", "model.safetensors.index.json",
        "adapter_config.json",
    }  # fmt: skip
    for name in allowed | {"modeling_toy.py", "tokenizer.json", "notes.txt", "vocab.json"}:
        (tmp_path / name).write_text("{}")
    assert set(read(tmp_path).texts) == allowed


@pytest.mark.parametrize(("name", "fatal"), [("config.json", True), ("added_tokens.json", False)])
@pytest.mark.parametrize("kind", ["link", "device", "pipe", "loop", "large", "binary"])
def test_what_is_no_small_text_file(tmp_path: Path, name: str, fatal: bool, kind: str) -> None:
    model = tmp_path / "model"
    model.mkdir()
    path = model / name
    match kind:
        case "link":
            (tmp_path / "secret").write_text("{}")
            path.symlink_to("../secret")
        case "device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(name)
        case "large":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "binary":
            path.write_bytes(b"\xff\xfe\0")
    if not fatal:
        snapshot = read(model)
        assert name not in snapshot.texts
        assert snapshot.unknown[name]
        return
    with pytest.raises(RepositoryError) as caught:
        read(model)
    assert caught.value.kind == {"large": "too-large", "binary": "not-text"}.get(kind, "unreadable")


@pytest.mark.parametrize("place", ["snapshots/1234", "1234"])
@pytest.mark.parametrize("name", ["abc0" * 10, "abc0" * 16, "abc", "secret.json"])
def test_links_inside_and_into_the_clients_blobs(place: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / name).write_text('{"model_type": "toy"}')
    model = tmp_path / place
    model.mkdir(parents=True)
    (model / "config.json").symlink_to(tmp_path / "blobs" / name)
    if len(name) < 40:  # it is no hash
        with pytest.raises(RepositoryError):
            read(model)
        return
    (model / "real.json").write_text("{}")
    (model / "generation_config.json").symlink_to("real.json")
    assert set(read(model).texts) == {"config.json", "generation_config.json"}
