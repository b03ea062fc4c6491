"""The docs say what the code does: options, commands, tables, links, schemas, and the README's session."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator
from playwright.sync_api import expect

from importer import backends
from importer.cli import arguments
from importer.cli.commands import demo
from importer.decisions.decision import KnownNone, Undecided
from importer.demo import MODEL
from importer.engines import ENGINES, get
from importer.engines.install import Installed
from importer.engines.process import serve
from importer.engines.registries import PINNED
from importer.errors import BRANCHES
from importer.signals.evidence import Rule, Status
from importer.validation.registry import listed
from tests.faults.registry import FAULTS
from tests.hubserver import HubServer, Repo, isolate
from tests.pages import browser
from tests.tiers import one_of_each
from tools import docs, site

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES = {p: p.read_text(encoding="utf-8") for p in [*TOP, *sorted((ROOT / "docs").glob("*.md"))]}
# Beside the data that made them: no pages of the site.
BESIDE = {
    p: p.read_text("utf-8")
    for p in sorted(
        [*ROOT.glob("tests/**/*.md"), *ROOT.glob("benchmarks/*.md"), ROOT / "gen_defaults" / "README.md"]
    )
}
COMMAND_PAGE = PAGES[ROOT / "docs" / "reference-commands.md"]
ALL = "\n".join(PAGES.values())
SCHEMAS = sorted((ROOT / "importer" / "data").glob("*.schema.json"))


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= 9 * 1024


def test_the_readme_and_the_page_on_failures_count_probes_and_faults() -> None:
    page = PAGES[ROOT / "docs" / "failures.md"]
    assert f"{len(list(listed()))} probes" in README
    assert f"its {len(list(listed()))} probes" in page
    assert f"{len(FAULTS)} planted faults" in README
    assert f"{len(FAULTS)} planted faults" in page


def commands(text: str) -> Iterator[list[str]]:
    """The lines of code blocks that start with ``importer`` or ``make``."""
    block = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
    fenced = block.findall(text)
    indented = re.findall(r"^    (.*)$", block.sub("", text), re.MULTILINE)
    for line in [*"".join(fenced).splitlines(), *indented]:
        words = (
            shlex.split(line.removeprefix("$ ").partition(" 2>&1")[0], comments=True)
            if re.match(r"(\$ )?(importer|make) ", line)
            else []
        )
        if words:
            yield words


def test_what_the_docs_tell_to_type_can_be_typed() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for program, *words in commands(ALL):
        if program == "make":
            assert set(words) <= targets, words
        else:
            arguments.parse(words)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "reference-api.md" else n for n in docs.PAGES]
)
def test_generated_pages_are_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == docs.PAGES[name](), (
        "run python tools/docs.py"
    )


def test_the_exit_codes_are_the_errors() -> None:
    section = COMMAND_PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert told == {0, *(branch.exit_code for branch in BRANCHES)}


def test_every_variable_is_told() -> None:
    named = re.compile(r"\bIMPORTER_[A-Z]\w*")
    code = {
        n for p in (ROOT / "importer").rglob("*.py") for n in named.findall(p.read_text(encoding="utf-8"))
    }
    assert {"IMPORTER_HOME", "IMPORTER_DIR"} <= code
    assert {n for n in code if n not in COMMAND_PAGE} == set()


def test_every_engine_is_told() -> None:
    section = PAGES[ROOT / "docs" / "engines.md"].partition("## Install an engine")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `([\w-]+)` \| [\w-]+ ([\d.]+)", section, re.MULTILINE))
    assert told == {name: PINNED.get(name) or PINNED[backends.serving(name).name] for name in ENGINES}


def test_statuses_and_claims_are_those_of_the_code() -> None:
    statuses = [*get_args(Status), KnownNone(()).status, Undecided(()).status]
    page = PAGES[ROOT / "docs" / "how-it-decides.md"]
    section = page.partition("\n## Statuses\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE) == statuses
    heard = page.partition("## 4.")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `([\w-]+)` \|.*\| `(\w+)` \|$", heard, re.MULTILINE)
    assert told == [(rule, rule.status) for rule in Rule if rule.names_parsers]


@pytest.mark.slow
def test_schemas_are_schemas() -> None:
    for path in SCHEMAS:
        schema = json.loads(path.read_text(encoding="utf-8"))
        Draft202012Validator.check_schema(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema", path.name


def test_links_lead_somewhere() -> None:
    texts = PAGES | BESIDE
    for page, target in ((p, t) for p in texts for t in re.findall(r"\]\(([^)\s]+)\)", texts[p])):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.is_file(), f"{page.name} links to {target}"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles}, target


def test_every_page_is_reached_from_the_readme() -> None:
    pages = {p.name for p in PAGES if p.parent == ROOT / "docs"}
    assert {p for p in pages if f"docs/{p}" not in README} == set()


@pytest.mark.slow
def test_the_site_builds_and_is_whole_on_a_disk(tmp_path: Path) -> None:
    """The strict mode fails on a page without a place in the nav, a dead link and a dead anchor."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        name = site.PAGES.get(page.name, page.name) if page in TOP else page.name
        assert (tmp_path / name).with_suffix(".html").is_file()
    with browser() as chrome:
        seen, asked, complaints = chrome.new_page(), list[str](), list[str]()
        seen.on("request", lambda request: asked.append(request.url))
        seen.on("console", lambda said: complaints.append(said.text))
        seen.goto((tmp_path / "index.html").as_uri())
        seen.get_by_placeholder("Search").fill("speculative")
        seen.locator(".md-search-result__link").first.click()
        expect(seen.locator("article")).to_contain_text("speculative", ignore_case=True)
        assert not seen.url.endswith("index.html")
    assert {url.partition(":")[0] for url in asked} == {"file"}
    assert complaints == []


def lasting(session: str) -> list[str]:
    """What must not change between runs: all lines, without times and speeds."""
    return [re.sub(r"[\d.]+ (s|tokens/s)\b", r"N \1", line) for line in session.splitlines()]


def test_the_session_is_that_of_the_demo() -> None:
    session = docs.pasted(ROOT / "docs" / "start.md")
    assert "$(BIN)/importer demo\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    words = [f"./{MODEL.relative_to(ROOT)}", *demo.steps(".demo")["import"][1:]]
    assert docs.commands(session) == [shlex.join(["importer", *words])]
    assert "demo: validated on mlx" in session
    assert len(lasting(session)) > 12


@pytest.mark.engine
@pytest.mark.xdist_group("mlx")
@pytest.mark.parametrize(
    "page", one_of_each(docs.SESSIONS, lambda page: page.name == "failures.md"), ids=lambda p: p.name
)
def test_the_sessions_are_what_happens(
    page: Path, mlx_engine: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    assert lasting(docs.session(page)) == lasting(docs.pasted(page))


# Of the Hub's Qwen/Qwen3-8B: what the memory follows from.
QWEN3_8B = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "head_dim": 128,
    "hidden_size": 4096, "intermediate_size": 12288, "max_position_embeddings": 40960, "vocab_size": 151936,
    "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
    "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.slow
def test_the_session_on_cards_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with HubServer({"Qwen/Qwen3-8B": Repo({"config.json": QWEN3_8B})}) as hub:
        isolate(monkeypatch, tmp_path, hub.url)
        found = docs.session(docs.FROM_THE_HUB)
    assert found == docs.pasted(docs.FROM_THE_HUB)
    assert found.count("fit: ") == 3


@pytest.mark.engine
@pytest.mark.xdist_group("mlx")
def test_the_requests_of_the_guide_show_the_fault(mlx_engine: Installed) -> None:
    """The stop word cuts the answer before its first word; without the stop word the answer is whole."""
    text = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
    requests = re.findall(r"^curl .*$", text, re.MULTILINE)
    data = {"name": "demo", "backend": "mlx", "parameters": {"model": str(MODEL), "temperature": 0.0}}
    with serve(get("mlx"), mlx_engine.python, data, MODEL) as server:
        here = [shlex.split(one.replace(":8080", f":{server.port}")) for one in requests]
        ran = [subprocess.run(words, capture_output=True, check=True).stdout for words in here]
    answers = [json.loads(one) for one in ran]
    said = [str(one["choices"][0]["message"]["content"]).strip() for one in answers]
    assert said == ["", "Hello! How can I help you today?"]


def test_the_changelog_is_of_this_version() -> None:
    """Its newest entry is the version that the package says it is; the readme knows whether that is out."""
    newest = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[0]
    version = subprocess.run(
        [sys.executable, "-m", "importer", "--version"], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout.split()[1]  # fmt: skip
    assert newest.startswith(f"[{version}] - ")
    told = f"Before the release of {version}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert told == newest.endswith("unreleased")
