"""The package of CONTRIBUTING.md, installed by pip: its parts are found, listed and used in real commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import ENGINES
from importer.exports import FORMATS
from tests.openai_api import api

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("foreign")]  # one process installs the packages
PAGE = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES: dict[str, str] = dict(re.findall(r"^```\w+ (\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
OWNER = "acme-importer 1.0"
# A backend in the package's own folder: pip builds and installs for real, and fetches nothing.
BACKEND = """
import base64, hashlib, pathlib, tomllib, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    points = ""
    for group, rows in project["entry-points"].items():
        points += f"[{group}]\\n" + "".join(f"{key} = {value}\\n" for key, value in rows.items())
    about = f"{name}-{version}.dist-info/"
    files = {str(path): path.read_text() for path in pathlib.Path(name).glob("*.py")}
    files[about + "METADATA"] = f"Metadata-Version: 2.1\\nName: {project['name']}\\nVersion: {version}\\n"
    files[about + "WHEEL"] = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files[about + "entry_points.txt"] = points
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\\n"
    files[about + "RECORD"] = record + about + "RECORD,,\\n"
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel
"""
# The other groups, cheaply: an engine that is declared, and a report.
MORE = """
[project.entry-points."importer.engines"]
acme = "acme_importer.more:engine"

[project.entry-points."importer.renderers"]
acme-lines = "acme_importer.more:LINES"
"""
CODE = """
from dataclasses import replace

from importer.engines.mlx import Mlx
from importer.reports import ReportFormat

LINES = ReportFormat("Acme: lines", ".acme", "acme_importer.more")


def engine():
    return replace(Mlx(), name="acme", distributions=("acme-engine",))


def write(sheet):
    return f"acme: {sheet.name}\\n"
"""
# Parts that cannot be used, each with a sound part of importer's, or of the other package, under its name.
BROKEN = """
[project]
name = "broken-importer"
version = "2.0"

[project.entry-points."importer.exports"]
compose = "broken_importer.parts:FORMAT"
acme-card = "broken_importer.parts:FORMAT"
of-no-type = "broken_importer.parts:TEXT"
of-no-module = "broken_importer.nothing:FORMAT"

[project.entry-points."importer.probes"]
health = "broken_importer.parts"
leaves = "broken_importer.leaves"
raises = "broken_importer.raises:raises"
"""
BROKEN_CODE = {
    "parts": "from importer.exports import ExportFormat\nTEXT = 'x'\nFORMAT = ExportFormat('x', __name__)\n"
    "def export(*_): raise AssertionError\n",
    "leaves": "raise SystemExit('leaves')\n",
    "raises": "from importer.validation.probe import probe\n@probe('raises', 'x', needs=lambda _: None)\n"
    "def raises(_): return 1 / 0\n",
}
Command = Callable[..., subprocess.CompletedProcess[str]]


def install(place: Path, project: str, code: dict[str, str], target: Path) -> None:
    """Install a package into a folder as a user does, without a network."""
    name = re.findall(r'name = "(.*)"', project)[0].replace("-", "_")
    (place / name).mkdir(parents=True)
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n\n'
    (place / "pyproject.toml").write_text(build + project)
    (place / "backend.py").write_text(BACKEND)
    for module, text in {"__init__": "", **code}.items():
        (place / name / f"{module}.py").write_text(text)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    argv = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(place)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def commands(folder: Path, *packages: Path) -> Command:
    """Return a function that runs importer where these folders hold packages."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "IMPORTER_", "PYTHON"))}
    env |= {
        "IMPORTER_HOME": str(folder / "home"), "HF_ENDPOINT": "http://127.0.0.1:9",
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
    }  # fmt: skip

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-P", "-m", "importer", *words]
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example of the page, with the parts of ``MORE``."""
    place = tmp_path_factory.mktemp("acme")
    code = {"card": EXAMPLES["card"], "greeting": EXAMPLES["greeting"], "more": CODE}
    install(place / "source", EXAMPLES["package"] + MORE, code, place / "site")
    return place / "site"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("broken")
    install(place / "source", BROKEN, BROKEN_CODE, place / "site")
    return place / "site"


@pytest.fixture(scope="module")
def importer(acme: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Importer with the package, in a folder with a document of the demo model."""
    folder = tmp_path_factory.mktemp("desk")
    run = commands(folder, acme)
    run(str(MODEL), "--name", "demo", "--backend", "mlx", "--yes", "--no-validate")
    return run


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_lists_name_the_packages_after_everything_of_importers_own(importer: Command) -> None:
    for words, own, row in (
        (("export", "--list"), [*FORMATS], {"format": "acme-card", "consumer": "Acme: a card"}),
        (("engine", "list"), [*ENGINES], {"engine": "acme", "version": None, "python": None}),
    ):
        *before, added = lines(importer(*words, "--json").stdout)
        assert ([next(iter(one.values())) for one in before], added) == (own, {**row, "package": OWNER})
        assert not [one for one in before if "package" in one]
    assert OWNER in importer("export", "--list").stdout
    after = lines(importer("validate", "--list-probes", "--json").stdout)
    (added,) = [row for row in after if "package" in row]
    assert {"probe": "acme-greeting", "needs": "the model chats", "package": OWNER}.items() <= added.items()


def test_an_export_is_written(importer: Command) -> None:
    told = importer("export", "demo", "acme-card")
    assert told.stdout == f"demo serves {MODEL}\n"


def test_a_probe_runs_and_its_report_is_written(importer: Command, tmp_path: Path) -> None:
    report = tmp_path / "run.acme"
    with api() as (url, asked):
        words = ("validate", "demo", "--against", url, "--model", "hers", "--probe", "acme-greeting")
        told = importer(*words, "--json", "--report", str(report))
    (row,) = json.loads(told.stdout)["outcomes"]
    assert (row["probe"], row["outcome"], row["package"]) == ("acme-greeting", "pass", OWNER)
    assert row["reason"] == "the answer is 'Hello, None!'"
    assert "Greet me" in json.dumps(asked)
    assert report.read_text() == "acme: demo\n"


def test_the_other_groups_are_found_by_name(importer: Command) -> None:
    told = importer("validate", "demo", "--engine", "acme", code=6)
    assert "The engine acme is not installed." in told.stderr
    told = importer("report", "demo", "--format", "acme-lines")
    assert told.stdout == "acme: demo\n"


def test_what_is_broken_is_a_sentence_and_takes_nothing_away(
    acme: Path, broken: Path, tmp_path: Path
) -> None:
    run = commands(tmp_path, acme, broken)
    run(str(MODEL), "--name", "demo", "--backend", "mlx", "--yes", "--no-validate")
    told = run("export", "--list", "--json")
    assert [row["format"] for row in lines(told.stdout)][-2:] == ["gpustack", "acme-card"]
    warned = "Warning: '{}' of the package broken-importer 2.0 cannot be used in importer.{}: {}."
    step = " Update the package, or remove it."
    assert told.stderr.splitlines() == [
        warned.format(name, "exports", problem) + step
        for name, problem in (
            ("compose", "the name belongs to importer"),
            ("acme-card", "the name belongs to acme-importer 1.0"),
            ("of-no-type", "broken_importer.parts:TEXT is no such part"),
            ("of-no-module", "it failed with ModuleNotFoundError: No module named 'broken_importer.nothing'"),
        )
    ]
    assert "demo has no such export" in run("export", "demo", "compose", code=5).stderr
    assert run("export", "demo", "acme-card").stdout.startswith("demo serves")
    told = run("export", "demo", "of-no-type", code=2)
    assert "'of-no-type' of the package broken-importer 2.0 cannot be used" in told.stderr
    with api() as (url, _):
        words = ("validate", "demo", "--against", url, "--model", "hers", "--json")
        told = run(*words, "--probe", "raises", "--probe", "acme-greeting", code=1)
    assert "it failed with SystemExit: leaves" in told.stderr
    rows = {row["probe"]: row for row in json.loads(told.stdout)["outcomes"]}
    assert rows["acme-greeting"]["outcome"] == "pass"
    assert (rows["raises"]["outcome"], rows["raises"]["attribution"]) == ("inconclusive", "environment")
    assert rows["raises"]["reason"] == "it failed with ZeroDivisionError: division by zero"


def test_neither_help_nor_an_import_reads_the_packages(acme: Path, tmp_path: Path) -> None:
    code = (
        "import sys, importlib.metadata as m; real = m.entry_points\n"
        "m.entry_points = lambda **k: sys.exit('asked') if 'importer' in str(k) else real(**k)\n"
        "from importer.__main__ import main; sys.exit(main())"
    )
    env = {**os.environ, "PYTHONPATH": str(acme), "IMPORTER_HOME": str(tmp_path)}
    for words in (("--help",), ("report", "--help"), (str(MODEL), "--dry-run", "--backend", "mlx")):
        argv = [sys.executable, "-c", code, *words]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
