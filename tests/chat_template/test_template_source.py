"""Where templates and declared tokens are found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.chat_template import find
from importer.chat_template.vocabulary import read_vocabulary
from importer.engines.registries import loader_of
from importer.errors import RepositoryError
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason

CONFIG, SIDECAR = "tokenizer_config.json", "chat_template.jinja"


def snapshot(texts: dict[str, Any], **info: Any) -> Snapshot:
    written = {k: v if isinstance(v, str) else json.dumps(v) for k, v in texts.items()}
    return Snapshot("a/b", "a/b", None, (), written, info)


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": n, "template": f"text of {n}"} for n in names]


@pytest.mark.parametrize(
    ("texts", "text", "file"),
    [
        ({"chat_template.jinja": "T"}, "T", "chat_template.jinja"),
        ({"tokenizer_config.json": {"chat_template": "T"}}, "T", "tokenizer_config.json"),
        ({"chat_template.json": {"chat_template": "T"}}, "T", "chat_template.json"),
        ({"processor_config.json": {"chat_template": "T"}}, "T", "processor_config.json"),
        ({"tokenizer_config.json": {"chat_template": {"default": "T"}}}, "T", "tokenizer_config.json"),
        ({"tokenizer_config.json": {"chat_template": "old"}, "chat_template.jinja": "new"}, "new",
         "chat_template.jinja"),
        ({"tokenizer_config.json": {"chat_template": named("default", "tool_use", "rag")}},
         "text of tool_use", "tokenizer_config.json"),
        ({"tokenizer_config.json": {"chat_template": named("other")}}, "text of other",
         "tokenizer_config.json"),
        ({"chat_template.jinja": "D", "additional_chat_templates/tool_use.jinja": "T"}, "T",
         "additional_chat_templates/tool_use.jinja"),
        ({"chat_template.jinja": "D", "additional_chat_templates/rag.jinja": "R"}, "D",
         "chat_template.jinja"),
    ],
)  # fmt: skip
def test_found(texts: dict[str, Any], text: str, file: str) -> None:
    found = find.find(snapshot(texts))
    assert found is not None
    assert (found.text, found.source) == (text, file)


PROCESSOR = {"preprocessor_config.json": {}}
TOOLS, IMAGES = {"chat_template": "tools"}, {"chat_template": "images"}
# A text for requests with tools, and one for the others; "refused" as the engine refuses them.
BOTH = {"tokenizer_config.json": TOOLS, "chat_template.json": IMAGES}


@pytest.mark.parametrize(
    ("engine", "texts", "expected"),
    [
        ("vllm", BOTH | PROCESSOR, ("tools", "images")),
        ("mlx-vlm", BOTH | PROCESSOR, ("images", "images")),
        ("vllm-mlx", BOTH | PROCESSOR, ("images", "images")),
        ("mlx", BOTH | PROCESSOR, ("tools", "tools")),
        *((engine, BOTH, ("tools", "tools")) for engine in ("vllm", "mlx", "mlx-vlm", "vllm-mlx")),
        ("vllm", BOTH | {"config.json": {"vision_config": {"depth": 1}}}, ("tools", "images")),
        ("vllm", {"chat_template.json": IMAGES} | PROCESSOR, ("refused", "images")),
        ("mlx-vlm", {"chat_template.json": IMAGES} | PROCESSOR, ("images", "images")),
        *(
            (engine, {"chat_template.json": TOOLS, "tokenizer_config.json": {}}, None)
            for engine in ("vllm", "mlx", "mlx-vlm", "vllm-mlx")
        ),
        ("mlx", {"chat_template.json": TOOLS} | PROCESSOR, None),
        ("vllm", BOTH | PROCESSOR | {"chat_template.jinja": "jinja"}, ("jinja", "images")),
        ("vllm", BOTH | {"processor_config.json": {"chat_template": "own"}}, ("tools", "own")),
        ("vllm",
         {"tokenizer_config.json": {"chat_template": named("default", "tool_use")},
          "chat_template.jinja": "j"}, ("j", "j")),
    ],
)  # fmt: skip
def test_each_engine_has_the_template_that_its_loader_opens(
    engine: str, texts: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    """As ``tests/engines/test_loaders_engine.py`` finds it with the engines' own loaders."""
    found = find.find(snapshot(texts), loader_of(engine))
    text = None if found is None else "refused" if find.REFUSAL in found.text else found.text
    assert (None if found is None else (text, found.plain or found.text)) == expected


@pytest.mark.parametrize(
    ("engine", "texts", "kind"),
    [
        ("mlx", {"chat_template.json": TOOLS}, "unopened"),
        ("vllm", {"chat_template.json": TOOLS}, "unopened"),
        ("vllm", {"chat_template.json": TOOLS} | PROCESSOR, "unopened-tools"),
        ("mlx-vlm", {"chat_template.json": TOOLS} | PROCESSOR, None),
        ("vllm", {"tokenizer_config.json": TOOLS}, None),
        ("vllm", {}, None),
    ],
)
def test_a_file_that_no_loader_opens_is_named(engine: str, texts: dict[str, Any], kind: str | None) -> None:
    found = find.unopened(snapshot(texts), loader_of(engine))
    assert (None if found is None else found.kind) == kind
    if found is not None:
        assert found.fields["file"] == "chat_template.json"
        assert found.fields["offer"] == Reason(find.TemplateFault.OFFERED, template="repository:default")
        assert find.named(snapshot(texts), loader_of(engine)) == {"default": "tools"}


def test_a_template_of_another_place_has_the_name_of_its_file() -> None:
    assert find.named(snapshot(BOTH | PROCESSOR), loader_of("mlx-vlm")) == {
        "default": "images",
        "tokenizer_config.json": "tools",
    }


def test_every_name_is_told_and_the_plain_one_kept() -> None:
    found = find.find(
        snapshot({"chat_template.jinja": "D", "additional_chat_templates/tool_use.jinja": "T",
                  "additional_chat_templates/rag.jinja": "R"})
    )  # fmt: skip
    assert found is not None
    assert found.all == ("default", "rag", "tool_use")
    assert (found.name, found.plain) == ("tool_use", "D")
    alone = find.find(snapshot({"chat_template.jinja": "T"}))
    assert alone is not None
    assert alone.plain == ""
    assert alone.digest != found.digest


def test_a_set_without_a_default_refuses_requests_without_tools() -> None:
    found = find.find(snapshot({"additional_chat_templates/tool_use.jinja": "T"}))
    assert found is not None
    assert (found.name, found.text) == ("tool_use", "T")
    assert "no default specified" in found.plain


def test_the_hubs_own_copy_is_the_last_resort() -> None:
    found = find.find(snapshot({}, chat_template="H"))
    assert found is not None
    assert (found.text, found.source) == ("H", "the Hub's API")
    better = find.find(snapshot({"tokenizer_config.json": {"chat_template": "T"}}, chat_template="H"))
    assert better is not None
    assert better.text == "T"


def test_a_huge_template_is_refused() -> None:
    with pytest.raises(RepositoryError) as caught:
        find.find(snapshot({"chat_template.jinja": "x" * (find.MAX_CHARACTERS + 1)}))
    assert caught.value.kind == "too-large"


def test_vocabulary_merges_its_files() -> None:
    read = read_vocabulary(
        snapshot({
            "tokenizer_config.json": {
                "added_tokens_decoder": {
                    "7": {"content": "<|im_end|>", "special": True},
                    "8": {"content": "<tool_call>", "special": False},
                },
                "eos_token": {"content": "<|im_end|>"}, "bos_token": None,
                "extra_special_tokens": {"image_token": "<image>"},
            },
            "special_tokens_map.json": {
                "pad_token": "<pad>", "additional_special_tokens": ["<a>", {"content": "<b>"}],
            },
            "added_tokens.json": {"<think>": 9, "<tool_call>": 8},
            "generation_config.json": {"eos_token_id": [7, 9, 55]},
        })
    )  # fmt: skip
    assert {t.content: (t.special, t.id) for t in read.tokens} == {
        "<|im_end|>": (True, 7),
        "<tool_call>": (False, 8),
        "<think>": (False, 9),
        "<image>": (True, None),
        "<pad>": (True, None),
        "<a>": (True, None),
        "<b>": (True, None),
    }
    assert read.declared
    assert read.sources == ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
    assert read.stops == ("<|im_end|>", "<think>")
    assert read.variables["eos_token"] == "<|im_end|>"
    assert read.variables["bos_token"] == ""


@pytest.mark.parametrize("odd", [{"added_tokens_decoder": []}, {"added_tokens_decoder": {"x": 3, "1": {}}},
                                 {"additional_special_tokens": 5}, {"eos_token": 7}])  # fmt: skip
def test_odd_vocabularies_are_read_as_far_as_they_go(odd: dict[str, Any]) -> None:
    assert read_vocabulary(snapshot({"tokenizer_config.json": odd})).tokens == ()


@pytest.mark.parametrize(
    ("texts", "kind", "file"),
    [
        *(
            ({"tokenizer_config.json": {"chat_template": [*named("default"), bad]}}, "entry", CONFIG)
            for bad in (7, "x", {"template": "T"}, {"name": "rag"})
        ),
        *(
            ({"tokenizer_config.json": {"chat_template": bad}}, "not-text", CONFIG)
            for bad in (5, True, {"default": 5}, [*named("a"), {"name": "b", "template": 5}])
        ),
        *(({"tokenizer_config.json": {"chat_template": bad}}, "empty", CONFIG) for bad in ("", " ", [], {})),
        ({"chat_template.jinja": "", "tokenizer_config.json": {"chat_template": "T"}}, "empty", SIDECAR),
        ({"chat_template.json": {"chat_template": 5}}, "not-text", "chat_template.json"),
    ],
)  # fmt: skip
def test_a_template_that_no_engine_can_use(texts: dict[str, Any], kind: str, file: str) -> None:
    """As transformers 5.19 did with each."""
    found = find.fault(snapshot(texts))
    assert found is not None
    assert (found.kind, found.fields) == (kind, {"file": file})


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"tokenizer_config.json": {"chat_template": None}},
        {"tokenizer_config.json": {"chat_template": named("default", "rag")}},
        {"tokenizer_config.json": {"chat_template": {"default": "T"}}},
        {"tokenizer_config.json": {"chat_template": [5]}, "chat_template.jinja": "T"},
    ],
)
def test_a_template_without_a_fault(texts: dict[str, Any]) -> None:
    assert find.fault(snapshot(texts)) is None
