"""Token numbers beyond the embedding: refused where every conversation has one, else a warning."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from importer.app.study import check_tokens
from importer.demo import MODEL
from importer.engines import tokenizer as tables
from importer.errors import RepositoryError
from importer.hub import local
from importer.hub.safetensors import Tensor
from importer.hub.snapshot import Snapshot
from importer.memory.weights import embedding_rows
from importer.signals import token_numbers
from importer.validation.outcome import Fail
from importer.validation.probes import prompt as probe
from tests.judging import remedy, words

ROWS = 640  # of the demo model


def snapshot(config: dict[str, Any], added: dict[str, int], **settings: Any) -> Snapshot:
    decoder = {str(number): {"content": content} for content, number in added.items()}
    texts = {
        "config.json": json.dumps(config),
        "tokenizer_config.json": json.dumps({"added_tokens_decoder": decoder, **settings}),
    }
    return Snapshot("acme/base", "acme/base", "c" * 40, (), texts)


def beyond(of: Snapshot, template: str = "") -> list[tuple[str, bool]]:
    found = token_numbers.beyond(of, token_numbers.declared(of), token_numbers.size(of), template)
    return [(token.content, token.needed) for token in found]


def test_only_tokens_without_a_row_are_beyond() -> None:
    padded = snapshot({"vocab_size": 128}, {"<a>": 100, "<b>": 127})
    assert beyond(padded) == []
    assert beyond(snapshot({"vocab_size": 127}, {"<a>": 100, "<b>": 127})) == [("<b>", False)]
    nested = snapshot({"vocab_size": 9, "text_config": {"vocab_size": 128}}, {"<b>": 127})
    assert beyond(nested) == []
    assert beyond(snapshot({}, {"<b>": 127})) == []


def test_what_the_template_writes_or_ends_a_text_is_needed() -> None:
    ends = snapshot({"vocab_size": 9}, {"<x>": 10, "<end>": 11, "<turn>": 12}, eos_token="<end>")
    assert beyond(ends, "{{ '<turn>' }}") == [("<end>", True), ("<turn>", True), ("<x>", False)]
    assert beyond(snapshot({"vocab_size": 9, "eos_token_id": 10}, {"<x>": 10})) == [("<x>", True)]


@pytest.mark.parametrize(
    "config",
    [
        {"vocab_size": 9, "image_token_index": 9},
        {"text_config": {"vocab_size": 9}, "vision_config": {"image_token_id": 9}},
    ],
)
def test_a_picture_s_number_needs_no_row(config: dict[str, Any]) -> None:
    assert beyond(snapshot(config, {"<image>": 9})) == []


@pytest.mark.parametrize(
    "name",
    [
        "model.embed_tokens.weight", "model.language_model.embed_tokens.weight", "transformer.wte.weight",
        "model.tok_embeddings.weight", "bert.embeddings.word_embeddings.weight",
    ],
)  # fmt: skip
def test_the_embedding_is_found_by_its_usual_names(name: str) -> None:
    tensors = {
        name: Tensor("U32", (640, 8), 20480),
        "vision_tower.embed_tokens.weight": Tensor("BF16", (9000, 8), 144000),
        "bert.embeddings.position_embeddings.weight": Tensor("BF16", (9000, 8), 144000),
        "model.embed_tokens_per_layer.weight": Tensor("BF16", (9000, 8), 144000),
        "model.norm.weight": Tensor("BF16", (9000,), 18000),
    }
    assert embedding_rows(tensors) == 640
    del tensors[name]
    assert embedding_rows(tensors) is None


def test_config_json_alone_refuses_nothing() -> None:
    absent = snapshot({"vocab_size": 9, "eos_token_id": 9}, {"<end>": 9})
    assert check_tokens(absent, "", offline=True) == []


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


def add(model: Path, content: str, number: int, *, small: bool = True) -> Snapshot:
    """Put a token into the files of the tokenizer."""
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["added_tokens"].append({**tokenizer["added_tokens"][-1], "id": number, "content": content})
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    if small:
        path = model / "tokenizer_config.json"
        config = json.loads(path.read_text())
        config["added_tokens_decoder"][str(number)] = {"content": content, "special": True}
        path.write_text(json.dumps(config))
    return local.resolve(str(model), model)


def test_a_token_that_a_user_may_write_is_a_warning_and_fails(model: Path) -> None:
    (found,) = check_tokens(add(model, "<|extra|>", ROWS), "", offline=True)
    assert found.value == {str(ROWS): "<|extra|>"}
    table = tables.of_folder(model)
    assert table is not None
    assert not table.beyond[0].needed
    failed = probe.judge_beyond(table)
    assert isinstance(failed, Fail)
    assert failed.attribution == "configuration"
    assert "<|extra|>" in words(failed)
    assert remedy(failed).startswith("Take <|extra|> out of")


def test_a_token_that_the_template_writes_is_refused(model: Path) -> None:
    changed = add(model, "<|turn|>", ROWS)
    with pytest.raises(RepositoryError, match=r"needs the tokens <\|turn\|>") as raised:
        check_tokens(changed, "{{ '<|turn|>' }}", offline=True)
    assert (raised.value.kind, raised.value.exit_code) == ("tokens-beyond", 4)
    (model / "chat_template.jinja").write_text("<|turn|>{{ messages[0].content }}")
    table = tables.of_folder(model)
    assert table is not None
    assert table.beyond[0].needed


def test_the_tokenizer_s_own_file_counts_where_the_small_ones_are_silent(model: Path) -> None:
    assert check_tokens(add(model, "<|extra|>", ROWS, small=False), "", offline=True) == []
    table = tables.of_folder(model)
    assert table is not None
    assert [token.content for token in table.beyond] == ["<|extra|>"]


def test_a_folder_that_cannot_be_read_has_no_verdict(model: Path) -> None:
    (model / "model.safetensors").write_bytes(b"no header")
    assert tables.of_folder(model) is None
