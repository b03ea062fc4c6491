"""References to files and folders of a repository, and repositories that are made for MLX."""

from __future__ import annotations

from typing import Any

import pytest

from importer.cli.messages import hint
from importer.errors import RepositoryError
from importer.hub.reference import check_path, parse
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sentences import render
from importer.signals.loading import backend_evidence
from importer.signals.reasons import BackendReason

FILE = "https://huggingface.co/x/toy-GGUF/resolve/main/sub/toy-Q4_K_M.gguf?download=true"


def snapshot(name: str = "x/toy-GGUF", *files: str, **info: Any) -> Snapshot:
    return Snapshot(name, name, "0" * 40, tuple(map(RepoFile, files)), {}, info)


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (FILE, "sub/toy-Q4_K_M.gguf"), ("hf://x/toy-GGUF/toy.gguf", "toy.gguf"),
        ("hf.co/x/toy-GGUF/blob/refs/pr/3/toy.gguf", "toy.gguf"),
        ("https://huggingface.co/x/toy-GGUF/tree/main", None), ("https://huggingface.co/x/toy-GGUF", None),
        ("hf://x/toy-GGUF@dev", None), ("hf://x/toy-GGUF/tree/main/4bit", "4bit"),
        ("huggingface://x/toy-GGUF/toy.gguf@main", "toy.gguf"), ("x/toy-GGUF", None),
    ],
)  # fmt: skip
def test_the_file_of_a_reference(text: str, file: str | None) -> None:
    reference = parse(text)
    assert (reference.repo, reference.path) == ("x/toy-GGUF", file)


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (snapshot(base_models=["acme/toy"]), "acme/toy"),
        (snapshot(tags=["gguf", "base_model:acme/toy", "base_model:quantized:acme/toy"]), "acme/toy"),
        (snapshot("x/toy-GGUF", "model.safetensors", base_models=["acme/toy"]), "x/toy-GGUF itself"),
        (snapshot(base_models=["./mine", "x/toy-GGUF", "evil/\x1b[31m"]), "original safetensors weights"),
        (snapshot(), "original safetensors weights"),
    ],
)
def test_a_gguf_file_is_refused_with_the_repository_to_import(found: Snapshot, named: str) -> None:
    with pytest.raises(RepositoryError) as caught:
        check_path(parse(FILE), found)
    assert caught.value.kind == "gguf-file"
    assert named in render(caught.value.details["next"])


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (snapshot("x/toy-GGUF", "toy-Q4_K_M.gguf", base_models=["acme/toy"]), "acme/toy"),
        (snapshot("x/toy", "model.safetensors"), "x/toy itself"),
        (snapshot("x/toy-GGUF", "toy-Q4_K_M.gguf"), "original safetensors weights"),
    ],
)
def test_a_tag_is_answered_with_the_repository_to_import(found: Snapshot, named: str) -> None:
    with pytest.raises(RepositoryError) as caught:
        check_path(parse("hf.co/x/toy-GGUF:Q4_K_M"), found)
    assert (caught.value.kind, caught.value.details["tag"]) == ("tag", "Q4_K_M")
    assert named in render(caught.value.details["next"])


FOLDERS = snapshot("x/toy", "config.json", "4bit/config.json", "a b/config.json", "4bit/w/x.bin", "o/x")


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("hf://x/toy/tree/main/4bit", "subfolder", ("4bit", "./toy/4bit", "4bit/*", "0" * 40)),
        ("https://huggingface.co/x/toy/blob/main/4bit/config.json", "subfolder", ("'4bit'", "./toy/4bit")),
        ("hf://x/toy/tree/main/a b", "subfolder", ("--include 'a b/*'",)),
        ("hf://x/toy/4bit/w", "subfolder", ("'4bit/w'", "4bit, a b")),
        ("hf://x/toy/tree/main/o", "subfolder", ("'o'", "without a path")),
        ("hf://x/toy/8bit", "no-such-path", ("8bit", "4bit, a b")),
        ("hf://x/toy/resolve/main/tokenizer.json", "no-such-path", ("tokenizer.json",)),
        ("hf://x/toy/config.json", None, ()),
        ("hf://x/toy/tree/main", None, ()),
    ],
)
def test_a_path_names_the_repository_or_is_refused_with_the_folders(
    text: str, kind: str | None, named: tuple[str, ...]
) -> None:
    if kind is None:
        check_path(parse(text), FOLDERS)
        return
    with pytest.raises(RepositoryError) as caught:
        check_path(parse(text), FOLDERS)
    told = f"{caught.value.message} {hint(caught.value)}"
    assert caught.value.kind == kind
    assert all(word in told for word in named), told


def test_many_folders_with_hostile_names_are_one_bounded_line() -> None:
    names = [f"\x1b[31m{'x' * 200}{number}/config.json" for number in range(5000)]
    with pytest.raises(RepositoryError) as caught:
        check_path(parse("hf://x/toy/nothing"), snapshot("x/toy", *names))
    told = hint(caught.value)
    assert len(told) < 2000
    assert told.isprintable()


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        (snapshot("mlx-community/toy-bf16"), "mlx"),
        (snapshot("x/toy", tags=["safetensors", "mlx"]), "mlx"),
        (snapshot("x/toy", library_name="mlx"), "mlx"),
        (snapshot("x/toy", tags=["mlxish"], library_name="transformers"), "vllm"),
    ],
)
def test_a_repository_for_mlx_makes_mlx_the_first_choice(found: Snapshot, chosen: str) -> None:
    first = backend_evidence(found, "linux")[0]
    assert first.value == chosen
    assert (first.reason.kind is BackendReason.MLX_ORIGIN) == (chosen == "mlx")
