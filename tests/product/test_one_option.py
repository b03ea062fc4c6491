"""The option of CONTRIBUTING.md, put into a copy of the package: every front end has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commandline import REPO
from tests.product.test_adding import EXAMPLES
from tests.serving import running

pytestmark = pytest.mark.slow  # a copy, a service and six processes
RULE = "generation-config"  # of the model's temperature
DEMO = REPO / "importer" / "demo" / "model"
PLACES = {  # module, and the line before which an example belongs
    "option": ("app/request.py", "    exact_fit: Annotated["),
    "field": ("app/import_request.py", "    @classmethod\n    def of("),
    "effect": ("app/decide.py", "    preferences = replace(request.full_preferences, "),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, to which the examples are added."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        REPO / "importer", folder / "importer", ignore=shutil.ignore_patterns("node_modules", "__pycache__")
    )
    for table in ("parser_defaults.json", "inference_defaults.json"):
        shutil.copy(REPO / table, folder)
    for name, (module, before) in PLACES.items():
        path = folder / "importer" / module
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, before
        path.write_text(text.replace(before, f"{EXAMPLES[name]}{before}"), encoding="utf-8")
    return folder


def python(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "IMPORTER_"))}
    env = {
        **kept,
        "PYTHONPATH": str(copy), "IMPORTER_HOME": str(copy / "home"), "COLUMNS": "200",
        "IMPORTER_PARSERS": "off",  # none are fetched
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, *words], cwd=copy, env=env, capture_output=True, text=True, check=False
    )


RUNS = """
import contextlib, io, json, sys
from importer.cli.main import run
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    assert code == 0, err.getvalue()
    print(json.dumps(out.getvalue() + err.getvalue()))
"""


def shown(copy: Path, *commands: tuple[str, ...]) -> list[str]:
    """What each command shows, in one process."""
    done = python(copy, "-c", RUNS, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def requested(copy: Path, name: str) -> object:
    receipt = json.loads((copy / "models" / f"{name}.receipt.json").read_text(encoding="utf-8"))
    return receipt["request"]["without_rule"]


def test_an_option_changes_two_modules_beside_that_of_its_effect(copy: Path) -> None:
    changed = [
        str(path.relative_to(copy))
        for path in (copy / "importer").rglob("*.py")
        if path.read_bytes() != (REPO / path.relative_to(copy)).read_bytes()
    ]
    effect = "importer/app/decide.py"
    assert sorted(changed) == [effect, "importer/app/import_request.py", "importer/app/request.py"]


def test_the_command_line_has_it(copy: Path) -> None:
    """Also a list; a later import keeps the value until it is unset."""
    (copy / "list").write_text(f"{DEMO}\n", encoding="utf-8")
    rest = ("--no-validate", "--yes")
    typed = (str(DEMO), "--name", "typed", *rest)
    explained, plain, told, again, listed = shown(
        copy, ("import", "--help"), (str(DEMO), "--dry-run", "--json", *rest),
        (*typed, "--json", "--without-rule", RULE), typed, ("--from", "list", "--without-rule", RULE, *rest),
    )  # fmt: skip
    assert "--without-rule RULE" in explained
    assert "decide without the evidence of this rule" in explained
    assert "parameters.temperature" in json.loads(plain.splitlines()[0])["decisions"]
    assert json.loads(told.splitlines()[0])["decisions"]["parameters.temperature"]["value"] is None
    assert f"without_rule={RULE}" in again
    assert requested(copy, "typed") == requested(copy, json.loads(listed.splitlines()[0])["name"]) == RULE
    shown(copy, (*typed, "--unset", "without_rule"))
    assert requested(copy, "typed") is None


def test_the_python_api_has_it(copy: Path) -> None:
    call = f"import_model({str(DEMO)!r}, name='programmed', without_rule={RULE!r})"
    done = python(copy, "-c", f"from importer import import_model; {call}; print(import_model.__doc__)")
    assert done.returncode == 0, done.stderr
    assert "``without_rule``  str | None: decide without the evidence of this rule." in done.stdout
    assert requested(copy, "programmed") == RULE


def test_the_service_has_it(copy: Path, tmp_path: Path) -> None:
    """In its schema, in an import and in the job; a value that the schema excludes is refused."""
    with running(tmp_path, "--no-validate", env={"PYTHONPATH": str(copy)}) as service:
        schemas = service.client.get("/openapi.json").json()["components"]["schemas"]
        field = schemas["Import"]["properties"]["without_rule"]
        assert field["description"] == "decide without the evidence of this rule"
        job = service.imported("acme/chat", without_rule=RULE)
        assert (job["state"], job["request"]["without_rule"]) == ("succeeded", RULE), job
        receipt = service.client.get(f"/v1/configs/{job['config']}/receipt").json()
        assert receipt["request"]["without_rule"] == RULE
        refused = service.client.post("/v1/imports", json={"reference": "acme/chat", "without_rule": 1})
        assert refused.json()["errors"][0]["pointer"] == "/without_rule"
