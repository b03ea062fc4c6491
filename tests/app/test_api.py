"""The public API: its page's examples run, and every name is typed and documented."""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path
from typing import get_type_hints

import pytest
from mypy import api as mypy

import importer
from importer import import_model, why
from importer.app.import_request import ImportRequest
from importer.app.request import OPTIONS
from importer.document.store import Store
from importer.errors import DocumentError, UsageError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference-python.md").read_text(encoding="utf-8")
EXAMPLES = dict(
    re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
)


@pytest.fixture
def without_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without engines: no parser of an installed one is asked."""
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path / "home"))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the demo model where a checkout has it."""
    shutil.copytree(ROOT / "importer" / "demo" / "model", tmp_path / "importer" / "demo" / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(heading: str) -> None:
    exec(compile(EXAMPLES[heading], f"docs/reference-python.md: {heading}", "exec"), {})


@pytest.mark.usefixtures("without_engines")
@pytest.mark.parametrize("heading", [h for h in EXAMPLES if h != "Validate"])
def test_an_example_runs(checkout: Path, heading: str) -> None:
    run(heading)


@pytest.mark.nightly
@pytest.mark.engine
def test_the_example_of_a_validation_runs(checkout: Path) -> None:
    run("Import, recheck, export")
    run("Validate")
    receipt = Store(Path("models")).load("demo").need_receipt()
    assert receipt.validation is not None
    assert receipt.validation["passed"]


def test_what_progress_raises_ends_a_call_that_has_written_nothing(checkout: Path) -> None:
    def ends(_step: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_model("./importer/demo/model", progress=ends)
    assert not Path("models").exists()


def test_words_of_a_command_alone_are_positional() -> None:
    functions = {
        name: thing for name in importer.__all__ if inspect.isfunction(thing := getattr(importer, name))
    }
    assert {
        name: [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        for name, one in functions.items()
        for parameters in [inspect.signature(one).parameters.values()]
    } == {
        "export": ["document", "format_name"], "import_model": ["reference"],
        "recheck": ["names"], "validate": ["document"], "why": ["document", "key"],
    }  # fmt: skip


@pytest.mark.usefixtures("without_engines")
def test_an_edit_is_explained_as_one_before_anything_is_written(checkout: Path) -> None:
    first = import_model("./importer/demo/model", folder="models")
    text = first.path.read_text(encoding="utf-8")
    first.path.write_text(text.replace("temperature: 0.1", "temperature: 0.5"), encoding="utf-8")
    planned = import_model("./importer/demo/model", folder="models", dry_run=True)
    assert planned.decisions["parameters.temperature"].explain()[0] == "parameters.temperature: 0.5, edited"
    assert planned.decisions.keys() == {one.key for one in why("model", folder="models")}


def test_every_name_is_documented_and_stands_on_the_page() -> None:
    for name in set(importer.__all__) - {"__version__"}:
        thing = getattr(importer, name)
        assert inspect.getdoc(thing), name
        assert f"`{name}" in PAGE or f"import {name}" in PAGE or f"{name}()" in PAGE, name
    with pytest.raises(AttributeError):
        getattr(importer, "nothing_of_that_name")  # noqa: B009 - mypy knows better


def test_each_declared_option_is_read_or_held_with_its_type() -> None:
    """``revision`` has one type in both; ``settings`` becomes preferences, ``template`` an override."""
    held = get_type_hints(ImportRequest)
    parsed = {"settings", "backend", "unset", "memory", "template"}
    assert {n: o.type for n, o in OPTIONS.items() if n not in parsed} == {
        name: type_
        for name, type_ in held.items()
        if name not in ("reference", "preferences", "measured", "observed", *parsed)
    }
    with pytest.raises(TypeError, match="pace"):
        import_model("./importer/demo/model", pace=1)  # type: ignore[call-arg]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_program_of_the_examples_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user's type checker sees them: a wrong argument is an error, the examples are none."""
    monkeypatch.chdir(ROOT)
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text("\n".join(f"def f{n}() -> None:\n" + re.sub("^", "    ", code, flags=re.MULTILINE)
                               for n, code in enumerate(EXAMPLES.values())), encoding="utf-8")  # fmt: skip
    wrong.write_text("from importer import import_model\nimport_model(1, backend=2)\n", encoding="utf-8")
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    out, _, code = mypy.run([*options, str(right)])
    assert code == 0, out
    out, _, code = mypy.run([*options, str(wrong)])
    assert out.count("[arg-type]") == 2, out


@pytest.mark.usefixtures("without_engines")
def test_an_approval_names_its_person(checkout: Path) -> None:
    written = import_model("./importer/demo/model", folder="models", approved_by="Ada").receipt
    assert written is not None
    assert written.review["state"] == "approved"
    assert written.review["by"] == "Ada"


@pytest.mark.usefixtures("without_engines")
def test_a_value_of_the_wrong_type_is_refused_and_nothing_is_written(checkout: Path) -> None:
    with pytest.raises(UsageError) as caught:
        import_model("./importer/demo/model", folder="models", settings={"temperature": "hot"})
    assert caught.value.kind == "bad-value"
    assert not Path("models").exists()


@pytest.mark.usefixtures("without_engines")
def test_an_edit_that_conflicts_is_an_error_until_somebody_decides(checkout: Path) -> None:
    first = import_model("./importer/demo/model", folder="models", settings={"temperature": 0.2})
    text = first.path.read_text(encoding="utf-8")
    first.path.write_text(text.replace("temperature: 0.2", "temperature: 0.5"), encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        import_model("./importer/demo/model", folder="models", settings={"temperature": 0.7})
    assert caught.value.kind == "conflict"
    kept = import_model("./importer/demo/model", folder="models", settings={"temperature": 0.7},
                        on_conflict="mine")  # fmt: skip
    assert kept.document["parameters"]["temperature"] == 0.5
