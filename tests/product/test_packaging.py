"""Releases: declared dependencies, lock files, workflows, and the wheel in an environment of its own."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from importer.cli.main import extra_of
from importer.version import __version__
from tests import package_index
from tests.syntax import ROOT, nodes
from tools.build_page import WHEEL
from tools.release import address, materials

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK_NAMES = (
    "requirements.lock",
    "requirements-build.lock",
    "requirements-publish.lock",
    "requirements-service.lock",
    "requirements-dev.lock",
)
LOCKS = {name: (ROOT / name).read_text(encoding="utf-8") for name in LOCK_NAMES}
# Rooms whose packages an extra brings; the base install has none of them.
OF_EXTRAS = {
    "importer/service/": "service", "importer/storage/": "service", "importer/tracing.py": "service",
}  # fmt: skip
WORKFLOWS = ROOT / ".github" / "workflows"
# They run in the environment of an engine.
ELSEWHERE = {"importer/engines/parser_worker"}
LOCKED = ("--require-hashes", "--no-deps")
TABLES = ("parser_defaults.json", "inference_defaults.json")


distributions = cache(packages_distributions)


def normal(name: str) -> str:
    """Return a distribution's name as the index has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(lines: list[str]) -> set[str]:
    return {normal(re.split(r"[\[<>=!~ ;]", line)[0]) for line in lines}


def imported(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each module's path and the first name of every package that it imports."""
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.rpartition("/")[0] in ELSEWHERE or re.match(r"importer/demo/[^_]", place):
            continue
        for node in nodes(path):
            if isinstance(node, ast.Import):
                yield from ((place, alias.name.partition(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                yield place, node.module.partition(".")[0]


@pytest.mark.xdist_group("syntax")
def test_the_base_install_runs_without_the_service() -> None:
    """Imports in functions count, too; the commands of the service's own data name the extra they miss."""
    of_the_service = {"service"}
    found = {
        (path.stem, node.module)
        for path in sorted((ROOT / "importer").rglob("*.py"))
        if not re.search(r"/importer/(service|storage)/", path.as_posix()) and path.stem not in of_the_service
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and re.match(r"importer\.(service|storage)\b", node.module or "")
    }
    assert found == {
        ("importing", "importer.storage.actors")  # names alone
    }


@pytest.mark.xdist_group("syntax")
def test_every_import_is_declared() -> None:
    base, extras = required(PROJECT["dependencies"]), PROJECT["optional-dependencies"]
    declared = {room: base | required(extras[extra]) for room, extra in OF_EXTRAS.items()}
    known = distributions()
    foreign = {
        (place, name)
        for place, name in imported(ROOT / "importer")
        if name not in sys.stdlib_module_names | {"importer", "_typeshed"}
    }
    assert len({name for _, name in foreign}) > 10
    undeclared = {
        (place, name)
        for place, name in foreign
        if not {normal(d) for d in known.get(name, [])}
        & next((names for room, names in declared.items() if place.startswith(room)), base)
    }
    assert undeclared == set()


@pytest.mark.xdist_group("syntax")
def test_every_dependency_is_imported() -> None:
    used = {name for _, name in imported(ROOT / "importer")}
    there = {normal(d) for name in used for d in distributions().get(name, [])}
    extras = PROJECT["optional-dependencies"]
    assert required([*PROJECT["dependencies"], *extras["service"]]) <= there


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_has_every_hash_and_no_address(name: str) -> None:
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", LOCKS[name], flags=re.MULTILINE).strip())
    assert len(entries) > (5 if "build" in name else 20)
    assert [
        e for e in entries if not re.match(r"[\w.-]+==[\w.]+[^\n]*\\\n", e) or "--hash=sha256:" not in e
    ] == []
    assert not re.search(r"://|--(?:extra-)?index|--find-links| @ ", LOCKS[name])


def test_lock_files_hold_what_is_declared() -> None:
    extras = PROJECT["optional-dependencies"]
    locked = {
        name: required(re.findall(r"^[\w.-]+==\S+", text, re.MULTILINE)) for name, text in LOCKS.items()
    }
    declared = required(PROJECT["dependencies"])
    assert declared <= locked["requirements.lock"]
    assert declared | required(extras["service"]) <= locked["requirements-service.lock"]
    assert declared.union(*map(required, extras.values())) <= locked["requirements-dev.lock"]
    assert not {"fastapi", "pydantic", "sqlalchemy", "uvicorn"} & locked["requirements.lock"]
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    to_build = [*pyproject["build-system"]["requires"], WHEEL]
    assert to_build == pyproject["dependency-groups"]["build"]
    assert required(to_build) <= locked["requirements-build.lock"]


def test_lock_files_agree() -> None:
    pins = {name: dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)) for name, text in LOCKS.items()}
    development = pins["requirements-dev.lock"]
    assert {n: v for n, v in pins["requirements.lock"].items() if development.get(n) != v} == {}
    assert {n: v for n, v in pins["requirements-build.lock"].items() if development.get(n, v) != v} == {}


@pytest.mark.parametrize(
    "path", ["Makefile", "action.yml", "deploy/Dockerfile", ".github/workflows/release.yml"]
)
def test_everything_is_installed_with_hashes(path: str) -> None:
    """What is built is built with locked packages; the checkout alone, of the Makefile, is a developer's."""
    text = (
        (ROOT / path).read_text(encoding="utf-8").replace("$(HASHED)", " ".join(("-m pip install", *LOCKED)))
    )
    assert "-r requirements" in text.replace("$ACTION/", "").replace('"', "")
    for line in text.splitlines():
        for words in re.findall(r"-m (?:pip (?:install|wheel)|build)\b.*", line):
            built = "--no-build-isolation" in words or "--no-isolation" in words
            locked = all(word in words for word in LOCKED)
            assert built or locked or "--no-index" in words or words.endswith(" -e ."), line


class Requirements(NamedTuple):
    """An index with importer's distribution as pyproject.toml names it, and another program beside it."""

    address: str

    def install(self, requirement: str, target: Path) -> tuple[set[str], str]:
        """Return the distributions that pip installs for a requirement, and its warnings."""
        words = [
            "--isolated",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--no-deps",
            "--no-cache-dir",
        ]
        words += ["--index-url", f"{self.address}/simple/", "--target", str(target), requirement]
        done = subprocess.run(
            [sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False
        )
        return {path.name.partition("-")[0] for path in target.glob("*.dist-info")}, done.stderr


@pytest.fixture(scope="module")
def index() -> Iterator[Requirements]:
    extras = "".join(f"Provides-Extra: {name}\n" for name in PROJECT["optional-dependencies"])
    with package_index.serving() as served:
        for name, version, more in ((PROJECT["name"], __version__, extras), ("importer", "9.9", "")):
            about = f"{name.replace('-', '_')}-{version}.dist-info"
            text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}"
            kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            raw = io.BytesIO()
            with zipfile.ZipFile(raw, "w") as archive:
                archive.writestr(f"{about}/METADATA", text)
                archive.writestr(f"{about}/WHEEL", kind)
                archive.writestr(f"{about}/RECORD", "")
            served.add(name, f"{about.removesuffix('.dist-info')}-py3-none-any.whl", raw.getvalue())
        yield Requirements(served.address)


def named_in_docs() -> Iterator[tuple[str, str]]:
    """Yield page and requirement, of commands and of projects; a folder is none, nor a gap to fill in."""
    for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        text = path.read_text(encoding="utf-8")
        words = re.findall(
            r"(?:pip install|uvx|pipx run(?! works)) (?:-[-\w]+ )*'?([\w.-]+(?:\[[\w,]+\])?)", text
        )
        for block in re.findall(r"^```toml[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            words += tomllib.loads(block).get("project", {}).get("dependencies", [])
        yield from ((path.name, word) for word in words if re.match(r"(?!of$)\w", word))


@pytest.mark.parametrize("requirement", sorted({requirement for _, requirement in named_in_docs()}))
def test_a_requirement_of_the_docs_is_importer(requirement: str, index: Requirements, tmp_path: Path) -> None:
    """PyPI's ``importer`` is another program."""
    pages = [page for page, named in named_in_docs() if named == requirement]
    assert index.install(requirement, tmp_path) == ({normal(PROJECT["name"]).replace("-", "_")}, ""), pages


def load(path: Path) -> dict[str, Any]:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return {"on" if key is True else key: value for key, value in data.items()}  # YAML 1.1 reads on as true


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / ".github").rglob("*.yml")), ROOT / "mkdocs.yml", ROOT / ".pre-commit-config.yaml"],
    ids=lambda p: p.name,
)
def test_yaml_files_are_yaml(path: Path) -> None:
    assert load(path)


def test_pull_requests_are_tested_on_every_python_of_the_classifiers() -> None:
    tests = load(WORKFLOWS / "tests.yml")
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert {"pull_request", "schedule"} <= set(tests["on"])
    assert tests["jobs"]["fast"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    systems = {s.partition("-")[0] for s in tests["jobs"]["fast"]["strategy"]["matrix"]["system"]}
    assert systems == {"ubuntu", "macos"}


def test_workflows_run_targets_that_are_there() -> None:
    targets = set(re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    run = {
        word
        for path in WORKFLOWS.glob("*.yml")
        for job in load(path)["jobs"].values()
        for step in job["steps"]
        for word in re.findall(r"\bmake ([\w./-]+)", step["run"])
    }
    assert {"test", "test-fast", "test-nightly"} <= run <= targets


def notes(tag: str, changelog: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run the step of the release that cuts a version's section out of the changelog."""
    (place / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    steps = load(WORKFLOWS / "release.yml")["jobs"]["release"]["steps"]
    script = next(step["run"] for step in steps if step["name"] == "Release notes")
    environment = {**os.environ, "GITHUB_REF_NAME": tag, "RUNNER_TEMP": str(place)}
    command = ["bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


def test_release_notes_are_the_section_of_the_version(tmp_path: Path) -> None:
    changelog = (
        "# C\n\n## [Unreleased]\n\n- c\n\n## [0.2.0] - 2027-01-02\n\n- b\n\n## [0.1.0] - 2026-12-01\n\n- a\n"
    )
    assert notes("v0.2.0", changelog, tmp_path).returncode == 0
    assert (tmp_path / "notes.md").read_text().strip() == "- b"
    assert notes("v0.3.0", changelog, tmp_path).returncode != 0


def test_the_address_has_one_place() -> None:
    """The page of the action names the owner, too: it is copied by readers."""
    owner = address().split("/")[-2]
    assert f"uses: {owner}/importer@v{__version__}" in (ROOT / "docs" / "gallery.md").read_text(
        encoding="utf-8"
    )
    listed = subprocess.run(
        ["git", "grep", "-l", address()], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert listed.stdout.splitlines() == ["pyproject.toml"]


def test_the_bill_of_materials_has_packages_and_parts_of_the_page() -> None:
    found = {one["purl"] for one in materials()["components"]}
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", LOCKS["requirements-service.lock"], re.MULTILINE)
    assert {f"pkg:pypi/{name}@{version}" for name, version in pins} <= found
    assert any(purl.startswith("pkg:npm/") for purl in found)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_release_is_built_twice_checked_and_installed() -> None:
    done = subprocess.run(["make", "release"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "two builds are equal" in done.stdout
    assert "the demo, validated on mlx: contract: holds" in done.stdout


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of this checkout, and the wheel that it gives where neither Node nor npm's registry is."""
    folder, bare = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("bin")
    for name in ("python3", "sh"):
        (bare / name).symlink_to(sys.executable if name == "python3" else "/bin/sh")
    build = [sys.executable, "-m", "build", "--outdir", str(folder)]
    subprocess.run([*build, "--sdist", str(ROOT)], check=True, capture_output=True)
    archive = next(folder.glob("*.tar.gz"))
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(folder)]
    environment = {**os.environ, "PATH": str(bare), "npm_config_registry": "http://127.0.0.1:9"}
    subprocess.run([*pip, str(archive)], env=environment, check=True)
    return folder


@pytest.fixture(scope="module")
def wheel(release: Path) -> Path:
    return next(release.glob("*.whl"))


@pytest.mark.slow
def test_a_release_is_what_pypi_takes(release: Path, wheel: Path) -> None:
    """PyPI shows the readme apart from its repository, so its links are absolute."""
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, release.iterdir())]
    subprocess.run(check, check=True, capture_output=True)
    name = next(n for n in zipfile.ZipFile(wheel).namelist() if n.endswith(".dist-info/METADATA"))
    readme = zipfile.ZipFile(wheel).read(name).decode()
    links = re.findall(r"\]\((?!#)([^)]+)\)", readme)
    assert len(links) > 20
    assert {link for link in links if not link.startswith("https://")} == set()
    source = re.findall("^Project-URL: Source, (.*)$", readme, re.MULTILINE)[0]
    assert any(link == f"{source}/blob/v{__version__}/docs/start.md" for link in links)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_the_tables_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"importer", "model_importer"}
    assert {f"importer/data/{table}" for table in TABLES} | {"importer/py.typed"} <= set(names)
    assert "importer/demo/model/model.safetensors" in names
    page = {name for name in names if name.startswith("importer/service/web/")}
    assert {f"importer/service/web/built/{name}" for name in ("index.html", "LICENSES.txt")} <= page
    assert [name for name in page if not name.startswith("importer/service/web/built/")] == []
    assert [n for n in names if re.search(r"demo/(?!__init__)\w+\.py|^(?!importer|model_importer)", n)] == []
    assert wheel.stat().st_size < 2_500_000


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("uvicorn", "service"), ("sqlalchemy.orm", "service"), ("prometheus_client", "service"),
        ("psycopg", "service"), ("pydantic", "service"), ("rich", None), ("no_such", None), (None, None),
    ],
)  # fmt: skip
def test_a_missing_package_is_one_of_an_extra(module: str | None, extra: str | None) -> None:
    assert extra_of(module) == extra


@pytest.mark.nightly
@pytest.mark.slow
def test_the_base_install_serves_nothing_and_names_the_extra(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *LOCKED, "-r", str(ROOT / "requirements.lock")], check=True)
    subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
    command = str(tmp_path / "venv" / "bin" / "importer")
    served = subprocess.run([command, "serve"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (served.returncode, served.stderr.splitlines()[1]) == (
        2, "Install it: pip install 'model-importer[service]'.",
    )  # fmt: skip
    asked = [command, str(ROOT / "importer" / "demo" / "model"), "--dry-run", "--backend", "mlx"]
    subprocess.run(asked, cwd=tmp_path, capture_output=True, check=True)


WITHOUT = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys(["pydantic", "fastapi", "sqlalchemy", "uvicorn", "opentelemetry"]))
from importer import cli
for found in pkgutil.walk_packages(cli.__path__, "importer.cli."):
    importlib.import_module(found.name)
"""


def test_the_command_loads_without_the_packages_of_extras() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
