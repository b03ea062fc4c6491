"""The comparison of recipes with documents: commands as settings, words of an export, verdicts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import recipes
from benchmarks.recipe_compare import Layout, _of_layouts, compared, device_of
from benchmarks.recipe_documents import Documents
from benchmarks.recipe_settings import read_script, same, settings, values_of
from benchmarks.recipe_written import unwritten
from gen_defaults.recipe_book import Book, Profile
from gen_defaults.recipe_commands import deployments, flagged

pytestmark = pytest.mark.slow  # the makers of tables

MODEL = "Qwen/Qwen3-8B"
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096,
    "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288,
    "vocab_size": 151936, "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
}  # fmt: skip
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the files of one model that has a recipe."""
    root = tmp_path_factory.mktemp("models")
    files = root / "Qwen__Qwen3-8B"
    files.mkdir()
    (files / "config.json").write_text(json.dumps(CONFIG))
    (files / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return root


@pytest.fixture(scope="module")
def documents(folder):
    """Return the documents of the folder."""
    with Documents(folder) as found:
        yield found


def official(**changes):
    """Return the official deployment of the model, with changes."""
    return replace(next(deployments(Book.shipped(), {MODEL})), **changes)


def test_a_command_becomes_settings_with_nested_values():
    words = [
        "--attention_config.backend=X", "--attention-config.use=True", "-cc.mode", "3", "--no-enable-x",
        "--tool-call-parser", "hermes", "--max-model-len", "32k", "--spec-method", "mtp",
        "--disable-flashinfer-autotune", "--disable-sliding-window",
        "--override-generation-config", '{"repetition_penalty": 1.1}', "--master-addr", "$HEAD_IP",
    ]  # fmt: skip
    assert settings(values_of(flagged(words)), {"VLLM_A": "1"}) == {
        "engine_args.attention_config": {"backend": "X", "use": True},
        "engine_args.compilation_config": {"mode": 3}, "engine_args.enable_x": False,
        "engine_args.enable_flashinfer_autotune": False, "engine_args.disable_sliding_window": True,
        "tool_parser": "hermes", "max_model_len": 32000, "engine_args.speculative_config": {"method": "mtp"},
        "parameters.repeat_penalty": 1.1, "engine_args.master_addr": "10.0.0.1", "env.VLLM_A": "1",
    }  # fmt: skip


def test_a_script_is_read_as_flags_and_variables():
    text = (
        "#!/bin/sh\n# a comment\nVLLM_A=1 vllm serve a/b --max-model-len=5 --enforce-eager '--x={\"a\": 1}'\n"
    )
    assert read_script(text) == ({"max-model-len": 5, "enforce-eager": True, "x": {"a": 1}}, {"VLLM_A": "1"})


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True), (True, 1, False), ({"a": 1}, {"a": 1.0}, True), ({"a": 1}, {}, False),
        ([1, "a"], [1.0, "a"], True), ([1], [1, 2], False), ("1", 1, True), (None, False, False),
    ],
)  # fmt: skip
def test_values_are_compared_as_the_engine_reads_them(left, right, equal):
    assert same(left, right) is equal


def test_a_layout_with_as_many_cards_is_no_worse():
    eight = Layout(8, 1, 1)
    assert _of_layouts(eight, eight, "fits") == "equal"
    assert (
        _of_layouts(eight, Layout(1, 1, 8), "fits")
        == _of_layouts(eight, Layout(4, 1, 1, 2), "fits")
        == "better"
    )
    assert _of_layouts(eight, Layout(4, 1, 1), "fits") == _of_layouts(eight, eight, "too-large") == "less"
    assert (str(Layout(4, 2, 1, 3)), str(Layout(1, 1, 1))) == ("TP4 PP2 replicas3", "TP1")


def test_a_profile_is_a_device_of_importer():
    assert device_of(Profile("rtx_pro_6000_2x", "NVIDIA", "blackwell", 2, 96)) == "2xrtx-pro-6000"
    assert device_of(Profile("h200", "NVIDIA", "hopper", 8, 141), 2) == "16xh200"
    assert device_of(Profile("xeon6", "Intel", "cpu", 4, 256)) == "xeon6"


def test_an_official_deployment_can_be_written(documents):
    deployment = official(env={"VLLM_USE_V1": "1"})
    assert deployment.flags
    assert unwritten(documents, deployment) == []


def test_what_cannot_be_written_is_named(documents):
    broken = official(flags=(("--no-such-flag", "1"), ("--max-num-seqs", "4")), env={"LD_PRELOAD": "x"})
    found = unwritten(documents, broken)
    assert [(one.name, one.outcome) for one in found] == [
        ("--no-such-flag", "refused"), ("LD_PRELOAD", "refused"),
    ]  # fmt: skip
    assert all(one.why for one in found)


def test_each_difference_has_a_reason(documents):
    book = Book.shipped()
    flags = (("--tensor-parallel-size", "8"), ("--max-model-len", "1024"), ("--trust-remote-code", None))
    h200 = book.profiles["h200"]
    lines, judged = compared(documents, book, official(flags=flags, env={"VLLM_A": "1"}, profile=h200))
    assert [line.name for line in lines] == [
        "--tensor-parallel-size", "--max-model-len", "--trust-remote-code", "VLLM_A",
    ]  # fmt: skip
    assert all(line.why for line in lines if line.outcome != "equal")
    assert [(one.what, one.verdict) for one in judged] == [("layout", "equal"), ("context", "better")]
    other = official(flags=flags, profile=h200, precision="nvfp4")
    assert [one.verdict for one in compared(documents, book, other)[1]] == ["other files"] * 2


def test_the_report_counts_each_flag(folder, capsys, tmp_path):
    assert recipes.main([str(folder), "--lines", "--json", str(tmp_path / "lines")]) == 0
    told = capsys.readouterr().out
    assert "deployments of 1 models" in told
    assert "(100.0%)" in told
    assert " 0 differences without a reason" in told
    rows = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert {row["model"] for row in rows} == {MODEL}


def test_a_folder_without_models_of_recipes_is_said(tmp_path, capsys):
    assert recipes.main([str(tmp_path)]) == 1
    assert "has no files of a model with a recipe" in capsys.readouterr().err
